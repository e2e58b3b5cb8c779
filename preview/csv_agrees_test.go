//go:build !race

package preview

import (
	"bytes"
	"encoding/csv"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
