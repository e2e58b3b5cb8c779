//go:build !race

package jq

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
)

// TestWideLine: the work for a line grows with its length, not with its length times its fields. The line is longer than
// what costtest.Run is made for, since 100 KiB are quick either way.
func TestWideLine(t *testing.T) {
	const fields = 2 << 20
	for name, field := range map[string]string{"bare": "", "quoted": `""`, "one bare in two": `"",`} {
		costtest.Run(t, func() {
			r := &csvReader{text: strings.Repeat(field+",", fields-1), separator: ','}
			got, err := r.record()
			if want := 1 + strings.Count(r.text, ","); err != nil || len(got) != want {
				t.Errorf("%s: %d fields, %v; want %d", name, len(got), err, want)
			}
		})
	}
}

// TestManyColumns: so does the work for columns of one name.
func TestManyColumns(t *testing.T) {
	const columns = 50_000
	costtest.Run(t, func() {
		names := columnNames(slices.Repeat([]string{"a"}, columns))
		if last, want := names[columns-1], fmt.Sprintf("a_%d", columns); last != want {
			t.Errorf("the last name is %q, want %q", last, want)
		}
	})
}
