package sandboxtest

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// opens is a driver that counts the workers that it starts.
type opens struct {
	sandbox.Driver

	mu     sync.Mutex
	opened int
}

func (c *opens) Open(ctx context.Context, caller string) (io.ReadWriteCloser, error) {
	c.mu.Lock()
	c.opened++
	c.mu.Unlock()
	return c.Driver.Open(ctx, caller)
}

func (c *opens) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// openFor opens a session of a caller, which the test has to close.
func openFor(t *testing.T, p *sandbox.Pool, caller string) stages.Session {
	t.Helper()
	s, err := p.Open(t.Context(), caller)
	if err != nil {
		t.Fatalf("opening a session of %s: %v", caller, err)
	}
	return s
}

// spare are commands that read what a run before may have left, and what they write if there is nothing: a directory that
// programs may write in, files beside them, the environment, what a filter was given.
var spare = []struct {
	command stages.Command
	in, out string
}{
	{command("jq", "-c", "-n", "[$ENV, env]"), "", ""},
	{command("jq", "-c", "[., input_line_number]"), "1", "[1,1]\n"},
	{each(command("jq", "-c", "[., input_line_number]")), "1", "[1,1]\n"},
	{command("awk", `BEGIN{for (k in ENVIRON) n++; print (ENVIRON["TMPDIR"] == ""), n}`), "", ""},
	{command("sort", "-S", "32K", "-r"), "a\nb\n", "b\na\n"},
}

// testTenants has one caller's runs follow each other in one worker. A run that does all that commands can do, and all
// that goes wrong, leaves nothing that the next one sees, finds used up, or is told.
func testTenants(t *testing.T, open func() sandbox.Driver) {
	driver := &opens{Driver: open()}
	p := newPool(t, func() sandbox.Driver { return driver }, sandbox.Options{Warm: -1, Lasting: true})
	look := func(s stages.Session) (said []string) {
		for _, test := range spare {
			out, err := run(t.Context(), prepare(t, s, nil, test.command), test.in)
			if err != nil {
				out += " " + asError(t, err).Msg
			}
			if test.out != "" && out != test.out {
				t.Errorf("%s %q: got %q, want %q", test.command.Name, test.command.Args, out, test.out)
			}
			said = append(said, out)
		}
		return said
	}
	first := openFor(t, p, "a")
	clean := look(first)
	first.Close()
	before := driver.count()
	for range 3 {
		hostile := openFor(t, p, "a")
		riot(t, hostile)
		old := prepare(t, hostile, nil, command("wc", "-c"))
		if err := hostile.Close(); err != nil {
			t.Fatal(err)
		}
		next := openFor(t, p, "a")
		if out, err := run(t.Context(), old, "abc"); err == nil {
			t.Errorf("a filter of the run before ran in the next: %q", out)
		}
		for i, out := range look(next) {
			if out != clean[i] {
				t.Errorf("%s %q: after a hostile run got %q, before %q", spare[i].command.Name, spare[i].command.Args, out, clean[i])
			}
		}
		_, err := run(t.Context(), prepare(t, next, nil, withInputs(1, []string{"secret"}, "grep", "-f", "@secret")), "hush\n")
		if err == nil || !strings.Contains(err.Error(), "has not been kept") {
			t.Errorf("the input of the run before: got %v, want that it is not there", err)
		}
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// The worker that has refused a command serves nobody else: it was the last run of each but the first.
	if n := driver.count() - before; n != 2 {
		t.Errorf("%d workers were started, want one for every two runs", n)
	}
}

// riot is a run that uses all that a worker keeps for a run, and leaves as much of it as it can.
func riot(t *testing.T, s stages.Session) {
	t.Helper()
	keep(t, s, 1, "secret", "hush\n")
	for _, test := range []struct {
		command stages.Command
		in      string
	}{
		{withInputs(1, []string{"secret"}, "grep", "-f", "@secret"), "hush\n"},
		{command("sort", "-S", "32K"), strings.Repeat("many lines that are spilled to the disk\n", 50_000)},
		{each(command("jq", "-c", ". as $kept | $kept")), `{"left":"behind"}`},
		{command("jq", "-c", "--arg", "x", "left", "$x, error(\"no\")"), "1"},
		{command("awk", "BEGIN{exit 7}"), ""},
		{command("grep", "nothing"), "x"},
	} {
		_, err := run(t.Context(), prepare(t, s, nil, test.command), test.in)
		if err != nil && asError(t, err).Code != stages.CommandFailed {
			t.Errorf("%s: %v", test.command.Name, err)
		}
	}
	// Many items under way to the process that is kept for them.
	jobs := newJobs(strings.Split(strings.Repeat(`{"left":"behind"} `, 200), " ")...)
	mapAll(t, mapper(t, s, nil, command("jq", "-c", ". as $kept | $kept")), 2, jobs...)
	for _, j := range jobs {
		if j.err != nil || strings.TrimSpace(j.out.String()) != j.in {
			t.Errorf("item %q: got %q, %v", j.in, j.out.String(), j.err)
		}
	}
}

// testTenancy looks at who gets whose worker.
func testTenancy(t *testing.T, open func() sandbox.Driver) {
	driver := &opens{Driver: open()}
	p := newPool(t, func() sandbox.Driver { return driver }, sandbox.Options{Warm: -1, Lasting: true})
	quick := command("awk", "BEGIN{for(;;);}")
	quick.Timeout = 100 * time.Millisecond
	plain := func(t *testing.T, s stages.Session) {
		if out, err := run(t.Context(), prepare(t, s, nil, command("wc", "-c")), "abc"); err != nil || out != "3\n" {
			t.Errorf("got %q, %v", out, err)
		}
	}
	for _, test := range []struct {
		name, caller string
		work         func(t *testing.T, s stages.Session)
		workers      int // that are started for this run
	}{
		{"the first run", "a", plain, 1},
		{"the next one", "a", plain, 0},
		{"another caller", "b", plain, 1},
		{"the first caller again", "a", plain, 0},
		{"a command that fails", "a", func(t *testing.T, s stages.Session) {
			_, _ = run(t.Context(), prepare(t, s, nil, command("awk", "BEGIN{exit 3}")), "")
		}, 0},
		{"after a command that failed, a timeout", "a", func(t *testing.T, s stages.Session) {
			_, _ = run(t.Context(), prepare(t, s, nil, quick), "")
		}, 0},
		{"after a timeout, one that is cancelled", "a", func(t *testing.T, s stages.Session) {
			ctx, cancel := context.WithCancel(t.Context())
			out := writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
			_ = prepare(t, s, nil, command("awk", `BEGIN{for(;;) print "x"}`))(ctx, strings.NewReader(""), out)
		}, 1},
		{"after one that was cancelled", "a", plain, 1},
		{"somebody", stages.Anybody, plain, 1},
		{"somebody else", stages.Anybody, plain, 1},
		{"nobody", "", plain, 1},
		{"nobody again", "", plain, 1},
	} {
		before := driver.count()
		s := openFor(t, p, test.caller)
		test.work(t, s)
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if n := driver.count() - before; n != test.workers {
			t.Errorf("%s: %d workers were started, want %d", test.name, n, test.workers)
		}
	}
	one, two := openFor(t, p, "a"), openFor(t, p, "a")
	plain(t, one)
	plain(t, two)
	one.Close()
	plain(t, two)
	two.Close()
}
