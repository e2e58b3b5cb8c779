//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// A process is an mcsh that a test has started. Everything that it starts is in its session, has its directory for
// temporary files in the environment, or was below it in the tree of processes when that was looked at.
type process struct {
	*exec.Cmd
	tmp    string
	stderr output
	heard  chan struct{}  // closed at the end of its standard error, where greeted reads that
	seen   map[int]uint64 // processes that were below it, and when they began
}

// An output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// mcsh prepares a process. Its servers are what a configuration file names.
func mcsh(t *testing.T, servers object, args ...string) *process {
	t.Helper()
	if why := noSandbox(); why != "" {
		parttest.Missing(t, "commands cannot run here: %s", why)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "mcp.json")
	p := program(t, dir, append([]string{args[0], "--config", config}, args[1:]...)...)
	marked := object{}
	for name, s := range servers {
		marked[name] = s
		if entry, ok := s.(object); ok && entry["command"] != nil {
			marked[name] = markServer(entry, p.tmp)
		}
	}
	if err := os.WriteFile(config, []byte(encode(t, object{"mcpServers": marked})), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// program prepares a process in a directory.
func program(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{tmp: t.TempDir(), seen: map[int]uint64{}}
	p.Cmd = exec.Command(mcshPath(), args...) // not the test's context, which ends before its cleanups
	p.Dir = dir
	// Only workers of this machine leave files and processes that are seen here; those in containers have tests of their own.
	p.Env = append(os.Environ(), "TMPDIR="+p.tmp, "MCSH_SANDBOX=local")
	p.Stderr = &p.stderr
	p.SysProcAttr = ownSession()
	return p
}

// greeted starts a gateway on a free port and returns its address. One that does not say where it listens is ended.
func (p *process) greeted(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe() // and not a writer: Wait would wait for every holder of its other end
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = w
	err = p.Start()
	w.Close()
	if err != nil {
		r.Close()
		t.Fatal(err)
	}
	p.heard = make(chan struct{})
	said := make(chan string, 1)
	go func() {
		defer close(p.heard)
		defer r.Close()
		words := bufio.NewReader(io.TeeReader(r, &p.stderr))
		for url, found := "", false; !found; {
			line, err := words.ReadString('\n')
			if err != nil {
				return
			}
			if _, url, found = strings.Cut(strings.TrimSpace(line), " listens on "); found {
				said <- url
			}
		}
		_, _ = io.Copy(io.Discard, words)
	}()
	select {
	case url := <-said:
		return url
	case <-p.heard:
	case <-time.After(patience):
	}
	_ = p.Process.Kill() // it may have ended
	_ = p.Wait()
	t.Fatalf("it says %q and not where it listens", p.stderr.String())
	return ""
}

// silent reports whether the end of what greeted reads has come.
func (p *process) silent() bool {
	select {
	case <-p.heard:
		return true
	default:
		return false
	}
}

// noSandbox says why pipelines with commands cannot run on this machine, if they cannot.
var noSandbox = sync.OnceValue(func() string {
	if out, err := exec.Command(mcshPath(), "commands", "--sandbox", "local").CombinedOutput(); err != nil {
		return string(out)
	}
	return ""
})

// markServer sets the directory for temporary files of a server, too.
func markServer(entry object, tmp string) object {
	env := object{"TMPDIR": tmp}
	switch given := entry["env"].(type) {
	case object:
		for k, v := range given {
			env[k] = v
		}
	case map[string]string:
		for k, v := range given {
			env[k] = v
		}
	}
	return with(without(entry, "env"), "env", env)
}

func without(entry object, field string) object {
	rest := object{}
	for k, v := range entry {
		if k != field {
			rest[k] = v
		}
	}
	return rest
}

// A stat is a line of the table of processes.
type stat struct {
	pid, parent, session int
	state                string
	began                uint64
	ticks                uint64 // of processor time, in hundredths of a second
}

// processes reads the table of processes, without those that are dead and wait to be noticed.
func processes(t *testing.T) map[int]stat {
	t.Helper()
	entries, err := os.ReadDir("/proc") // a pattern would read each folder, too
	if err != nil {
		t.Fatalf("looking at processes: %v", err)
	}
	table := map[int]stat{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // it is no process
		}
		text, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		// The second field is a name in parentheses that may hold anything.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		s := stat{pid: pid, state: fields[0]}
		s.parent, _ = strconv.Atoi(fields[1])
		s.session, _ = strconv.Atoi(fields[3])
		user, _ := strconv.ParseUint(fields[11], 10, 64)
		system, _ := strconv.ParseUint(fields[12], 10, 64)
		s.ticks = user + system
		s.began, _ = strconv.ParseUint(fields[19], 10, 64)
		if s.state != "Z" && s.state != "X" {
			table[pid] = s
		}
	}
	return table
}

// look takes note of the processes below p, and returns how many there are.
func (p *process) look(t *testing.T) int {
	t.Helper()
	table := processes(t)
	n := 0
	for _, s := range table {
		if p.above(table, s) {
			p.seen[s.pid] = s.began
			n++
		}
	}
	return n
}

func (p *process) above(table map[int]stat, s stat) bool {
	for range 64 { // deeper than any tree here
		if s.parent == p.Process.Pid {
			return true
		}
		next, ok := table[s.parent]
		if !ok {
			return false
		}
		s = next
	}
	return false
}

// children returns the processes that p itself has started and whose command line holds text.
func (p *process) children(t *testing.T, text string) []int {
	t.Helper()
	var found []int
	for pid, s := range processes(t) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && s.parent == p.Process.Pid && strings.Contains(string(line), text) {
			found = append(found, pid)
		}
	}
	return found
}

// leftNothing checks that nothing of the process is left: no process of its session, none that was below it, none that
// knows its directory for temporary files, and no file in that.
func (p *process) leftNothing(t *testing.T) {
	t.Helper()
	for pid, s := range processes(t) {
		began, seen := p.seen[pid]
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if len(line) == 0 {
			continue // it has been killed: its memory is gone, and it will be in a moment
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if s.session == p.Process.Pid || seen && began == s.began || bytes.Contains(env, []byte(p.tmp)) {
			t.Errorf("process %d is left: %q", pid, line)
		}
	}
	if left, err := os.ReadDir(p.tmp); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// A result is how a process ended.
type result struct {
	stdout, stderr string
	status         int
}

// run runs a process to its end, which leaves nothing.
func (p *process) run(t *testing.T) result {
	t.Helper()
	var stdout bytes.Buffer
	p.Stdout = &stdout
	err := p.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("running mcsh: %v", err)
	}
	p.leftNothing(t)
	return result{stdout.String(), p.stderr.String(), p.ProcessState.ExitCode()}
}

// runPipeline runs mcsh run with a pipeline of stages.
func runPipeline(t *testing.T, servers object, pipeline ...object) result {
	t.Helper()
	return mcsh(t, servers, "run", encode(t, pipeline)).run(t)
}

// must is the output of a pipeline that succeeds.
func must(t *testing.T, servers object, pipeline ...object) string {
	t.Helper()
	r := runPipeline(t, servers, pipeline...)
	if r.status != 0 {
		t.Fatalf("exit status %d: %s", r.status, r.stderr)
	}
	return r.stdout
}

// ends waits for the end of a process and returns its exit status. It fails the test after limit.
func (p *process) ends(t *testing.T, limit time.Duration) int {
	t.Helper()
	ended := make(chan struct{})
	go func() { _ = p.Wait(); close(ended) }() // the status is looked at
	select {
	case <-ended:
	case <-time.After(limit):
		_ = p.Process.Kill()
		<-ended
		t.Fatalf("it did not end within %v: %s", limit, p.stderr.String())
	}
	return p.ProcessState.ExitCode()
}

// until waits for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	pause := 5 * time.Millisecond // between looks, which may read the whole table of processes
	for end := time.Now().Add(patience); !condition(); pause = min(2*pause, 40*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
		time.Sleep(pause)
	}
}

// within returns a value that comes in time.
func within[V any](t *testing.T, what string, values <-chan V) (v V) {
	t.Helper()
	select {
	case v = <-values:
	case <-time.After(patience):
		t.Fatalf("waited %v in vain: %s", patience, what)
	}
	return v
}
