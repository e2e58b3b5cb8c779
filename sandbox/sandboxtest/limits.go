package sandboxtest

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

func testTimeout(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	for _, test := range []struct {
		name    string
		command stages.Command
	}{
		{"awk", command("awk", "BEGIN{for(;;);}")},
		{"sed", command("sed", ":a;ba")},
		{"jq", command("jq", "def f: f; f")},
		{"sleep", command("sleep", "100")},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.command.Timeout = 300 * time.Millisecond
			f := prepare(t, s, nil, command("tr", "a", "b"), test.command, command("wc", "-c"))
			start := time.Now()
			_, err := run(t.Context(), f, "{}\n")
			e := asError(t, err)
			if e.Code != stages.Timeout || e.Place != "2" || !strings.Contains(e.Msg, "300ms") {
				t.Errorf("got %s at %s: %s; want %s at 2, naming 300ms", e.Code, e.Place, e.Msg, stages.Timeout)
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

// testWaitingIsFree makes a command wait for its input, and then for its reader, longer than its timeout.
func testWaitingIsFree(t *testing.T, open func() sandbox.Driver) {
	const (
		timeout = 5 * time.Second // a loaded machine holds up what works, too
		waiting = 6 * timeout / 5 // is what is tested, no synchronisation
		size    = 8 << 20         // more than fits between the command and its reader
	)
	c := command("tr", "a", "b")
	c.Timeout = timeout
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "a\n")
		time.Sleep(waiting)
		_, _ = io.Copy(w, &endless{text: "aaaaaaa\n", n: size - 2})
		w.Close()
	}()
	n := 0
	out := writerFunc(func(p []byte) (int, error) {
		if n < size/2 && n+len(p) >= size/2 {
			time.Sleep(waiting)
		}
		n += len(p)
		return len(p), nil
	})
	if err := prepare(t, newSession(t, open), nil, c)(t.Context(), r, out); err != nil || n != size {
		t.Errorf("got %d bytes, %v, want %d", n, err, size)
	}
}

func testLimits(t *testing.T, open func() sandbox.Driver) {
	s := openSession(t, newPool(t, open, sandbox.Options{Warm: -1, Budget: sandbox.Budget{Memory: int64(parttest.Times(192<<20, 2*sandbox.Memory))}}))
	for _, test := range []struct {
		name  string
		chain []stages.Command
		code  stages.Code
		msg   string
	}{
		{"memory of awk", []stages.Command{command("awk", "BEGIN{s=\"x\";while(1)s=s s}")}, stages.LimitExceeded, "memory"},
		{"memory of jq", []stages.Command{command("jq", "-n", "[limit(1000000000; repeat(\"xxxxxxxx\"))]")}, stages.LimitExceeded, "memory"},
		{"memory of shuf", []stages.Command{command("shuf", "-i", "1-9999999999")}, stages.LimitExceeded, "memory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := run(t.Context(), prepare(t, s, nil, test.chain...), "null")
			e := asError(t, err)
			if e.Code != test.code || !strings.Contains(e.Msg, test.msg) || e.Hint == "" || len(e.Msg) > 200 {
				t.Errorf("got %s: %s (%s), want %s with %q, short, and a hint", e.Code, e.Msg, e.Hint, test.code, test.msg)
			}
		})
	}
	t.Run("disk", func(t *testing.T) {
		r := newRaw(t, open) // with a smaller limit than that of a session
		_, _, failure, err := r.run(t.Context(), "sort", []string{"-S1M"}, &endless{text: "x y\n", n: 200 << 20})
		if err != nil || failure == nil || failure.Reason != wire.DiskLimit {
			t.Errorf("got %v, want %s", err, wire.DiskLimit)
			if failure != nil {
				t.Logf("reason %s, standard error %q", failure.Reason, failure.Stderr)
			}
		}
	})
	t.Run("standard error", func(t *testing.T) {
		// Far more complaints than are kept, all different.
		in := &endless{text: "{\"a\":1}\n", n: 4 << 20}
		var out bytes.Buffer
		err := prepare(t, s, nil, command("jq", ".a.b"))(t.Context(), in, &out)
		if e := asError(t, err); e.Code != stages.CommandFailed || len(e.Msg) > 4<<10 {
			t.Errorf("got %s and a message of %d bytes, want %s and at most 4 KiB", e.Code, len(e.Msg), stages.CommandFailed)
		}
	})
}

// testComplaints (S11) has a program complain about 16 MiB of lines, 256 MiB at night. All of it is taken, or the program would wait for
// ever; the beginning and the end are kept, and how much was between them is said.
func testComplaints(t *testing.T, open func() sandbox.Driver) {
	r := newRaw(t, open)
	if !r.can("numfmt") {
		t.Skip("numfmt is not installed")
	}
	size := int64(16 << 20)
	if !testing.Short() {
		size = int64(parttest.Times(16<<20, 256<<20))
	}
	id, err := wire.Prepare(wire.Chain{Memory: sandbox.Memory, Disk: rawDisk, Commands: []wire.Command{
		{Name: "numfmt", Argv: []string{"numfmt", "--invalid=fail"}, Timeout: 10 * time.Minute},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.client.Run(id)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		in := &endless{text: strings.Repeat("a", 3900) + "\n" + strings.Repeat("b", 3900) + "\n", n: size}
		if _, err := io.Copy(onlyWriter{s}, in); err == nil {
			_ = s.End()
		}
	}()
	passed, err := io.Copy(io.Discard, onlyReader{s})
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Outcome()
	if err != nil || o.Failure == nil || o.Failure.Reason != wire.Exit {
		t.Fatalf("got %+v, %v, want that numfmt fails", o.Failure, err)
	}
	if passed < size {
		t.Errorf("%d of %d bytes were passed on", passed, size)
	}
	said := o.Failure.Stderr
	var dropped int64
	if _, note, ok := strings.Cut(said, "\n["); ok {
		_, _ = fmt.Sscanf(note, "%d bytes left out]", &dropped)
	}
	if len(said) > 65<<10 || dropped+int64(len(said)) < size {
		t.Errorf("%d bytes are kept and %d left out, want at most 64 KiB and all of the %d", len(said), dropped, size)
	}
	if !strings.HasPrefix(said, "numfmt: invalid number: ") || !strings.HasSuffix(said, "\n") {
		t.Errorf("kept is %.100q, want the beginning and the end", said)
	}
}

func testPlan(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1, Commands: []string{"jq", "sort"}})
	for _, test := range []struct {
		command stages.Command
		code    stages.Code
	}{
		{command("jq", "."), ""},
		{command("jq", ".["), stages.DisallowedArgument},
		{command("sort", "-o", "x"), stages.DisallowedArgument},
		{command("grep", "x"), stages.DisallowedCommand},
		{command("sh", "-c", "id"), stages.DisallowedCommand},
	} {
		_, err := check(t, p, test.command)
		if test.code == "" {
			if err != nil {
				t.Errorf("%v: %v", test.command, err)
			}
			continue
		}
		e := asError(t, err)
		if e.Hint == "" {
			t.Errorf("%v: no hint: %v", test.command, e)
		}
		if e.Code != test.code && e.Code != stages.InvalidArguments {
			t.Errorf("%v: got %s, want %s", test.command, e.Code, test.code)
		}
	}
	if n := len(p.Report().Programs); n != 2 {
		t.Errorf("the report lists %d programs, want the 2 that are allowed", n)
	}
	if _, err := sandbox.New(t.Context(), sandbox.Options{Driver: open(), Commands: []string{"nosuch"}}); err == nil {
		t.Error("an unknown name on the allow list was accepted")
	}
}
