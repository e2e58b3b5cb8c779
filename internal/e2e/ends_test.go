//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// The ways in which an agent talks to the gateway.
const (
	overStdio = "stdio"
	stateful  = "HTTP with a session"
	stateless = "HTTP without sessions"
)

// A body is what runs when the end comes: a for_each that is 64 wide, or a call that may change something.
type body struct {
	name     string
	writes   bool
	upstream string // "" for commands
	deaf     bool   // the server cannot hear that the gateway was killed: its protocol has no word for that
}

var bodies = []body{
	{name: "tool over stdio", upstream: "child"},
	{name: "tool over HTTP with a session", upstream: "kept", deaf: true},
	{name: "tool over HTTP without sessions", upstream: "loose"},
	{name: "commands"},
	{name: "writing tool over stdio", upstream: "child", writes: true},
	{name: "writing tool over HTTP", upstream: "kept", writes: true, deaf: true},
}

// The ends of a call that was under way.
const (
	cancelled = "cancelled"
	finished  = "finished"
)

// An end is a row of the matrix: what ends a run, and what follows.
type end struct {
	name       string
	transports []string // on which it is possible
	grace      string   // of the gateway
	bring      func(t *testing.T, s *scene)
	after      time.Duration // what reads is cancelled no sooner than that, and soon after
	sent       string        // what becomes of a call that may change something, and takes less than the grace
	status     int           // of the gateway if it ends, or lives
}

const (
	lives  = -2
	killed = -1
)

var all = []string{overStdio, stateful, stateless}

var ends = []end{
	{name: "SIGTERM, no grace", transports: all, grace: "0", bring: signals(syscall.SIGTERM), sent: cancelled},
	{name: "SIGTERM, a second of grace", transports: all, grace: "1s", bring: signals(syscall.SIGTERM), after: time.Second, sent: finished},
	{name: "SIGTERM twice", transports: all, grace: "1m", bring: signals(syscall.SIGTERM, syscall.SIGTERM), sent: cancelled},
	{name: "SIGINT, then SIGTERM", transports: []string{stateless}, grace: "1m", bring: signals(syscall.SIGINT, syscall.SIGTERM), sent: cancelled},
	{name: "SIGINT", transports: []string{overStdio}, grace: "1s", bring: signals(syscall.SIGINT), after: time.Second, sent: finished},
	{name: "SIGHUP, as a terminal sends it and its shell", transports: []string{overStdio}, grace: "1s", bring: signals(syscall.SIGHUP, syscall.SIGHUP), after: time.Second, sent: finished},
	{name: "SIGHUP, then SIGTERM", transports: []string{stateful}, grace: "1m", bring: signals(syscall.SIGHUP, syscall.SIGTERM), sent: cancelled},
	{name: "SIGKILL", transports: all, grace: "1m", bring: signals(syscall.SIGKILL), sent: cancelled, status: killed},
	{name: "input closed", transports: []string{overStdio}, grace: "1m", bring: func(t *testing.T, s *scene) { closing(t, s.input) }, after: goneTime, sent: finished},
	{name: "cancelled", transports: all, grace: "1m", bring: func(_ *testing.T, s *scene) { s.cancel() }, sent: cancelled, status: lives},
	{name: "connection dropped", transports: []string{stateful}, grace: "1s", bring: drop, after: time.Second, sent: finished, status: lives},
	{name: "connection dropped", transports: []string{stateless}, grace: "1m", bring: drop, sent: cancelled, status: lives},
	{name: "session deleted", transports: []string{stateful}, grace: "1m", bring: remove, sent: cancelled, status: lives},
	{name: "cancelled, and the session closed at once", transports: []string{stateful, stateless}, grace: "1m", bring: leave, sent: cancelled, status: lives},
	{name: "client killed", transports: []string{overStdio}, grace: "1m", bring: kill, after: goneTime, sent: finished},
	{name: "client killed", transports: []string{stateful}, grace: "1s", bring: kill, after: time.Second, sent: finished, status: lives},
	{name: "client killed", transports: []string{stateless}, grace: "1m", bring: kill, sent: cancelled, status: lives},
}

// goneTime is what calls have at least after their client has gone without a word: half a second, whatever the grace is.
const goneTime = 400 * time.Millisecond

// writeTime is how long the calls take that may change something and are to finish: longer than those have that change nothing.
const writeTime = 2 * time.Second

// A scene is a gateway with a run in the middle.
type scene struct {
	end
	body
	transport string

	gateway *process
	agent   *process // in a process of its own if the client is to be killed
	url     string
	input   io.Closer
	conns   *connections
	session *mcp.ClientSession
	cancel  context.CancelFunc
	dir     string // where calls say how they fare
	busy    map[int]uint64
	promise *promise // to end soon
}

// bodiesOf returns what runs when the end of a row comes: all at night; by day one that reads and one that writes, others
// in the next row, and one of the two where the end has come over another transport.
func bodiesOf(row int, again bool) []body {
	if parttest.Night() {
		return bodies
	}
	readers, writers := bodies[:4], bodies[4:]
	both := []body{readers[row%len(readers)], writers[row/2%len(writers)]}
	if again {
		return both[row%2:][:1]
	}
	return both
}

// TestEnds ends runs in every way that there is: their calls are cancelled at the promised time, calls that may change
// something finish where they are to, nothing is left behind, and a gateway that lives goes on working.
func TestEnds(t *testing.T) {
	t.Parallel()
	kept := &promise{}
	t.Cleanup(func() { kept.check(t) })
	row := 0
	for _, e := range ends {
		for i, transport := range e.transports {
			for _, b := range bodiesOf(row, i > 0) {
				t.Run(e.name+"/"+transport+"/"+b.name, func(t *testing.T) {
					t.Parallel()
					s := &scene{end: e, body: b, transport: transport, dir: t.TempDir(), busy: map[int]uint64{}, promise: kept}
					s.open(t)
					s.begin(t)
					s.await(t)
					begun := time.Now()
					s.bring(t, s)
					s.check(t, begun)
					s.close(t)
				})
			}
			row++
		}
	}
}

// pipeline is what runs. Its calls tell in files how they fare.
func (s *scene) pipeline() []object {
	b, dir := s.body, s.dir
	items := command("jq", "-n", "-c", "{n: range(64)}")
	switch {
	case b.upstream == "":
		return []object{items, with(with(command("jq", "last(range(1e12))"), "for_each", true), "concurrency", 64)}
	case b.writes:
		tool := map[string]string{finished: "write_slowly", cancelled: "write_long"}[s.sent]
		return []object{toolStage(b.upstream, tool, object{"dir": dir, "n": 0})}
	}
	return []object{items, with(with(toolStage(b.upstream, "wait", object{"dir": dir}), "for_each", true), "concurrency", 64)}
}

// slow is a server whose tools tell how their calls fare.
func slow() *mcptest.Upstream {
	return mcptest.New(
		mcptest.Tool{Name: "wait", ReadOnly: true, Raw: tells(10 * time.Minute)},
		mcptest.Tool{Name: "write_slowly", Destructive: true, Raw: tells(writeTime)},
		mcptest.Tool{Name: "write_long", Destructive: true, Raw: tells(10 * time.Minute)},
	)
}

// open starts the gateway with its servers.
func (s *scene) open(t *testing.T) {
	t.Helper()
	servers := object{}
	switch s.upstream {
	case "child":
		servers[s.upstream] = child(t, "slow")
	case "kept":
		servers[s.upstream] = object{"url": slow().HTTP(t, nil).URL}
	case "loose":
		servers[s.upstream] = object{"url": slow().HTTP(t, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}).URL}
	}
	grace := s.grace
	if s.writes && s.sent == finished {
		grace = "1m" // a slow machine holds up what finishes, too
	}
	args := []string{"serve", "--grace", grace}
	if s.transport != overStdio {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	p := mcsh(t, servers, args...)
	s.gateway = p
	if s.transport == overStdio {
		s.pipes(t, p)
	} else {
		s.url = p.greeted(t)
	}
	t.Cleanup(func() {
		if p.Process != nil && p.ProcessState == nil {
			_ = p.Process.Kill() // the test has failed
			p.ends(t, patience)
		}
	})
}

// pipes starts the gateway on standard input and output, below the client if that is to be killed.
func (s *scene) pipes(t *testing.T, p *process) {
	t.Helper()
	if s.end.name == "client killed" {
		return // begin does
	}
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	s.input = in
	s.session = connect(t, &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: -1}, versions[0], nil)
}

func (s *scene) version() string {
	if s.transport == stateless {
		return versions[1]
	}
	return versions[0]
}

// begin begins the run.
func (s *scene) begin(t *testing.T) {
	t.Helper()
	if s.end.name == "client killed" {
		s.beginAgent(t)
		return
	}
	if s.transport != overStdio {
		s.conns = &connections{}
		client := &http.Client{Transport: &http.Transport{DialContext: s.conns.dial}}
		s.session = connect(t, &mcp.StreamableClientTransport{Endpoint: s.url, HTTPClient: client, MaxRetries: -1}, s.version(), nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	ended := make(chan struct{})
	go func() {
		_, _ = s.session.CallTool(ctx, pipelineCall(s.pipeline())) // there may be no reply
		close(ended)
	}()
	t.Cleanup(func() { cancel(); <-ended; s.session.Close() })
}

// beginAgent begins the run in a process that is the client.
func (s *scene) beginAgent(t *testing.T) {
	t.Helper()
	plan := agentPlan{URL: s.url, Version: s.version(), Pipeline: encode(t, s.pipeline())}
	if s.transport == overStdio {
		plan.Args, plan.Dir = s.gateway.Args, s.gateway.Dir
	}
	entry := child(t, "agent")
	s.agent = &process{Cmd: s.gateway.Cmd, tmp: s.gateway.tmp, seen: map[int]uint64{}}
	s.agent.Cmd = plan.command(t, entry, s.gateway)
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.agent.ProcessState == nil {
			_ = s.agent.Process.Kill()
			_ = s.agent.Wait()
		}
	})
}

// top is the process below which all others are.
func (s *scene) top() *process {
	if s.agent != nil && s.transport == overStdio {
		return s.agent
	}
	return s.gateway
}

// await returns when everything that is to run does.
func (s *scene) await(t *testing.T) {
	t.Helper()
	if s.upstream != "" {
		want := 64
		if s.writes {
			want = 1
		}
		until(t, "all calls are under way", func() bool { return len(s.wrote(t, "begun")) == want })
	} else {
		until(t, "commands run", func() bool { return s.findBusy(t) })
	}
	s.top().look(t)
}

// wrote returns the calls that have written a word.
func (s *scene) wrote(t *testing.T, word string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, "*."+word))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// findBusy looks for programs that have worked for a while, and takes note of them and of their worker.
func (s *scene) findBusy(t *testing.T) bool {
	t.Helper()
	table := processes(t)
	for _, p := range table {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if err == nil && p.ticks > 20 && strings.Contains(string(line), "applet") && s.top().above(table, p) {
			s.busy[p.pid] = p.began
			s.busy[p.parent] = table[p.parent].began
		}
	}
	return len(s.busy) > 0
}

// over reports whether nothing runs any more of what ran.
func (s *scene) over(t *testing.T) bool {
	t.Helper()
	if s.upstream == "" {
		table := processes(t)
		return !slices.ContainsFunc(pidsOf(s.busy), func(pid int) bool { return table[pid].began == s.busy[pid] })
	}
	done := len(s.wrote(t, cancelled)) + len(s.wrote(t, finished))
	return done == len(s.wrote(t, "begun")) || s.upstream == "child" && s.noChild(t)
}

// noChild reports whether the server has ended that is a child of the gateway.
func (s *scene) noChild(t *testing.T) bool {
	t.Helper()
	table := processes(t)
	return !slices.ContainsFunc(pidsOf(s.top().seen), func(pid int) bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return table[pid].began == s.top().seen[pid] && strings.Contains(string(line), filepath.Base(os.Args[0]))
	})
}

func pidsOf(m map[int]uint64) []int {
	var pids []int
	for pid := range m {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids
}

// check compares what has become of the run with what is to become of it.
func (s *scene) check(t *testing.T, begun time.Time) {
	t.Helper()
	if s.deaf && s.status == killed {
		return
	}
	until(t, "the run ends", func() bool { return s.over(t) })
	took := time.Since(begun)
	want := s.after + time.Second
	if s.writes && s.sent == finished {
		want = writeTime + time.Second
	}
	s.promise.note(took > want*slowness)
	if took > want+standstill {
		t.Errorf("it took %v until nothing ran, want %v", took, want)
	}
	if !s.writes && took < s.after {
		t.Errorf("it took %v until nothing ran: there was no grace of %v", took, s.after)
	}
	if s.writes && (s.sent == finished) != (len(s.wrote(t, finished)) == 1) {
		t.Errorf("the call that may change something: finished %d, cancelled %d, want it %s",
			len(s.wrote(t, finished)), len(s.wrote(t, cancelled)), s.sent)
	}
	t.Logf("it took %v", took)
}

// What a test machine that has more to do than it can may add: to most of what takes time, and to any of it. The second is
// less than the graces that are not to be waited for.
const (
	slowness   = 10               // times
	standstill = 30 * time.Second // more
)

// A promise is kept if it is in most cases.
type promise struct {
	mu        sync.Mutex
	late, all int // guarded by mu
}

func (p *promise) note(late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all++
	if late {
		p.late++
	}
}

// check finds that less than half were late.
func (p *promise) check(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late > 1 && p.late*2 > p.all {
		t.Errorf("%d of %d runs took more than %d times as long to end as is promised", p.late, p.all, slowness)
	}
}

// close sees that a gateway that lives works, and that nothing is left of one that has ended.
func (s *scene) close(t *testing.T) {
	t.Helper()
	want := s.status
	if s.status == lives {
		s.works(t)
		s.gateway.look(t)
		if err := s.gateway.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		want = 0
	}
	if s.agent != nil && s.transport == overStdio { // the gateway is the child of a dead process
		until(t, "the gateway ends", func() bool { return !alive(t, s.gateway.tmp) })
		s.agent.tmp = s.gateway.tmp
		s.agent.leftNothing(t)
		return
	}
	if got := s.gateway.ends(t, soon); got != want {
		t.Errorf("exit status %d, want %d: %s", got, want, s.gateway.stderr.String())
	}
	if want == killed { // nobody is left who could wait for their ends
		until(t, "all processes end", func() bool { return !alive(t, s.gateway.tmp) && !s.gateway.survives(t) })
		return // its temporary files have no names, and the next gateway sweeps the directories of workers
	}
	s.gateway.leftNothing(t)
}

// works runs a pipeline for another client of the gateway.
func (s *scene) works(t *testing.T) {
	t.Helper()
	session := s.session
	if s.transport != overStdio {
		session = connectHTTP(t, s.url, s.version(), nil)
	}
	if got := mustExecute(t, session, command("jq", "-n", "-c", "[1, 2]"), command("jq", "length")); got != "2\n" {
		t.Errorf("afterwards: got %q", got)
	}
	if s.transport != overStdio {
		session.Close()
	}
}

func signals(list ...syscall.Signal) func(*testing.T, *scene) {
	return func(t *testing.T, s *scene) {
		t.Helper()
		for i, sig := range list {
			if sig == syscall.SIGHUP && signal.Ignored(sig) {
				t.Skip("the tests were started with nohup, and so is the gateway")
			}
			if i == 1 { // of two that wait, each may be taken first, or both as one
				until(t, "the first signal is taken", func() bool { return strings.Contains(s.gateway.stderr.String(), "ending: ") })
			}
			if err := s.gateway.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func closing(t *testing.T, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// drop drops all connections of the client.
func drop(_ *testing.T, s *scene) { s.conns.drop() }

// leave cancels, and closes the session before anybody can have heard of that.
func leave(_ *testing.T, s *scene) {
	s.cancel()
	_ = s.session.Close() // its call has failed
}

// remove deletes the session.
func remove(t *testing.T, s *scene) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", s.session.ID())
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusNoContent {
		t.Errorf("deleting the session: %s", resp.Status)
	}
}

// kill kills the client.
func kill(t *testing.T, s *scene) {
	t.Helper()
	if err := s.agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.agent.Wait() // it was killed
}

// connections are those of a client that can be lost.
type connections struct {
	mu   sync.Mutex
	open []net.Conn
	lost bool // with the network
}

func (c *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost && err == nil {
		return nil, errors.Join(errors.New("the network is down"), conn.Close())
	}
	c.open = append(c.open, conn)
	return conn, err
}

func (c *connections) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = true
	for _, conn := range c.open {
		conn.Close()
	}
}
