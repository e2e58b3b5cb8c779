package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var testPlaces = Places{Home: "/home/me", Config: "/home/me/.config", Project: "/srv/p"}

// TestOf: the path of a file tells whose it is.
func TestOf(t *testing.T) {
	for path, want := range map[string]string{
		"/home/me/.claude.json": "claude-code", "/other/.mcp.json": "claude-code", "/x/.vscode/mcp.json": "vscode",
		"/x/.codex/config.toml": "codex", "/home/me/.config/zed/settings.json": "zed", "/x/mcp.json": "file",
		"/home/me/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json": "cline",
	} {
		if got := Of(path, testPlaces).Name; got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"/other/.claude.json", "/other/.copilot/mcp-config.json"} {
		if got := Of(path, Places{Project: "/srv/p"}).Name; got == "file" {
			t.Errorf("%s is of nobody where HOME is not set", path)
		}
	}
	for path, want := range map[string]bool{"/srv/p/.zed/settings.json": true, "/home/me/.config/zed/settings.json": false, "": false} {
		for _, places := range []Places{testPlaces, {Project: "/srv/p"}} {
			if got := client(t, "zed").isProject(path, places); got != want {
				t.Errorf("%s belongs to the project: %v", path, got)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range All() {
		if seen[c.Name] || len(c.Files(testPlaces)) != len(c.files) || len(c.Files(Places{})) != 0 {
			t.Errorf("%s: twice, or with files that are nowhere: %v", c.Name, c.Files(testPlaces))
		}
		seen[c.Name] = true
	}
}

// TestReadProject: a file that holds several projects gives the servers of this one, after those of the user.
func TestReadProject(t *testing.T) {
	c := All()[0]
	r, err := c.Read("/home/me/.claude.json", []byte(`{"mcpServers": {"a": {"command": "x"}},
		"projects": {"/srv/p": {"mcpServers": {"a": {"command": "other"}, "b": {"command": "y"}}}, "/srv/q": {"mcpServers": {"c": {"command": "z"}}}}}`), testPlaces)
	if err != nil || len(r.Servers) != 2 || r.Servers[0].Server.Command != "x" || r.Servers[0].Server.Dir != "" || r.Servers[1].Server.Dir != "/srv/p" {
		t.Errorf("got %+v, %v", r.Servers, err)
	}
}

// TestMergeKeeps: comments and what is not ours stay.
func TestMergeKeeps(t *testing.T) {
	old := "// mine\n{\n\t\"servers\": {\n\t\t// keep this\n\t\t\"a\": {\"command\": \"x\"}, // and this\n\t},\n\t\"other\": 1,\n}\n"
	got, outcome, err := Merge([]byte(old), []Entry{{Name: "b/~c", Server: &Server{Command: "y"}}, {Name: "a", Server: &Server{Command: "x"}}, {Name: "bad", Err: errors.New("x")}}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// mine", "// keep this", "// and this", `"other": 1`, `"b/~c": {"command": "y"}`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is lost:\n%s", want, got)
		}
	}
	if fmt.Sprint(outcome) != "map[a:already there b/~c:added]" {
		t.Errorf("got %v", outcome)
	}
	if again, _, err := Merge(got, []Entry{{Name: "b/~c", Server: &Server{Command: "y"}}}, nil, true); err != nil || !bytes.Equal(again, got) {
		t.Errorf("the second time it has changed: %v\n%s", err, again)
	}
}

// TestRewrite: of many at once none is lost, a link stays a link, and the file is the user's own.
func TestRewrite(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real", "mcp.json"), filepath.Join(dir, "mcp.json")
	add := func(path, name string) error {
		return Rewrite(t.Context(), path, func(old []byte) ([]byte, error) {
			data, _, err := Merge(old, []Entry{{Name: name, Server: &Server{Command: "x"}}}, nil, false)
			return data, err
		})
	}
	if err := add(target, "first"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(target); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := add(link, fmt.Sprint("n", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	data, err := os.ReadFile(target)
	if err != nil || strings.Count(string(data), `"command"`) != 21 {
		t.Errorf("got %v:\n%s", err, data)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is no link any more: %v, %v", info, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "real", "*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := Rewrite(t.Context(), target, func([]byte) ([]byte, error) { return nil, errors.New("no") }); err == nil {
		t.Error("an error was lost")
	}
	if after, err := os.ReadFile(target); err != nil || !bytes.Equal(after, data) {
		t.Errorf("a change that failed has changed the file: %v", err)
	}
}

// TestRewriteWaits: somebody who holds the lock is waited for, and not for ever.
func TestRewriteWaits(t *testing.T) {
	dir := t.TempDir()
	err := Rewrite(t.Context(), filepath.Join(dir, "a"), func([]byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		begun := time.Now()
		err := Rewrite(ctx, filepath.Join(dir, "x"), func([]byte) ([]byte, error) { return []byte("x"), nil })
		if err == nil || !strings.Contains(err.Error(), "another process is writing there") || time.Since(begun) > time.Minute {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		return []byte("a"), nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRedact(t *testing.T) {
	got := string(Redact([]byte(`{"mcpServers": {
		"env": {"command": "x", "env": {"A": "plant3d", "B": "${OK}", "N": 1}, "args": ["--token", "plant3d", "--x=y", "postgres://u:plant3d@h/db"]},
		"h": {"url": "https://h/m?api_key=plant3d", "headers": {"Authorization": "Bearer ${OK}", "X": "${A:-plant3d}"}, "with": {"password": "plant3d"}}}, // c
		"inputs": [{"id": "k", "password": true, "default": "plant3d"}], // a: "plant3d"
		/* my key is plant3d */ "x": {"token": 4711, "url": "https://h/s/plant3dplant3dplant3d/mcp"}}`)))
	if strings.Contains(got, "plant3d") || strings.Contains(got, "4711") || !strings.Contains(got, "https://h/s/***/mcp") || strings.Count(got, "${OK}") != 2 || !strings.Contains(got, `"--x=y"`) || !strings.Contains(got, "// c") {
		t.Errorf("got %s", got)
	}
	if got := string(Redact([]byte(`{"a": "plant3d`))); strings.Contains(got, "plant3d") {
		t.Errorf("got %s", got)
	}
}

// FuzzImport: whatever a client's file holds, what is written can be read, holds what was taken, and what is shown of it
// can be read too.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": ["x"], "env": {"A": 1}}, "b": {"url": "http://h", "timeout": "1s"}, "": {}, "~/": {"command": {"path": "x"}}}}`), false)
	f.Add([]byte("[mcp_servers.a]\ncommand = \"x\"\nenv_vars = [\"A\"]\n[mcp_servers.b]\nurl = \"http://h\"\n"), true)
	f.Add([]byte(`{"inputs": [{"id": "i"}], "servers": {"a": {"command": "${input:i}"}}}`), false)
	f.Fuzz(func(t *testing.T, data []byte, isTOML bool) {
		path := "/x/mcp.json"
		if isTOML {
			path = "/x/.codex/config.toml"
		}
		r, err := Of(path, testPlaces).Read(path, data, testPlaces)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		merged, outcome, err := Merge(nil, r.Servers, r.Inputs, false)
		if err != nil {
			t.Fatalf("merging: %v", err)
		}
		back, err := decode("x", merged)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, merged)
		}
		there, _ := back["mcpServers"].(map[string]any)
		if len(there) != len(outcome) {
			t.Errorf("%d servers were added, %d are there:\n%s", len(outcome), len(there), merged)
		}
		if shown, err := decode("x", Redact(merged)); err != nil || len(shown) != len(back) {
			t.Errorf("what is shown cannot be read: %v", err)
		}
		if _, err := json.Marshal(r.Inputs); err != nil {
			t.Error(err)
		}
	})
}
