//go:build !race

package preview_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/preview"
)

// TestBudgetIsExactForAllChars makes thousands of previews, one after another.
func TestBudgetIsExactForAllChars(t *testing.T) {
	step, next := parttest.Times(7, 1), parttest.Times(60, 12) // as budgets get large
	for name, data := range samples() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(data) > 40_000 {
				data = data[:40_000]
			}
			for chars := 1; chars <= 4000; chars += step {
				check(t, []byte(data), preview.Options{Chars: chars, Window: true})
				if chars > 300 {
					chars += next
				}
			}
		})
	}
}

// TestMemoryIsBounded previews streams of 50 MB and measures the heap on the way.
func TestMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 200 MB")
	}
	const maxHeap = 32 << 20
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]func(int) string{
		"lines": func(i int) string {
			return fmt.Sprintf(`{"id":%d,"name":"name %d","tags":["a","b"],"v":%d.5}`+"\n", i, i, i)
		},
		"keys": func(i int) string { return fmt.Sprintf(`{"key%d":{"key%d":{"key%d":1}}}`+"\n", i, i%977, i) },
		"structure": func(i int) string {
			return fmt.Sprintf(`{"a%d":{"b%d":{"c%d":{"d%d":[1]}}}}`+"\n", i%100, i%97, i%89, i%83)
		},
		"string": func(i int) string { return map[bool]string{true: `"`}[i == 0] + long },
		"deep":   func(int) string { return `[{"a":` },
		"log": func(i int) string {
			return fmt.Sprintf("2024-05-01T03:00:00Z INFO word%d request %d took %dms\n", i%1000, i, i)
		},
		"one line": func(int) string { return "words without an end " },
	} {
		t.Run(name, func(t *testing.T) {
			var most uint64
			src := &repeat{make: text, size: 50 << 20, look: func() {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}}
			if _, err := preview.Preview(context.Background(), src, preview.Options{}); err != nil {
				t.Fatal(err)
			}
			if most == 0 || most > maxHeap {
				t.Errorf("heap of %d bytes, want at most %d", most, maxHeap)
			}
		})
	}
}

func TestBudgetIsUsed(t *testing.T) {
	for name, data := range samples() {
		if name == "binary" {
			continue
		}
		for _, chars := range []int{200, 600} {
			res := check(t, []byte(data), preview.Options{Chars: chars, Window: true})
			if !strings.Contains(res.Text, "=== PREVIEW (not valid JSON") || !strings.Contains(res.Text, "=== END PREVIEW ===") {
				t.Errorf("%s at %d: no markers\n%s", name, chars, res.Text)
			}
			if strings.Count(res.Text, "\n") < 4 && name != "deep" {
				t.Errorf("%s at %d: nothing is shown\n%s", name, chars, res.Text)
			}
		}
	}
}
