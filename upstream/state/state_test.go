package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/preview/shape"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

var key = state.Key{Server: "git/hub", Identity: "https://example.com/mcp"}

func open(t *testing.T, path string) *state.Dir {
	t.Helper()
	d, err := state.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func toolShape(schema, field string) state.ToolShape {
	return state.ToolShape{Schema: schema, Result: &shape.Result{Calls: 1, Value: &shape.Shape{Kinds: shape.Object, Fields: []shape.Field{
		{Name: field, Shape: &shape.Shape{Kinds: shape.Int}},
	}}}}
}

func all(string, string) bool { return true }

func common(string) func(string) bool { return shape.Common() }

func TestTools(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, dir)
	if _, ok := d.Tools(key); ok {
		t.Error("there are tools in an empty directory")
	}
	want := state.Tools{Fetched: time.Now().UTC(), List: []json.RawMessage{[]byte(`{"name":"a","x":1.10}`)}}
	if err := d.SaveTools(key, want); err != nil {
		t.Fatal(err)
	}
	got, ok := open(t, dir).Tools(key)
	if !ok || len(got.List) != 1 || string(got.List[0]) != string(want.List[0]) || !got.Fetched.Equal(want.Fetched) {
		t.Errorf("got %+v, %v", got, ok)
	}
	for _, other := range []state.Key{{Server: "git/hub"}, {Server: "x", Identity: key.Identity}} {
		if _, ok := d.Tools(other); ok {
			t.Errorf("the tools are those of %v too", other)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, name := range append(files(t, dir), dir) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestDamage: a file that is damaged in any way is ignored, and written anew.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	save := func() {
		t.Helper()
		if err := d.SaveShapes(key, state.Shapes{"a": toolShape("1", "id")}, all, common); err != nil {
			t.Fatal(err)
		}
	}
	save()
	name := files(t, dir)[0]
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string]string{
		"empty": "", "half": string(good[:len(good)/2]), "null": "null", "other version": strings.Replace(string(good), `"version":2`, `"version":1`, 1),
		"other key": strings.Replace(string(good), `"key":"`, `"key":"x`, 1), "wrong type": `{"version":1,"key":[]}`,
		"null shapes": strings.Replace(string(good), `"result":{`, `"result":null,"x":{`, 1), "binary": "\x00\xff",
		"deep": `{"version":1,"data":` + strings.Repeat(`{"i":`, 20_000) + `1` + strings.Repeat("}", 20_000) + `}`,
	} {
		if err := os.WriteFile(name, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := d.Shapes(key); len(got) != 0 {
			t.Errorf("%s: got %v", what, got)
		}
		save()
		if got := d.Shapes(key); len(got) != 1 || got["a"].Result.String() != "{id: int}" {
			t.Errorf("%s: after writing got %v", what, got)
		}
	}
}

// TestSaveShapes: what others wrote stays, unless the tool is gone or has another schema; names that may be data go.
func TestSaveShapes(t *testing.T) {
	d := open(t, t.TempDir())
	steps := []struct {
		save state.Shapes
		keep func(tool, schema string) bool
		want string
	}{
		{state.Shapes{"a": toolShape("1", "id"), "b": toolShape("1", "name")}, all, "a{id: int} b{name: int}"},
		{state.Shapes{"a": toolShape("1", "name")}, all, "a{id?: int, name?: int} b{name: int}"},
		{state.Shapes{"a": toolShape("2", "url")}, all, "a{url: int} b{name: int}"},
		{state.Shapes{"a": toolShape("2", "alice")}, all, "a{url?: int, <key>: int} b{name: int}"},
		{state.Shapes{"c": toolShape("1", "id")}, func(tool, _ string) bool { return tool != "b" }, "a{url?: int, <key>: int} c{id: int}"},
	}
	for i, s := range steps {
		if err := d.SaveShapes(key, s.save, s.keep, common); err != nil {
			t.Fatal(err)
		}
		got := ""
		shapes := d.Shapes(key)
		for _, name := range []string{"a", "b", "c"} {
			if l, ok := shapes[name]; ok {
				got += " " + name + l.Result.String()
			}
		}
		if got = strings.TrimSpace(got); got != s.want {
			t.Errorf("step %d: got %s, want %s", i, got, s.want)
		}
	}
}

// TestSweep: what nobody has used for months goes, except pins; what is not ours stays.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-100 * 24 * time.Hour)
	for name, stays := range map[string]bool{"tools-x.json": false, "shapes-y.tmp": false, "notes.txt": true, "tools-dir": true, "pins-x.json": true, "pins-y.tmp": false} {
		path := filepath.Join(dir, name)
		write := func() error { return os.WriteFile(path, nil, 0o600) }
		if name == "tools-dir" {
			write = func() error { return os.Mkdir(path, 0o700) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		open(t, dir)
		if _, err := os.Stat(path); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEvict: of too many files, or too many bytes, those go that were written longest ago; a file that is far too large
// for one, or no file, is as good as none.
func TestEvict(t *testing.T) {
	for name, test := range map[string]struct {
		files int
		size  int64
		left  int
	}{
		"files": {1500, 10, 1000},
		"bytes": {30, 20 << 20, 13},
	} {
		dir := t.TempDir()
		d := open(t, dir)
		for i := range test.files {
			path := filepath.Join(dir, fmt.Sprintf("tools-%04d.json", i))
			at := time.Now().Add(time.Duration(i-test.files) * time.Minute)
			if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, test.size), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.SaveTools(key, state.Tools{}); err != nil {
			t.Fatal(err)
		}
		left := files(t, dir)
		if _, ok := d.Tools(key); !ok || len(left) != test.left {
			t.Errorf("%s: %d are left, want %d; the new one is there: %v", name, len(left), test.left, ok)
		}
		if newest := fmt.Sprintf("tools-%04d.json", test.files-1); !slices.Contains(left, filepath.Join(dir, newest)) {
			t.Errorf("%s: the newest of the others is gone", name)
		}
	}
	dir := t.TempDir()
	d := open(t, dir)
	if err := d.SaveTools(key, state.Tools{}); err != nil {
		t.Fatal(err)
	}
	path := files(t, dir)[0]
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Fatal(err)
	}
	if _, ok := open(t, dir).Tools(key); ok {
		t.Error("a file of 1 GiB was read")
	}
	_ = os.Remove(path) // it may be gone: it was too large
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := open(t, dir).Tools(key); ok {
		t.Error("a pipe was read")
	}
}

// TestManyGateways: several write and read at once, and what is read is whole.
func TestManyGateways(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for g := range 4 {
		d := open(t, dir)
		wg.Go(func() {
			for i := range 40 {
				if err := d.SaveShapes(key, state.Shapes{fmt.Sprint("t", g): toolShape("1", "id")}, all, common); err != nil {
					t.Error(err)
				}
				if got := d.Shapes(key); len(got) == 0 {
					t.Errorf("round %d: a reader sees no shapes", i)
				}
			}
		})
	}
	wg.Wait()
	for _, name := range files(t, dir) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left", name)
		}
	}
}
