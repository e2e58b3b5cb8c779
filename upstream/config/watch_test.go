package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A watched file is read again whenever Watch says so.
type watched struct {
	*File
	t    *testing.T
	dir  string
	said chan string // the names of the servers after each reading, or the mistakes
}

func watchFile(t *testing.T, dir, name string) *watched {
	w := &watched{File: &File{Path: filepath.Join(dir, name), Lookup: testLookup}, t: t, dir: dir, said: make(chan string, 100)}
	w.reread()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Watch(ctx, w.reread) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch ended with %v", err)
		}
	})
	return w
}

func (w *watched) reread() {
	servers, err := w.Servers(context.Background())
	var names []string
	for _, s := range servers {
		names = append(names, s.Name+"="+s.Version[:6])
	}
	if err != nil {
		names = append(names, "error "+err.Error())
	}
	w.said <- strings.Join(names, " ")
}

// next waits until a reading has said something that holds, and returns it.
func (w *watched) next(holds func(string) bool) string {
	w.t.Helper()
	limit := time.After(time.Minute)
	var last string
	for {
		select {
		case last = <-w.said:
			if holds(last) {
				return last
			}
		case <-limit:
			w.t.Fatalf("nothing was seen; the last reading was %q", last)
		}
	}
}

func (w *watched) has(names ...string) {
	w.t.Helper()
	w.next(func(said string) bool {
		for _, name := range names {
			if !strings.Contains(" "+said, " "+name+"=") {
				return false
			}
		}
		return !strings.Contains(said, "error") && len(strings.Fields(said)) == len(names)
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replace puts another file in the place of one.
func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".tmp", text)
	must(t, os.Rename(path+".tmp", path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func serversText(names ...string) string {
	var members []string
	for _, name := range names {
		members = append(members, `"`+name+`": {"command": "x"}`)
	}
	return `{"mcpServers": {` + strings.Join(members, ",") + `}}`
}

// TestWatch: a file is read again however it was changed.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	write(t, path, serversText("a"))
	w := watchFile(t, dir, "mcp.json")
	w.has("a")

	write(t, path, serversText("written")) // in place
	w.has("written")

	replace(t, path, serversText("renamed")) // as editors do
	w.has("renamed")

	write(t, path, `{"mcpServers": {,}}`)
	w.next(func(said string) bool { return strings.Contains(said, "error "+path+":1:17: ") })

	must(t, os.Rename(path, path+"~")) // as other editors do
	write(t, path, serversText("again"))
	w.has("again")

	must(t, os.Remove(path))
	w.next(func(said string) bool { return strings.Contains(said, "there is no file") })
	write(t, path, serversText("back"))
	w.has("back")
}

// TestWatchLinks: Kubernetes mounts a directory of links to links, and changes the one in the middle.
func TestWatchLinks(t *testing.T) {
	dir := t.TempDir()
	generation := func(name, text string) {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "mcp.json"), text)
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	generation("..2026_1", serversText("one"))
	must(t, os.Symlink(filepath.Join("..data", "mcp.json"), filepath.Join(dir, "mcp.json")))
	w := watchFile(t, dir, "mcp.json")
	w.has("one")
	generation("..2026_2", serversText("two"))
	must(t, os.RemoveAll(filepath.Join(dir, "..2026_1")))
	w.has("two")
	generation("..2026_3", serversText("three"))
	w.has("three")
}

// TestWatchDependencies: files that the configuration names count too, and only the servers that name them change.
func TestWatchDependencies(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	key, env := filepath.Join(elsewhere, "key"), filepath.Join(dir, ".env")
	write(t, key, "one")
	write(t, env, "A=1")
	write(t, filepath.Join(dir, "mcp.json"), `{"mcpServers": {
		"same": {"command": "x"},
		"env": {"command": "x", "envFile": ".env"},
		"key": {"url": "http://h/", "headers": {"X": "${file:`+key+`}"}}}}`)
	w := watchFile(t, dir, "mcp.json")
	before := strings.Fields(w.next(func(string) bool { return true }))
	differ := func(after string) []string {
		var names []string
		for i, s := range strings.Fields(after) {
			if s != before[i] {
				name, _, _ := strings.Cut(s, "=")
				names = append(names, name)
			}
		}
		before = strings.Fields(after)
		return names
	}
	replace(t, key, "two")
	after := w.next(func(said string) bool { return len(strings.Fields(said)) == 3 && said != strings.Join(before, " ") })
	if got := differ(after); !slices.Equal(got, []string{"key"}) {
		t.Errorf("after the key: %v have changed", got)
	}
	must(t, os.Remove(env))
	w.next(func(said string) bool { return strings.Contains(said, "there is no file "+env) })
	write(t, env, "A=2")
	after = w.next(func(said string) bool { return len(strings.Fields(said)) == 3 })
	if got := differ(after); !slices.Equal(got, []string{"env"}) {
		t.Errorf("after the variables: %v have changed", got)
	}
}

// TestWatchDirectory: the directory itself may be replaced, as by a checkout.
func TestWatchDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc")
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "mcp.json"), serversText("a"))
	w := watchFile(t, dir, "mcp.json")
	w.has("a")
	must(t, os.Rename(dir, dir+".old"))
	w.next(func(said string) bool { return strings.Contains(said, "there is no file") })
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "mcp.json"), serversText("b"))
	w.has("b")
}

// TestWatchNoise: other files of the directory are none of our business.
func TestWatchNoise(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	write(t, path, serversText("a"))
	w := watchFile(t, dir, "mcp.json")
	w.has("a")
	for range 20 {
		write(t, filepath.Join(dir, "noise"), "x")
		replace(t, path, serversText("a")) // the same again is no change either
	}
	replace(t, path, serversText("a", "b"))
	select {
	case said := <-w.said:
		if !strings.Contains(said, "b=") {
			t.Errorf("read again without need: %s", said)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing was seen")
	}
}
