package cli

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestLimitsPage compares the table of docs/limits.md with the code, and sees that every limit of a run can be set.
// UPDATE=1 writes it.
func TestLimitsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| name | default | of |\n|---|---|---|\n")
	settable := map[any]bool{}
	defaults := limits{}.withDefaults()
	for _, row := range limitTable {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.name, shownLimit(row.at(&defaults)), row.meaning)
		settable[row.at(&defaults)] = true
	}
	updatedPage(t, "../docs/limits.md", "limits", b.String())
	others := []string{"SpoolHead", "SpoolDir", "Durable"} // they limit nothing
	fields := reflect.ValueOf(&defaults.Limits).Elem()
	for i := range fields.NumField() {
		name := reflect.TypeFor[stages.Limits]().Field(i).Name
		if !settable[fields.Field(i).Addr().Interface()] && !slices.Contains(others, name) {
			t.Errorf("the limit %s cannot be set", name)
		}
	}
}

// updatedPage compares the part of a page that stands between the comments of its name with what the code says. UPDATE=1 writes it.
func updatedPage(t *testing.T, page, name, text string) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the %s", page, name)
	}
	want := head + begin + text + end + tail
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(data) {
		t.Errorf("%s is not what the code says; UPDATE=1 writes it: (-want +got)\n%s", page, cmp.Diff(want, string(data)))
	}
}

func shownLimit(field any) string {
	switch field := field.(type) {
	case *int:
		return fmt.Sprint(*field)
	case *int64:
		return (*byteSize)(field).String()
	case *time.Duration:
		return fmt.Sprintf("%g s", field.Seconds())
	}
	return fmt.Sprintf("%T", field)
}
