package sandboxtest

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// opens is a driver that counts the workers that are started, in a container of their own or not.
type opens struct {
	sandbox.Driver

	mu     sync.Mutex
	opened int
}

func (c *opens) Open(ctx context.Context) (sandbox.Worker, error) {
	w, err := c.Driver.Open(ctx)
	return c.add(w), err
}

func (c *opens) add(w sandbox.Worker) sandbox.Worker {
	if w == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened++
	return &replaced{w, c}
}

type replaced struct {
	sandbox.Worker
	opens *opens
}

func (w *replaced) Replace() sandbox.Worker { return w.opens.add(w.Worker.Replace()) }

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

// testLeases has one caller's runs follow each other in one worker. A run that does all that commands can do, and all
// that goes wrong, leaves nothing that the next one sees, finds used up, or gets.
func testLeases(t *testing.T, open func() sandbox.Driver) {
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
	before, after := driver.count(), 0
	for range 3 {
		hostile := openFor(t, p, "a")
		riot(t, hostile)
		old := prepare(t, hostile, nil, command("wc", "-c"))
		if err := hostile.Close(); err != nil {
			t.Fatal(err)
		}
		next := openFor(t, p, "a")
		after = driver.count() // where there is a container, another worker may be started when this run ends
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
	if n := after - before; n != 2 {
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
	before := driver.count()
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
		{"nobody", "", plain, 1},
		{"nobody again", "", plain, 1},
		{"somebody", stages.Anonymous, plain, 1},
		{"somebody else", stages.Anonymous, plain, 1},
	} {
		s := openFor(t, p, test.caller)
		n := driver.count() - before // since the run before has begun: its end can start a worker
		before += n
		test.work(t, s)
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if n != test.workers {
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

// testFailureBeside has a run fail while another one of the same caller streams through a worker that has served that
// caller before. The one that streams goes on.
func testFailureBeside(t *testing.T, open func() sandbox.Driver) {
	c := &cutter{Driver: open()}
	driver := &opens{Driver: c}
	p := newPool(t, func() sandbox.Driver { return driver }, sandbox.Options{Warm: -1, Lasting: true, Budget: sandbox.Budget{Memory: 70 << 20}})
	endless := command("awk", `BEGIN{print "x"; fflush(); for(;;);}`)
	short := endless
	short.Timeout = 100 * time.Millisecond
	for _, test := range []struct {
		name    string
		command stages.Command
		wrote   func() // when the command has written something
		code    stages.Code
	}{
		{"the worker is lost", endless, c.cut, stages.Internal},
		{"a limit of memory", hoarder, func() {}, stages.LimitExceeded},
		{"a timeout", short, func() {}, stages.Timeout},
	} {
		openFor(t, p, "a").Close()
		before := driver.count()
		streaming := openFor(t, p, "a")
		if driver.count() != before {
			t.Fatalf("%s: the run that streams has a new worker, want one that has served its caller", test.name)
		}
		lines := streamThrough(t, streaming)
		lines.pass("before\n")
		other := openFor(t, p, "a")
		failed := make(chan struct{})
		err := prepare(t, other, nil, test.command)(t.Context(), io.MultiReader(strings.NewReader("x\n"), waiter(failed)),
			writerFunc(func(b []byte) (int, error) {
				test.wrote()
				return len(b), nil
			}))
		close(failed)
		if code := asError(t, err).Code; code != test.code {
			t.Errorf("%s: the other run ended with %s: %v, want %s", test.name, code, err, test.code)
		}
		other.Close()
		lines.pass("after\n")
		lines.in.Close()
		if err := <-lines.ended; err != nil {
			t.Errorf("%s: the run that streams ended with %v", test.name, err)
		}
		streaming.Close()
	}
}

// A stream is a command under way that passes on each line.
type stream struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	ended chan error
}

func streamThrough(t *testing.T, s stages.Session) stream {
	t.Helper()
	f := prepare(t, s, nil, command("awk", "{print; fflush()}"))
	in, write := io.Pipe()
	read, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := f(t.Context(), in, out)
		out.CloseWithError(err)
		ended <- err
	}()
	return stream{t, write, bufio.NewReader(read), ended}
}

// pass sends a line and waits until it comes out.
func (s stream) pass(line string) {
	s.t.Helper()
	_, _ = io.WriteString(s.in, line) // where that fails, nothing comes out
	if got, err := s.out.ReadString('\n'); got != line {
		s.t.Fatalf("the run that streams gave %q, %v, want %q", got, err, line)
	}
}
