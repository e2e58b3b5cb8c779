package preview

import (
	"bufio"
	"bytes"
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
