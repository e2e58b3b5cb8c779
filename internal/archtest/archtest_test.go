//go:build !race

package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// rules are the laws of the house.
var rules = []struct {
	name  string
	check func(*tree) []string
}{
	{"rooms", rooms},
	{"imports", imports},
	{"documents", documents},
	{"sizes", sizes},
	{"absences", absences},
	{"kinds", kinds},
}

// TestHouse applies the rules to the module.
func TestHouse(t *testing.T) {
	house, err := load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(house.packages) < 5 {
		t.Fatalf("found %d packages; is this the root of the module?", len(house.packages))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, found := range r.check(house) {
				t.Error(found)
			}
		})
	}
}

// TestModules applies the rules that need no page to the modules beside this one.
func TestModules(t *testing.T) {
	for _, module := range []string{"engine/temporal", "engine/temporal/dev"} {
		t.Run(module, func(t *testing.T) {
			house, err := parse(filepath.Join("..", "..", filepath.FromSlash(module)))
			if err != nil {
				t.Fatal(err)
			}
			if len(house.packages) == 0 {
				t.Fatal("found no packages")
			}
			for _, check := range []func(*tree) []string{documents, sizes, absences} {
				for _, found := range check(house) {
					t.Error(found)
				}
			}
		})
	}
}

// TestRules applies the rules to modules that break them, and to their neighbours that do not.
func TestRules(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/house.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	want := map[string][]string{}
	for _, f := range archive.Files {
		if rule, ok := strings.CutPrefix(f.Name, "want/"); ok {
			want[rule] = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
			continue
		}
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := "package preview\n\nfunc long() {\n" + strings.Repeat("\tlong()\n", 51) + "}\n" +
		"\nfunc table() []int {\n\treturn []int{\n" + strings.Repeat("\t\t1,\n", 500) + "\t}\n}\n" + strings.Repeat("\n", 50)
	if err := os.WriteFile(filepath.Join(dir, "preview", "long.go"), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	house, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		got := r.check(house)
		slices.Sort(got)
		if diff := cmp.Diff(want[r.name], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.name, diff)
		}
	}
}
