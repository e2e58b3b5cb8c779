package sandboxtest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// withInputs is a command that reads named inputs.
func withInputs(set int, inputs []string, name string, args ...string) stages.Command {
	c := command(name, args...)
	c.Inputs, c.Set = inputs, set
	return c
}

func keep(t *testing.T, s stages.Session, set int, name, text string) {
	t.Helper()
	if err := s.Keep(t.Context(), set, name, strings.NewReader(text)); err != nil {
		t.Fatalf("keeping @%s: %v", name, err)
	}
}

// testInputs runs every program that reads named inputs and compares with the program itself on files of that name.
func testInputs(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	const main = "1 one\n2 two\n4 four\n"
	files := map[string]string{"b": "1 eins\n2 zwei\n3 drei\n", "c": "2 deux\n", "words": "two\nfour\n", "empty": ""}
	for i, test := range [][]string{
		{"join", "-", "@b"},
		{"join", "-a1", "-e", "-", "-o", "auto", "@b", "-"},
		{"join", "@b", "@c"},
		{"join", "-", "@empty"},
		{"comm", "-12", "-", "@b"},
		{"comm", "--total", "@b", "@c"},
		{"paste", "-d", ":", "-", "@b", "@c"},
		{"paste", "-s", "@b", "-", "@b"},
		{"grep", "-F", "-f", "@words"},
		{"grep", "-v", "-f", "@words", "-e", "one"},
		{"grep", "-c", "-f", "@empty"},
	} {
		t.Run(strings.Join(test, " "), func(t *testing.T) {
			var inputs []string
			for name := range files {
				if slices.Contains(test, "@"+name) {
					inputs = append(inputs, name)
					keep(t, s, i+1, name, files[name])
				}
			}
			got, err := run(t.Context(), prepare(t, s, nil, command("tr", "x", "x"), withInputs(i+1, inputs, test[0], test[1:]...), command("tr", "x", "x")), main)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(onFiles(t, main, files, test), got); diff != "" {
				t.Errorf("on files (-), on inputs (+):\n%s", diff)
			}
		})
	}
}

// onFiles runs a program of this machine on files that are named as inputs are.
func onFiles(t *testing.T, stdin string, files map[string]string, argv []string) string {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "@"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), path, argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, []string{"LC_CTYPE=C.UTF-8"}, strings.NewReader(stdin)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1 || argv[0] != "grep") {
		t.Fatalf("%q: %v", argv, err)
	}
	return string(out)
}

// testInputsOfJQ needs no file: jq gets descriptors.
func testInputsOfJQ(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	keep(t, s, 1, "users", `[{"id":1,"name":"Ada"},{"id":2,"name":"Bo"}]`)
	keep(t, s, 2, "a", "x\ny\n")
	keep(t, s, 2, "b", "1 2")
	keep(t, s, 3, "bad", "{\"x\": }\n")
	for _, test := range []struct {
		command stages.Command
		in, out string
		msg     string
	}{
		{
			command: withInputs(1, []string{"users"}, "jq", "-c", "--slurpfile", "users", "@users", `INDEX($users[0][]; .id) as $u | map({id, name: $u[.user|tostring].name})`),
			in:      `[{"id":7,"user":2},{"id":8,"user":1}]`, out: "[{\"id\":7,\"name\":\"Bo\"},{\"id\":8,\"name\":\"Ada\"}]\n",
		},
		{
			command: withInputs(2, []string{"a", "b"}, "jq", "-c", "--slurpfile", "b", "@b", "--rawfile", "a", "@a", "--rawfile", "again", "@a", "[., $a, $b, $again]"),
			in:      "0", out: "[0,\"x\\ny\\n\",[1,2],\"x\\ny\\n\"]\n",
		},
		{command: withInputs(3, []string{"bad"}, "jq", "--slurpfile", "a", "@bad", "."), in: "1", msg: "reading @bad: "},
	} {
		f := prepare(t, s, nil, test.command)
		for range 3 { // a prepared chain reads its inputs anew
			out, err := run(t.Context(), f, test.in)
			if test.msg != "" {
				if e := asError(t, err); e.Code != stages.CommandFailed || !strings.Contains(e.Msg, test.msg) {
					t.Errorf("got %s: %s, want %q", e.Code, e.Msg, test.msg)
				}
			} else if err != nil || out != test.out {
				t.Errorf("got %q, %v, want %q", out, err, test.out)
			}
		}
	}
}

// testInputErrors: what a program says of an input names it, and nothing of the machine.
func testInputErrors(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	keep(t, s, 1, "b", "2 x\n1 y\n")
	_, err := run(t.Context(), prepare(t, s, nil, withInputs(1, []string{"b"}, "join", "-", "@b")), "1 a\n3 b\n")
	if e := asError(t, err); e.Code != stages.CommandFailed || !strings.Contains(e.Msg, "join: @b:2: is not sorted: 1 y") || strings.Contains(e.Msg, "tmp") {
		t.Errorf("got %s: %s, want the line of @b that is not sorted", e.Code, e.Msg)
	}
	if _, err := run(t.Context(), prepare(t, s, nil, withInputs(2, []string{"b"}, "join", "-", "@b")), ""); err == nil {
		t.Error("a command ran without its input")
	}
	if err := s.Keep(t.Context(), 1, "../x", strings.NewReader("")); err == nil {
		t.Error("an input of any name was kept")
	}
	cause := errors.New("the tool before has failed")
	r, w := io.Pipe()
	w.CloseWithError(cause)
	if err := s.Keep(t.Context(), 4, "b", r); !errors.Is(err, cause) {
		t.Errorf("got %v, want the error of the input", err)
	}
	if _, err := run(t.Context(), prepare(t, s, nil, withInputs(4, []string{"b"}, "join", "-", "@b")), ""); err == nil {
		t.Error("a command ran on half an input")
	}
	keep(t, s, 4, "b", "1 x\n")
	if out, err := run(t.Context(), prepare(t, s, nil, withInputs(4, []string{"b"}, "join", "-", "@b")), "1 a\n"); err != nil || out != "1 a x\n" {
		t.Errorf("after a failure: got %q, %v", out, err)
	}
}

// testInputCancel ends an input that waits for its source, and one whose worker is lost.
func testInputCancel(t *testing.T, open func() sandbox.Driver) {
	c := &cutter{Driver: open()}
	s := openSession(t, newPool(t, func() sandbox.Driver { return c }, sandbox.Options{Warm: -1}))
	for _, test := range []struct {
		name string
		end  func(cancel func())
		code stages.Code
	}{
		{"cancelled", func(cancel func()) { cancel() }, stages.Cancelled},
		{"worker lost", func(func()) { c.cut() }, stages.Internal},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- s.Keep(ctx, 1, "b", r) }()
		if _, err := io.WriteString(w, "x\n"); err != nil { // is taken: it has begun
			t.Fatal(err)
		}
		test.end(cancel)
		select {
		case err := <-done:
			if e := asError(t, err); e.Code != test.code {
				t.Errorf("%s: got %s: %s, want %s", test.name, e.Code, e.Msg, test.code)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: the input goes on", test.name)
		}
		cancel()
		w.Close()
	}
}

// testInputLimit sends more than the disk limit, in two inputs, and then something small.
func testInputLimit(t *testing.T, open func() sandbox.Driver) {
	const limit = 8 << 20
	r := newRaw(t, open)
	send := func(name string, n int64) *wire.Failure {
		t.Helper()
		s := r.start(t, wire.Chain{Keep: &wire.Input{Set: 1, Name: name, Disk: limit}})
		if _, err := io.Copy(onlyWriter{s}, &endless{text: "x y\n", n: n}); err == nil {
			_ = s.End()
		}
		o, err := s.Outcome()
		if err != nil {
			t.Fatal(err)
		}
		return o.Failure
	}
	if f := send("a", limit/2); f != nil {
		t.Errorf("half of the limit: %+v", f)
	}
	for range 2 { // what was refused is not counted
		if f := send("b", limit/2+1); f == nil || f.Reason != wire.DiskLimit {
			t.Errorf("a little more than the limit: got %+v, want %s", f, wire.DiskLimit)
		}
	}
	if f := send("b", 1<<30); f == nil || f.Reason != wire.DiskLimit {
		t.Errorf("far more than the limit: got %+v, want %s", f, wire.DiskLimit)
	}
	if f := send("b", limit/2); f != nil {
		t.Errorf("up to the limit: %+v", f)
	}
}

// testInputJail: a program reads the inputs that it names and no other, and writes none.
func testInputJail(t *testing.T, open func() sandbox.Driver) {
	r := newRaw(t, open)
	for _, name := range []string{"mine", "other"} {
		s := r.start(t, wire.Chain{Keep: &wire.Input{Set: 1, Name: name, Disk: sandbox.Disk}})
		_, _ = io.WriteString(s, "canary of "+name+"\n")
		_ = s.End()
		if o, err := s.Outcome(); err != nil || o.Failure != nil {
			t.Fatalf("keeping %s: %+v, %v", name, o.Failure, err)
		}
	}
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"wc", "-c", "@mine"}, "15 @mine"},
		{[]string{"wc", "-c", "@other"}, "Permission denied"},
		{[]string{"wc", "-c", "./@other"}, "Permission denied"},
		{[]string{"gawk", `BEGIN{while((getline l < "@other")>0) print l; print "x" > "@mine"; close("@mine"); while((getline l < "@mine")>0) print l}`}, "redirect"},
		{[]string{"gawk", `BEGIN{print "x" > "new"}`}, "redirect"},
		{[]string{"wc", "-c", "."}, "enied"},
	} {
		name := strings.TrimPrefix(test.args[0], "g")
		if p, _ := programs.Find(name); p.Name == "" || !r.can(name) {
			continue
		}
		said := r.runWith(t, wire.Command{Name: name, Argv: test.args, Timeout: r.timeout, Set: 1, Inputs: []string{"mine"}})
		if !strings.Contains(said, test.says) || strings.Contains(said, "of other") {
			t.Errorf("%q: got %q, want %q", test.args, said, test.says)
		}
	}
}

// start starts a run.
func (r raw) start(t *testing.T, chain wire.Chain) *wire.Stream {
	t.Helper()
	prepared, err := wire.Prepare(chain)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.client.Run(prepared)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// runWith runs one command and returns what it has said.
func (r raw) runWith(t *testing.T, c wire.Command) string {
	t.Helper()
	s := r.start(t, wire.Chain{Memory: sandbox.Memory, Disk: rawDisk, Commands: []wire.Command{c}})
	_ = s.End()
	var out capped
	_, _ = io.Copy(&out, onlyReader{s})
	o, err := s.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	if o.Failure != nil {
		return out.String() + o.Failure.Stderr + o.Failure.Detail
	}
	return out.String()
}
