package preview_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/preview"
)

func benchmarkPreview(b *testing.B, data string) {
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkLines() string {
	var b strings.Builder
	for range 10 {
		b.WriteString(events(rand.New(rand.NewPCG(1, 1))))
	}
	return b.String()
}

func benchmarkArray() string {
	lines := strings.TrimSpace(benchmarkLines())
	return "[" + strings.ReplaceAll(lines, "\n", ",") + "]"
}

func BenchmarkPreviewJSON(b *testing.B)  { benchmarkPreview(b, benchmarkArray()) }
func BenchmarkPreviewJSONL(b *testing.B) { benchmarkPreview(b, benchmarkLines()) }
func BenchmarkPreviewText(b *testing.B) {
	benchmarkPreview(b, logText(rand.New(rand.NewPCG(1, 1)), 20_000))
}

func BenchmarkPreviewIssues(b *testing.B) { benchmarkPreview(b, issues(rand.New(rand.NewPCG(1, 1)))) }

// BenchmarkEncodingJSONToken is what reading the tokens alone costs with the standard library.
func BenchmarkEncodingJSONToken(b *testing.B) {
	data := benchmarkLines()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		d := json.NewDecoder(strings.NewReader(data))
		d.UseNumber()
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkPreviewStream reads 200 MB that are made on the way.
func BenchmarkPreviewStream(b *testing.B) {
	if testing.Short() {
		b.Skip("reads 200 MB")
	}
	line := strings.Repeat(fmt.Sprintf(`{"id":%d,"name":"name","tags":["a","b"],"v":1.5,"at":"2024-05-01T03:00:00Z"}`+"\n", 12), 400)
	b.SetBytes(200 << 20)
	b.ReportAllocs()
	for b.Loop() {
		src := &repeat{make: func(int) string { return line }, size: 200 << 20}
		if _, err := preview.Preview(context.Background(), src, preview.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
