//go:build linux

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// soakTime is how long the gateway is kept busy.
var soakTime = flag.Duration("soak", 0, "how long TestSoak keeps the gateway busy; 0 leaves it out")

const (
	soakRounds  = 6 // after each the gateway rests and is measured; the first third is its warming up
	soakCallers = 8
)

// A soakPlan is a pipeline and how it has to end.
type soakPlan struct {
	name     string
	pipeline []object
	want     string        // in the reply
	fails    bool          // the reply is an error
	leave    time.Duration // the caller gives up after this
}

// soakPlans are what agents do, well and badly.
func soakPlans() []soakPlan {
	bulk := toolStage("odd", "bulk", object{"mb": 4})
	each := with(toolStage("odd", "get_item", nil), "for_each", true)
	delete(each, "args")
	lines := command("jq", "-n", "-c", "range(40) | {n: .}")
	return []soakPlan{
		{name: "tool", pipeline: []object{toolStage("odd", "get_item", object{"n": 7})}, want: `{"item":7}`},
		{name: "tool and jq", pipeline: []object{toolStage("odd", "get_item", object{"n": 7}), command("jq", ".item")}, want: "7"},
		{name: "for_each of a tool", pipeline: []object{lines, each, command("jq", "length")}, want: "40"},
		{name: "for_each of jq", pipeline: []object{lines, with(command("jq", "-c", "{m: .n}"), "for_each", true), command("jq", "-c", ".")}, want: `{"m":39}`},
		{name: "for_each of tr", pipeline: []object{lines, with(command("tr", "n", "N"), "for_each", true), command("grep", "-c", "N")}, want: "40"},
		{name: "many", pipeline: []object{bulk, command("jq", "-c", "{id}"), command("sort", "-r"), command("tail", "-n", "1")}, want: `{"id":0}`},
		{name: "early stop", pipeline: []object{bulk, command("head", "-n", "1")}, want: `"id":0`},
		{name: "preview", pipeline: []object{bulk, {"type": "preview"}, command("wc", "-l")}, want: "\n"},
		{name: "wrong plan", pipeline: []object{toolStage("odd", "nothing", nil)}, want: "nothing", fails: true},
		{name: "jq fails", pipeline: []object{command("jq", "-n", "1 / 0 | error(\"x\")")}, want: "Stage 1", fails: true},
		{name: "given up", pipeline: []object{command("sleep", "1")}, leave: 100 * time.Millisecond},
	}
}

// A rest is what the gateway holds when it has nothing to do.
type rest struct {
	memory, files, threads, processes int // memory in MiB
	scratch                           int // files in its directory for temporary ones
}

// TestSoak keeps a gateway busy with a mix of pipelines, and looks whether it holds more and more of anything.
func TestSoak(t *testing.T) {
	if *soakTime == 0 {
		t.Skip("-soak says how long it lasts: beside other tests too few calls finish to tell a leak from the beginning")
	}
	p, url := soaked(t)
	var rests []rest
	var calls atomic.Int64
	for range soakRounds {
		p.busyFor(t, url, *soakTime/soakRounds, &calls)
		rests = append(rests, p.rest(t))
	}
	goroutines := p.goroutines(t)
	t.Logf("%d calls, %d goroutines at the end, at rest:", calls.Load(), goroutines)
	for _, r := range rests {
		t.Logf("%+v", r)
	}
	first, last := rests[soakRounds/3], rests[soakRounds-1]
	for _, r := range rests[:soakRounds/3] {
		first.memory = max(first.memory, r.memory)
		first.threads = max(first.threads, r.threads)
		first.processes = max(first.processes, r.processes) // a slow machine may have been still starting one
		first.scratch = max(first.scratch, r.scratch)
	}
	last.memory = min(last.memory, rests[soakRounds-2].memory)
	// The Go runtime gives memory back late, so that one measurement may be high, and threads never.
	if last.memory > first.memory+first.memory/4+16 || last.threads > 2*first.threads || last.files > first.files+2 ||
		last.processes > first.processes || last.scratch > first.scratch || goroutines > 100 {
		t.Errorf("it holds more and more")
	}
}

// Workers wait for their callers for a minute: a long soak has the time to see them go, in a shorter one none wait.
const (
	longSoak   = 10 * time.Minute
	workerIdle = time.Minute
)

// soaked starts a gateway that says at its end what its goroutines were doing.
func soaked(t *testing.T) (*process, string) {
	// The gateway keeps so few outputs of runs that the first round fills the room.
	args := []string{"serve", "--listen", "127.0.0.1:0", "--keep-total", "8MiB"}
	if *soakTime < longSoak {
		args = append(args, "--sandbox-isolation", "run")
	}
	p := mcsh(t, object{"odd": child(t, "odd")}, args...)
	p.Env = append(p.Env, "GOTRACEBACK=all")
	url := p.greeted(t)
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		p.ends(t, patience)
	})
	return p, url
}

// busyFor has callers, each with a session of its own, run the plans one after another.
func (p *process) busyFor(t *testing.T, url string, d time.Duration, calls *atomic.Int64) {
	var callers sync.WaitGroup
	end := time.Now().Add(d)
	for i := range soakCallers {
		session := connect(t, &mcp.StreamableClientTransport{Endpoint: url}, versions[i%2], nil)
		callers.Go(func() {
			defer session.Close()
			plans := soakPlans()
			for n := i; time.Now().Before(end); n++ {
				plans[n%len(plans)].run(t, session)
				calls.Add(1)
			}
		})
	}
	callers.Wait()
}

func (plan soakPlan) run(t *testing.T, session *mcp.ClientSession) {
	limit := patience
	if plan.leave > 0 {
		limit = plan.leave
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	res, err := session.CallTool(ctx, pipelineCall(plan.pipeline))
	switch {
	case plan.leave > 0 && errors.Is(err, context.DeadlineExceeded):
	case err != nil:
		t.Errorf("%s: %v", plan.name, err)
	case res.IsError != plan.fails || !strings.Contains(textOf(res), plan.want):
		t.Errorf("%s: got error %t, %s", plan.name, res.IsError, clip(textOf(res)))
	}
}

// rest waits until nothing changes any more, and measures.
func (p *process) rest(t *testing.T) rest {
	t.Helper()
	still := 1200 * time.Millisecond
	if *soakTime >= longSoak {
		still += workerIdle
	}
	last, since := p.measure(t), time.Now()
	for deadline := since.Add(still + patience); time.Since(since) < still && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		now := p.measure(t)
		if now.files != last.files || now.processes != last.processes || now.scratch != last.scratch {
			since = time.Now()
		}
		last = now
	}
	return last
}

func (p *process) measure(t *testing.T) (r rest) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", p.Process.Pid)
	files, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	r.files = len(files)
	text, err := os.ReadFile(dir + "status")
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*int{"VmRSS:": &r.memory, "Threads:": &r.threads} {
		_, after, _ := strings.Cut(string(text), name)
		if _, err := fmt.Sscan(after, to); err != nil {
			t.Fatalf("there is no %s in %s", name, text)
		}
	}
	r.memory >>= 10
	r.processes = p.look(t)
	_ = filepath.WalkDir(p.tmp, func(string, fs.DirEntry, error) error { r.scratch++; return nil }) // files come and go
	return r
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ `)

// goroutines ends the gateway and returns how many goroutines it had.
func (p *process) goroutines(t *testing.T) int {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	until(t, "it has said what its goroutines are doing", p.silent)
	if n := len(goroutine.FindAllString(p.stderr.String(), -1)); n > 0 {
		return n
	}
	t.Fatalf("it did not say what its goroutines are doing: %s", clip(p.stderr.String()))
	return 0
}
