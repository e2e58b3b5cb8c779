package sandboxtest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// concurrency is how many attacks run side by side.
const concurrency = 4

// attacksJSON holds what has been tried against command stages.
//
//go:embed testdata/attacks.json
var attacksJSON []byte

// An attack is a command that must not do what it is meant to do. In Args and Input the words of [canary.words] stand
// for what it is after.
type attack struct {
	ID      string   `json:"id"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Input   string   `json:"input"`
	Bytes   int64    `json:"bytes,omitempty"` // of input: Input again and again; 0: Input once
	Why     string   `json:"why"`             // it would be bad, or what must become of it
	Guard   outcome  `json:"guard"`           // of the command as an agent sends it
	Jail    outcome  `json:"jail"`            // of the same past the grammar
}

// An outcome is how an attack must end. In any case the canary must be untouched.
type outcome string

const (
	refused  outcome = "refused"  // before anything runs
	fails    outcome = "fails"    // by itself, or at a limit
	bounded  outcome = "bounded"  // at a limit of time, memory, disk or output
	harmless outcome = "harmless" // anyhow: it does not do what it is meant to
	absent   outcome = "absent"   // no worker has the program, or no process can be given the argument
)

// holds says whether an attack has ended as it must. code is empty for a success; cut says that its output was stopped.
func (o outcome) holds(code stages.Code, cut bool) bool {
	limit := cut || code == stages.LimitExceeded || code == stages.Timeout
	switch o {
	case fails:
		return limit || code == stages.CommandFailed
	case bounded:
		return limit
	}
	return o == harmless
}

// rawCodes is how the gateway would call what a worker reports.
var rawCodes = map[wire.Reason]stages.Code{
	wire.Exit: stages.CommandFailed, wire.Signal: stages.CommandFailed,
	wire.Timeout: stages.Timeout, wire.CPULimit: stages.LimitExceeded, wire.MemoryLimit: stages.LimitExceeded,
	wire.DiskLimit: stages.LimitExceeded,
}

func (a attack) input() io.Reader {
	if a.Bytes > 0 {
		return &endless{text: a.Input, n: a.Bytes}
	}
	return strings.NewReader(a.Input)
}

// big says that an attack takes more time than a short test has.
func (a attack) big() bool { return a.Bytes > 8<<20 }

// attacks returns all attacks, aimed at the canary.
func attacks(t *testing.T, c *canary) []attack {
	t.Helper()
	var all []attack
	if err := json.Unmarshal(attacksJSON, &all); err != nil {
		t.Fatal(err)
	}
	aim := strings.NewReplacer(c.words()...)
	for i := range all {
		a := &all[i]
		a.Command, a.Input = aim.Replace(a.Command), aim.Replace(a.Input)
		for j := range a.Args {
			a.Args[j] = aim.Replace(a.Args[j])
		}
	}
	return all
}

// attackTime and rawTime bound one attack.
var (
	attackTime = time.Duration(parttest.Times(400, 1000)) * time.Millisecond
	rawTime    = time.Duration(parttest.Times(600, 1500)) * time.Millisecond
)

// time is what an attack gets of one of them: all, but those that take all of it get half by day.
func (o outcome) time(all time.Duration) time.Duration {
	if o == bounded && !parttest.Night() {
		return all / 2
	}
	return all
}

// attackOutput is where an attack is stopped; rawDisk is its limit on disk.
const (
	rawDisk      = 64 << 20
	attackOutput = 1 << 20
)

// capped keeps what an attack says, up to attackOutput, and then wants no more.
type capped struct {
	bytes.Buffer
	cut bool
}

func (c *capped) Write(p []byte) (int, error) {
	if c.Len() > attackOutput {
		c.cut = true
		return 0, io.ErrClosedPipe
	}
	return c.Buffer.Write(p)
}

// testAttacks sends every attack the way an agent would.
func testAttacks(t *testing.T, open func() sandbox.Driver) {
	c := newCanary(t)
	p := newPool(t, open, sandbox.Options{Warm: -1})
	s := openSession(t, p)
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, a := range attacks(t, c) {
		if a.big() && testing.Short() {
			continue
		}
		cmd := stages.Command{Name: a.Command, Args: a.Args, Timeout: a.Guard.time(attackTime)}
		if _, err := check(t, p, cmd); err != nil {
			e := asError(t, err)
			if e.Hint == "" && a.Guard == refused && !strings.Contains(e.Msg, "syntax error") {
				t.Errorf("%s: refused without a hint: %v", a.ID, err)
			}
			if a.Guard == harmless && e.Code != stages.LimitExceeded && !strings.Contains(e.Msg, "not available here") {
				t.Errorf("%s: %s %.200q was refused: %v; want that it %s (%s)", a.ID, a.Command, a.Args, err, a.Guard, a.Why)
			}
			if a.Guard == refused || e.Code == stages.DisallowedCommand {
				continue
			}
			// A command that its check refuses runs all the same: the jail has to hold without the check.
		}
		if a.Guard == refused {
			t.Errorf("%s: %s %.200q was accepted, want a refusal (%s)", a.ID, a.Command, a.Args, a.Why)
			continue
		}
		group.Go(func() error {
			var out capped
			f, err := s.Prepare([]stages.Command{cmd}, nil)
			if err == nil {
				err = f(t.Context(), a.input(), &out)
			}
			c.check(t, a.ID, out.String()+fmt.Sprint(err))
			var code stages.Code
			if err != nil {
				code = asError(t, err).Code
			}
			if !a.Guard.holds(code, out.cut) {
				t.Errorf("%s: %s %.200q ended with %v; want that it is %s (%s)", a.ID, a.Command, a.Args, err, a.Guard, a.Why)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	if out, err := run(t.Context(), prepare(t, s, nil, command("wc", "-c")), "abc"); err != nil || out != "3\n" {
		t.Errorf("after all attacks: got %q, %v", out, err)
	}
}

// A raw connection sends arguments to a worker that the grammar has not seen.
type raw struct {
	client  *wire.Client
	timeout time.Duration // of a run: more than one needs on a busy machine, unless the run is an attack
}

func newRaw(t *testing.T, open func() sandbox.Driver) raw {
	t.Helper()
	d := open()
	rwc, err := d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, err := wire.Dial(t.Context(), rwc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		d.Close()
	})
	return raw{client, 5 * time.Minute}
}

// can says whether the worker has a program.
func (r raw) can(name string) bool {
	for _, f := range r.client.Hello().Programs {
		if f.Name == name {
			return f.Refusal == ""
		}
	}
	return false
}

// run returns everything that a command has said, also on standard error, and whether its output was cut.
func (r raw) run(ctx context.Context, name string, args []string, in io.Reader) (string, bool, *wire.Failure, error) {
	first := name
	if p, ok := programs.Find(name); ok && p.Bin != "" {
		first = p.Bin
	}
	id, err := wire.Prepare(wire.Chain{Memory: sandbox.Memory, Disk: rawDisk, Commands: []wire.Command{
		{Name: name, Argv: append([]string{first}, args...), Timeout: r.timeout},
	}})
	if err != nil {
		return "", false, nil, err
	}
	s, err := r.client.Run(id)
	if err != nil {
		return "", false, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Cancel() })
	defer stop()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if _, err := io.Copy(onlyWriter{s}, in); err == nil {
			_ = s.End()
		}
	}()
	var out capped
	if _, err := io.Copy(&out, onlyReader{s}); err != nil {
		_ = s.Cancel()
	}
	o, err := s.Outcome()
	<-fed
	said := out.String()
	if o.Failure != nil {
		said += o.Failure.Stderr
	}
	return said, out.cut, o.Failure, err
}

type onlyWriter struct{ io.Writer }

type onlyReader struct{ io.Reader }

// testAttacksOnJail sends every attack past the grammar: the jail alone must hold.
func testAttacksOnJail(t *testing.T, open func() sandbox.Driver) {
	attackJail(t, open, func(a attack) bool { return a.Jail != bounded })
}

// testSomeOnJail does so with the first attack of each program that ends in each way: testFilesOnJail has what else a program can do.
func testSomeOnJail(t *testing.T, open func() sandbox.Driver) {
	attackJail(t, open, firsts(func(a attack) bool { return a.Jail != bounded }))
}

// testEndlessOnJail does so with those that the limits of the worker end: by day with the first of each program, since testAttacks
// runs them all.
func testEndlessOnJail(t *testing.T, open func() sandbox.Driver) {
	endless := func(a attack) bool { return a.Jail == bounded }
	if !parttest.Night() {
		endless = firsts(endless)
	}
	attackJail(t, open, endless)
}

// firsts returns a choice of the attacks that are wanted: the first of each program that ends in each way.
func firsts(wanted func(attack) bool) func(attack) bool {
	type kind struct {
		command string
		ends    outcome
	}
	tried := map[kind]bool{}
	return func(a attack) bool {
		k := kind{a.Command, a.Jail}
		first := !tried[k]
		tried[k] = true
		return first && wanted(a)
	}
}

// attackJail sends some of the attacks.
func attackJail(t *testing.T, open func() sandbox.Driver, wanted func(attack) bool) {
	t.Helper()
	c := newCanary(t)
	r := newRaw(t, open)
	var group errgroup.Group
	group.SetLimit(concurrency)
	for _, a := range attacks(t, c) {
		if !wanted(a) {
			continue
		}
		if _, known := programs.Find(a.Command); known && a.Jail != absent && !r.can(a.Command) {
			continue // not installed here
		}
		if strings.ContainsRune(strings.Join(a.Args, ""), 0) || a.big() && testing.Short() {
			continue
		}
		attacker := raw{r.client, a.Jail.time(rawTime)}
		group.Go(func() error {
			said, cut, failure, err := attacker.run(t.Context(), a.Command, a.Args, a.input())
			if err != nil {
				return fmt.Errorf("%s: %w", a.ID, err)
			}
			c.check(t, a.ID, said)
			var code stages.Code
			if failure != nil {
				code = rawCodes[failure.Reason]
			}
			started := failure == nil || failure.Reason != wire.Refused
			if a.Jail == absent && started || a.Jail != absent && !a.Jail.holds(code, cut) {
				t.Errorf("%s: %s %.200q ended with %+v; want that it is %s (%s)", a.ID, a.Command, a.Args, failure, a.Jail, a.Why)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if said, _, _, err := r.run(t.Context(), "wc", []string{"-c"}, strings.NewReader("abc")); err != nil || said != "3\n" {
		t.Errorf("after all attacks: got %q, %v", said, err)
	}
}

// testFilesOnJail tries to read one file, and to write one, with every program that can.
func testFilesOnJail(t *testing.T, open func() sandbox.Driver) {
	c := newCanary(t)
	r := newRaw(t, open)
	r.timeout = rawTime
	written := filepath.Join(t.TempDir(), "written")
	c.traces = append(c.traces, written)
	for _, test := range []struct {
		name string
		args []string
	}{
		{"grep", []string{"", c.file}},
		{"grep", []string{"-f", c.file, "-v", "x"}},
		{"sed", []string{"-n", "p", c.file}},
		{"sed", []string{"r " + c.file}},
		{"sed", []string{"w " + written}},
		{"sed", []string{"s/x/id/e"}},
		{"awk", []string{"{print}", c.file}},
		{"awk", []string{`BEGIN{while((getline l<"` + c.file + `")>0)print l}`}},
		{"awk", []string{`BEGIN{print "x" > "` + written + `"}`}},
		{"awk", []string{`BEGIN{system("id"); "id" | getline x; print x}`}},
		{"awk", []string{`BEGIN{for (k in ENVIRON) print k, ENVIRON[k]}`}},
		{"awk", []string{`BEGIN{s="/inet/tcp/0/127.0.0.1/22"; print "x" |& s; s |& getline x; print x}`}},
		{"sort", []string{c.file}},
		{"sort", []string{"-o", written}},
		{"sort", []string{"--compress-program=id", "-S1k"}},
		{"uniq", []string{c.file}},
		{"uniq", []string{"-", written}},
		{"cut", []string{"-c1-", c.file}},
		{"wc", []string{"--files0-from=" + c.file}},
		{"head", []string{c.file}},
		{"tail", []string{c.file}},
		{"tac", []string{c.file}},
		{"nl", []string{c.file}},
		{"base64", []string{c.file}},
		{"sha256sum", []string{"-c", c.file}},
		{"date", []string{"-f", c.file}},
		{"date", []string{"-r", c.file}},
		{"bc", []string{c.file}},
		{"column", []string{c.file}},
		{"rev", []string{c.file}},
		{"paste", []string{c.file}},
		{"join", []string{c.file, c.file}},
		{"comm", []string{c.file, c.file}},
		{"shuf", []string{"-o", written, "-e", "x"}},
		{"rg", []string{"", c.file}},
		{"rg", []string{"--pre", "id", "x", c.file}},
		{"rg", []string{"--files", "/"}},
		{"jq", []string{"-n", "env, $ENV"}},
		{"jq", []string{"-f", c.file}},
		{"jq", []string{"--rawfile", "a", c.file, "$a"}},
	} {
		if !r.can(test.name) {
			t.Logf("%s: not here", test.name)
			continue
		}
		said, _, _, err := r.run(t.Context(), test.name, test.args, strings.NewReader("x y\n"))
		if err != nil {
			t.Fatalf("%s %q: %v", test.name, test.args, err)
		}
		c.check(t, fmt.Sprintf("%s %q", test.name, test.args), said)
	}
}
