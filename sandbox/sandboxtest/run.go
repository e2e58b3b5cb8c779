package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// A suite is a part of the contract.
type suite struct {
	name string
	run  func(*testing.T, func() sandbox.Driver)
}

// ofBackend are the suites of what a backend, a container or its kernel can change.
var ofBackend = []suite{
	{"report", testReport},
	{"chains", testChains},
	{"usage", testUsage},
	{"bulk", testBulk},
	{"binary", testBinary},
	{"concurrent", testConcurrent},
	{"early stop", testEarlyStop},
	{"early stop of the reader", testReaderStops},
	{"slow reader", testSlowReader},
	{"failing input", testFailingInput},
	{"cancel", testCancel},
	{"timeout", testTimeout},
	{"waiting is not counted", testWaitingIsFree},
	{"limits", testLimits},
	{"budgets of a run", testBudgets},
	{"plan", testPlan},
	{"limits of a check", testCheckLimits},
	{"inputs", testInputs},
	{"inputs that end early", testInputCancel},
	{"limit of inputs", testInputLimit},
	{"inputs in the jail", testInputJail},
	{"one process for some items", testKeptFew},
	{"flow of items in one process", testKeptFlow},
	{"one process for many programs", testReused},
	{"some items under way", testMappedFew},
	{"runs of one caller", testLeases},
	{"whose worker", testTenancy},
	{"a failure beside a run", testFailureBeside},
	{"lost worker", testLost},
	{"not started", testNotStarted},
	{"pool", testPool},
	{"attacks without the guard", testSomeOnJail},
	{"files without the guard", testFilesOnJail},
	{"probe", testProbe},
}

// ofWorker are the suites of what the worker alone decides.
var ofWorker = []suite{
	{"parts", testParts},
	{"parts that are full", testPartsFull},
	{"a writer that loses its reader", testWriterLosesReader},
	{"flood of complaints", testComplaints},
	{"pages", testPages},
	{"scripts", testScripts},
	{"scripts in pipelines", testScriptPipelines},
	{"costly scripts", testCostlyScripts},
	{"a plan with a costly script", testCostlyPlan},
	{"inputs of jq", testInputsOfJQ},
	{"errors of inputs", testInputErrors},
	{"inputs in pipelines", testInputPipelines},
	{"one process for many items", testKept},
	{"items that fail in one process", testKeptFaults},
	{"programs that fail in one process", testReusedFaults},
	{"many items under way", testMapped},
	{"items that fail among many", testMappedFaults},
	{"ends of many items", testMappedEnds},
	{"many lines in one process", testMappedLines},
	{"lines for a reader that stops", testLinesForReader},
	{"attacks", testAttacks},
	{"all attacks without the guard", testAttacksOnJail},
	{"attacks without an end and the guard", testEndlessOnJail},
}

// Run runs the contract. open returns a new driver, which is closed by who gets it.
func Run(t *testing.T, open func() sandbox.Driver) {
	runAll(t, open, ofBackend)
	runAll(t, open, ofWorker)
}

// RunAgain runs the contract where another test runs all of it with the same worker: by day only what a backend can change.
func RunAgain(t *testing.T, open func() sandbox.Driver) {
	runAll(t, open, ofBackend)
	if parttest.Night() {
		runAll(t, open, ofWorker)
	}
}

// alone is the suite that measures this process. The others overlap: much of their time they wait.
const alone = "bulk"

func runAll(t *testing.T, open func() sandbox.Driver, suites []suite) {
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			if s.name != alone {
				t.Parallel()
			}
			s.run(t, open)
		})
	}
}

// newPool returns a pool that ends with the test.
func newPool(t *testing.T, open func() sandbox.Driver, o sandbox.Options) *sandbox.Pool {
	t.Helper()
	o.Driver = open()
	p, err := sandbox.New(t.Context(), o)
	if err != nil {
		t.Fatalf("probing the backend: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the pool: %v", err)
		}
	})
	return p
}

// newSession returns a session of a new pool.
func newSession(t *testing.T, open func() sandbox.Driver) stages.Session {
	t.Helper()
	return openSession(t, newPool(t, open, sandbox.Options{Warm: -1}))
}

func openSession(t *testing.T, p *sandbox.Pool) stages.Session {
	t.Helper()
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatalf("opening a session: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// loopTime is what an item that does not end gets, in which the others have to be done. It takes a processor all that time.
var loopTime = time.Duration(parttest.Times(4, 10)) * time.Second

// command is a command with a timeout that no test needs, unless it says so.
func command(name string, args ...string) stages.Command {
	return stages.Command{Name: name, Args: args, Timeout: 60 * time.Second}
}

// check checks a command as the only one of a plan, which does not run.
func check(t *testing.T, p *sandbox.Pool, c stages.Command) (stages.Traits, error) {
	t.Helper()
	plan := p.Plan("somebody", "", "")
	defer plan.Close()
	return plan.Check(t.Context(), c)
}

func prepare(t *testing.T, s stages.Session, used func(int, stages.Usage), chain ...stages.Command) stages.Filter {
	t.Helper()
	f, err := s.Prepare(chain, used)
	if err != nil {
		t.Fatalf("Prepare(%v): %v", chain, err)
	}
	return f
}

// run runs a chain on a text.
func run(ctx context.Context, f stages.Filter, in string) (string, error) {
	var out bytes.Buffer
	err := f(ctx, bytes.NewReader([]byte(in)), &out)
	return out.String(), err
}

// asError returns err as what every failure of a filter must be.
func asError(t *testing.T, err error) *stages.Error {
	t.Helper()
	var e *stages.Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want a *stages.Error", err)
	}
	return e
}

// An endless reader repeats a text, n bytes of it if n is not zero, and counts what was read.
type endless struct {
	text  string
	n     int64
	read  int64
	block string // the text several times: the race detector looks at every copy
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n > 0 {
		if e.read >= e.n {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), e.n-e.read)]
	}
	if e.block == "" {
		e.block = strings.Repeat(e.text, 1+32<<10/len(e.text))
	}
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.block[int((e.read+int64(n))%int64(len(e.block))):])
	}
	e.read += int64(n)
	return n, nil
}
