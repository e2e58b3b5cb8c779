package preview

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func csvRecords(data []byte, slow bool) (rows [][]string) {
	src := bufio.NewReader(bytes.NewReader(data))
	if slow {
		src = bufio.NewReader(iotest.OneByteReader(bytes.NewReader(data)))
	}
	r := newCSVReader(src, ',')
	for {
		var row []string
		n, err := r.row(func(_ int, field []byte, _ int64) { row = append(row, string(field)) })
		if err != nil {
			return rows
		}
		if n != len(row) {
			row = append(row, "not the number of fields")
		}
		rows = append(rows, row)
	}
}

// TestCSVReader compares the reader with encoding/csv, on what a writer wrote.
func TestCSVReader(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	parts := []string{"a", "é", ",", "\"", "\n", " ", "12", "", "'", ";"}
	for range 2000 {
		var rows [][]string
		for range 1 + rng.IntN(4) {
			row := []string{"x"}
			for range rng.IntN(4) {
				var b strings.Builder
				for range rng.IntN(5) {
					b.WriteString(parts[rng.IntN(len(parts))])
				}
				row = append(row, b.String())
			}
			rows = append(rows, row)
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF = rng.IntN(2) == 0
		if err := w.WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		want, err := func() ([][]string, error) {
			r := csv.NewReader(bytes.NewReader(b.Bytes()))
			r.FieldsPerRecord = -1
			return r.ReadAll()
		}()
		if err != nil {
			t.Fatal(err)
		}
		for _, slow := range []bool{false, true} {
			got := csvRecords(b.Bytes(), slow)
			for _, row := range got { // encoding/csv makes LF of CR LF inside of quotes
				for i := range row {
					row[i] = strings.ReplaceAll(row[i], "\r\n", "\n")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q (-encoding/csv +reader):\n%s", b.String(), diff)
			}
		}
	}
}

func FuzzCSVReader(f *testing.F) {
	for _, s := range []string{"", "a,b\n1,2\n", "\"a\"\"b\",c\r\n", "a\"b,c", "\"open\n,", ",,\n,", "\"\"", "a\n\n\nb"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if diff := cmp.Diff(csvRecords(data, false), csvRecords(data, true)); diff != "" {
			t.Fatalf("one-byte reads differ\n%s", diff)
		}
	})
}
