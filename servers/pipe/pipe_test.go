package pipe_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/servers/pipe"
	"github.com/mcsh-dev/mcsh/servers/servertest"
	"github.com/mcsh-dev/mcsh/workspace"
)

// An echo is an engine whose commands write what they are, or repeat their input.
type echo struct {
	says func(l pipe.Line, in string) (string, error)

	mu    sync.Mutex
	lines []pipe.Line // guarded by mu
}

func (e *echo) Run(_ context.Context, l pipe.Line, in io.Reader, out io.Writer) (r pipe.Report, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, l)
	text := ""
	if in != nil {
		data, err := io.ReadAll(in)
		if err != nil {
			return r, err
		}
		text = string(data)
	}
	said, err := e.says(l, text)
	if err != nil {
		return r, err
	}
	if _, err := io.WriteString(out, said); err != nil {
		return r, err
	}
	for _, c := range l.Commands {
		r.Steps = append(r.Steps, pipe.Step{Size: int64(len(said)), Millis: 1})
		if c.Save != nil {
			r.Saved = &pipe.Saved{Path: c.Save.Path, Append: c.Save.Append, Bytes: int64(len(said))}
		}
	}
	return r, nil
}

func (*echo) Begin() func() error { return func() error { return nil } }

// open connects to a server over a new root with the directories a and a/b.
func open(t *testing.T, o pipe.Options, e *echo) *servertest.Client {
	t.Helper()
	o.Root = t.TempDir()
	if err := os.MkdirAll(filepath.Join(o.Root, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if e != nil {
		o.Start = func(*workspace.Dir, bool) pipe.Engine { return e }
	}
	server, err := pipe.New(o)
	return servertest.Connect(t, server, err)
}

func directories(l pipe.Line, _ string) (string, error) { return l.Dir, nil }

// call returns the standard output of a line, or its reason.
func call(t *testing.T, c *servertest.Client, args string) string {
	t.Helper()
	var a struct {
		Stdout string
		Meta   struct{ Cwd string }
		Error  pipe.Failure
	}
	r := c.Call(t, "pipe", args)
	if err := json.Unmarshal([]byte(r.Text), &a); err != nil {
		t.Fatalf("%s: %v in %s", args, err, r.Text)
	}
	if r.Error {
		return string(a.Error.Reason) + a.Error.Detail
	}
	if a.Meta.Cwd != "" {
		return a.Stdout + "in " + a.Meta.Cwd
	}
	return a.Stdout
}

// TestAdded: a command of the operator runs like the others, and hints name it.
func TestAdded(t *testing.T) {
	c := open(t, pipe.Options{Added: []string{"tool", "cat"}}, &echo{says: func(l pipe.Line, _ string) (string, error) { return l.Commands[0].Name, nil }})
	for args, want := range map[string]string{
		`{"command":"tool -n 1 | sort"}`: "tool", `{"command":"cat x"}`: "cat",
		`{"command":"tac x"}`: "DISALLOWED_CMD'tac' is not allowed.", `{"command":"tools"}`: "DISALLOWED_CMD'tools' is not allowed.",
	} {
		if got := call(t, c, args); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	if text := c.Call(t, "pipe", `{"command":"tools"}`).Text; !strings.Contains(text, "wc, tool, cat and tee") {
		t.Errorf("the suggestion lacks the command: %s", text)
	}
}

// TestSession: cd holds for the session where the process is one; elsewhere it sets nothing and returns the directory.
func TestSession(t *testing.T) {
	for _, alone := range []bool{true, false} {
		c := open(t, pipe.Options{Alone: alone}, &echo{says: directories})
		for _, s := range []struct{ args, kept, not string }{
			{`{"command":"ls"}`, ".", "."},
			{`{"command":"cd a"}`, "in a", "in a"},
			{`{"command":"ls"}`, "a", "."},
			{`{"command":"pwd"}`, "a\nin a", ".\nin ."},
			{`{"command":"ls","cwd":"a/b"}`, "a/b", "a/b"},
			{`{"command":"ls","cwd":"."}`, ".", "."},
			{`{"command":"cd a/b","cwd":"."}`, "in a/b", "in a/b"},
			{`{"command":"cd none"}`, `"a/b/none" does not exist.`, `"none" does not exist.`},
			{`{"command":"ls"}`, "a/b", "."},
			{`{"command":"cd ../.."}`, "in .", `PATH_ESCAPE"./../.." leads out of the root.`},
			{`{"command":"ls"}`, ".", "."},
			{`{"command":"cd b","cwd":"a"}`, "in a/b", "in a/b"},
			{`{"command":"cd"}`, "in .", "in ."},
			{`{"command":"ls","cwd":"../x"}`, `PATH_ESCAPE"../x" leads out of the root.`, `PATH_ESCAPE"../x" leads out of the root.`},
		} {
			want := s.not
			if alone {
				want = s.kept
			}
			if got := call(t, c, s.args); got != want {
				t.Errorf("alone %v: %s: got %q, want %q", alone, s.args, got, want)
			}
		}
	}
}

// TestLostDirectory: a session whose directory is gone can go on.
func TestLostDirectory(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := pipe.New(pipe.Options{Root: root, Alone: true, Start: func(*workspace.Dir, bool) pipe.Engine { return &echo{says: directories} }})
	c := servertest.Connect(t, server, err)
	call(t, c, `{"command":"cd a"}`)
	if err := os.Remove(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if r := c.Call(t, "pipe", `{"command":"ls"}`); !r.Error || !strings.Contains(r.Text, `call cd with \"cwd\": \".\"`) {
		t.Errorf("got %s", r.Text)
	}
	call(t, c, `{"command":"cd","cwd":"."}`)
	if got := call(t, c, `{"command":"ls"}`); got != "." {
		t.Errorf("got %q after the cd", got)
	}
}

// TestLines: the commands of a line get the words that a shell would give them, and tee its file.
func TestLines(t *testing.T) {
	e := &echo{says: directories}
	c := open(t, pipe.Options{}, e)
	for _, args := range []string{
		`{"command":"tail -n 100 app.log | rg ERROR | awk '{print $3}' | sort -u"}`,
		`{"command":"ls | tee -a -- -x | head -1","cwd":"a","confirm_oversize":true}`,
		`{"command":"ls | tee ../x --append","cwd":"a"}`,
	} {
		if r := c.Call(t, "pipe", args); r.Error {
			t.Errorf("%s: %s", args, r.Text)
		}
	}
	if r := c.Call(t, "shelpa_write", `{"path":"a/f","content":"text","append":true}`); r.Error || !strings.Contains(r.Text, `"path":"a/f"`) {
		t.Errorf("write: %s", r.Text)
	}
	command := func(text, name string, args ...string) pipe.Command {
		return pipe.Command{Text: text, Name: name, Args: args}
	}
	tee := func(text string, s pipe.Save, args ...string) pipe.Command {
		return pipe.Command{Text: text, Name: "tee", Args: args, Save: &s}
	}
	want := []pipe.Line{
		{Dir: ".", Commands: []pipe.Command{command("tail -n 100 app.log", "tail", "-n", "100", "app.log"), command("rg ERROR", "rg", "ERROR"), command("awk '{print $3}'", "awk", "{print $3}"), command("sort -u", "sort", "-u")}},
		{Dir: "a", Commands: []pipe.Command{command("ls", "ls"), tee("tee -a -- -x", pipe.Save{Path: "a/-x", Append: true, Oversize: true}, "-a", "--", "-x"), command("head -1", "head", "-1")}},
		{Dir: "a", Commands: []pipe.Command{command("ls", "ls"), tee("tee ../x --append", pipe.Save{Path: "x", Append: true}, "../x", "--append")}},
		{Dir: ".", Commands: []pipe.Command{tee("tee", pipe.Save{Path: "a/f", Append: true})}},
	}
	if diff := cmp.Diff(want, e.lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestFailures: a failure of the engine is the error of the call; other errors are texts with a kind.
func TestFailures(t *testing.T) {
	failing := &echo{says: func(pipe.Line, string) (string, error) {
		return "", &pipe.Failure{Code: "COMMAND_FAILED", Detail: "it broke", Use: "repair <it>"}
	}}
	c := open(t, pipe.Options{}, failing)
	const want = `{"error":{"code":"COMMAND_FAILED","detail":"it broke","suggestion":"repair <it>"}}`
	for tool, args := range map[string]string{"pipe": `{"command":"ls"}`, "write": `{"path":"x","content":""}`} {
		if r := c.Call(t, tool, args); !r.Error || r.Text != want {
			t.Errorf("%s: got %s", tool, r.Text)
		}
	}
	if r := open(t, pipe.Options{}, nil).Call(t, "pipe", `{"command":"ls"}`); !r.Error || !strings.Contains(r.Text, `"code":"SANDBOX_UNAVAILABLE"`) {
		t.Errorf("without an engine: %s", r.Text)
	}
	if r := c.Call(t, "pipe", `{"command":"ls","cd":"a"}`); !r.Error || !strings.HasPrefix(r.Text, "InvalidArgument: ") {
		t.Errorf("an unknown argument: %s", r.Text)
	}
}
