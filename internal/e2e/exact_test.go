//go:build linux

package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// oddFiles are files that are easily changed on their way.
var oddFiles = []struct{ kind, text string }{
	{"empty", ""},
	{"one newline", "\n"},
	{"blanks", " \t\n \n"},
	{"text", "one\ntwo\n"},
	{"no last newline", "one\ntwo"},
	{"two last newlines", "one\n\n"},
	{"CRLF", "one\r\ntwo\r\n"},
	{"CR", "one\rtwo\r"},
	{"UTF-8", "žluťoučký kůň 🐎\u2028\u0000\n"},
	{"byte order mark", "\uFEFFone\n"},
	{"JSON", "{\n  \"id\": 12345678901234567890,\n  \"x\": 1.10\n}\n"},
	{"JSON on one line", `{"path":"elsewhere","content":"of mine"}`},
	{"array", " [1, 2,\n3]\n"},
	{"JSON lines", "{\"id\":1}\n{\"id\":2}\n"},
	{"arrays", "[1]\n[2]"},
	{"number", "12"},
	{"number on a line", "007\n"},
	{"null", "null"},
	{"true", "true\n"},
	{"quotes", `"q"`},
	{"log", "[INFO] started\n[12] x\n"},
	{"CSV", "a,b\r\n\"x\r\ny\",2\r\n"},
}

const hugeLine = 10_000_000 // bytes

// TestExactFiles copies a tree of two hundred odd files, a thousand at night, by one pipeline through the read and the write of
// another server.
func TestExactFiles(t *testing.T) {
	t.Parallel()
	n := parttest.Times(200, 1000)
	from, to := t.TempDir(), t.TempDir()
	for i := range n {
		text := oddFiles[i%len(oddFiles)].text
		if i == n/2 {
			text = strings.Repeat("x", hugeLine)
		}
		if err := os.WriteFile(filepath.Join(from, fmt.Sprint(i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := must(t, object{"files": nodeServer(t, "@modelcontextprotocol/server-filesystem", from, to)},
		command("jq", "-n", "-c", fmt.Sprintf(`range(%d) | {path: "%s/\(.)"}`, n, from)),
		object{"type": "tool", "server": "files", "name": "read_text_file", "as": "text", "for_each": true, "with_item": true},
		command("jq", "-c", "--arg", "to", to, `.[] | {path: ($to + "/" + (.item.path / "/" | last)), content: .result}`),
		object{"type": "tool", "server": "files", "name": "write_file", "for_each": true},
		command("jq", "length"))
	if want := fmt.Sprintln(n); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range n {
		want, err := os.ReadFile(filepath.Join(from, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(to, fmt.Sprint(i))); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", oddFiles[i%len(oddFiles)].kind, clip(string(got)), err, clip(string(want)))
		}
	}
}

// TestExactStages takes one file of each kind through commands, tee and another write, one pipeline each.
func TestExactStages(t *testing.T) {
	t.Parallel()
	dir, workspace := t.TempDir(), t.TempDir()
	servers := object{"files": nodeServer(t, "@modelcontextprotocol/server-filesystem", dir)}
	g := serveStdio(t, servers, versions[1], nil, "--workspace", workspace)
	for i, file := range append(oddFiles, struct{ kind, text string }{"one line of 10 MB", strings.Repeat("x", hugeLine)}) {
		t.Run(file.kind, func(t *testing.T) {
			path := filepath.Join(dir, fmt.Sprint(i))
			if err := os.WriteFile(path, []byte(file.text), 0o600); err != nil {
				t.Fatal(err)
			}
			read := toolStage("files", "read_text_file", object{"path": path})
			saved := fmt.Sprint(i)
			sum := mustExecute(t, g.ClientSession, read,
				object{"type": "tee", "path": saved, "confirm_oversize": true}, command("sha256sum"))
			if want := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(file.text))); sum != want {
				t.Errorf("the checksum is %q, want %q", sum, want)
			}
			copied := path + " copy"
			mustExecute(t, g.ClientSession, with(read, "as", "text"), toolStage("files", "write_file", object{"path": copied}))
			for what, name := range map[string]string{
				"tee": filepath.Join(workspace, saved), "its mirror": filepath.Join(workspace, ".mcsh", "audit", saved), "write": copied,
			} {
				got, err := os.ReadFile(name)
				if what == "its mirror" { // which has a line of its own before the data
					_, got, _ = bytes.Cut(got, []byte(" ---\n"))
				}
				if err != nil || string(got) != file.text {
					t.Errorf("%s has %q, %v", what, clip(string(got)), err)
				}
			}
		})
	}
}

// TestExactAppends appends two hundred texts, a thousand at night, in order, each on a new line.
func TestExactAppends(t *testing.T) {
	t.Parallel()
	n := parttest.Times(200, 1000)
	dir, workspace := t.TempDir(), t.TempDir()
	var want strings.Builder
	for i, file := range oddFiles {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(file.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended := true
	for i := range n {
		text := oddFiles[i%len(oddFiles)].text
		if text == "" {
			continue
		}
		if !ended {
			want.WriteByte('\n')
		}
		want.WriteString(text)
		ended = strings.HasSuffix(text, "\n")
	}
	servers := object{"files": nodeServer(t, "@modelcontextprotocol/server-filesystem", dir)}
	g := serveStdio(t, servers, versions[1], nil, "--workspace", workspace)
	mustExecute(t, g.ClientSession,
		command("jq", "-n", "-c", fmt.Sprintf(`range(%d) | {path: "%s/\(. %% %d)"}`, n, dir, len(oddFiles))),
		object{"type": "for_each", "stages": []object{
			{"type": "tool", "server": "files", "name": "read_text_file"},
			{"type": "tee", "path": "log", "append": true},
		}},
		command("jq", "length"))
	for _, name := range []string{"log", filepath.Join(".mcsh", "audit", "log")} {
		if got, err := os.ReadFile(filepath.Join(workspace, name)); err != nil || string(got) != want.String() {
			t.Errorf("%s has %d bytes, want %d; %v", name, len(got), want.Len(), err)
		}
	}
}
