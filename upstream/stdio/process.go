package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/procgroup"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// How long a program may take to end after each step: most end within 200 ms after their input.
const (
	graceInput = 1 * time.Second // after its input has ended
	graceTerm  = 2 * time.Second // after SIGTERM
)

// Dial starts a program for each session, in a process group of its own. At the end of the session its input is closed;
// if it still runs, it gets SIGTERM and soon SIGKILL, with its children.
func Dial(c Command) func(context.Context) (mcp.Transport, error) {
	return func(context.Context) (mcp.Transport, error) {
		path, err := c.find()
		if err != nil {
			return nil, err
		}
		p := &process{command: c, path: path, stderr: ring{limiter: rpc.Limiter{PerSecond: 4 << 20, Burst: 4 << 20}}}
		return &Transport{rpc.Transport{Open: p.start, OnJunk: p.noteJunk, Kind: rpc.Traits{Program: true}}, p}, nil
	}
}

// A Transport is a program with a wire to it. It can explain failures.
type Transport struct {
	rpc.Transport
	*process
}

// A process is one run of a Command.
type process struct {
	command Command
	path    string

	cmd     *exec.Cmd
	stdin   *os.File
	started time.Time
	group   *procgroup.Group
	exited  chan struct{} // closed when the program has ended with its group

	mu        sync.Mutex // guards the fields below
	asked     bool       // it was still running when its input was closed
	signalled bool       // it was sent a signal
	status    string     // how it ended, once exited is closed
	lived     time.Duration
	stderr    ring
	junkLines int
	firstJunk string
}

// start starts the program.
func (p *process) start(context.Context) (rpc.Wire, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe: %w", err), inR.Close(), inW.Close())
	}
	p.cmd = &exec.Cmd{
		Path: p.path, Args: append([]string{p.command.Name}, p.command.Args...),
		Dir: p.command.Dir, Env: p.command.environ(),
		Stdin: inR, Stdout: outW, Stderr: &p.stderr,
		WaitDelay: time.Second,
	}
	p.stdin, p.started = inW, time.Now()
	p.group, err = procgroup.Start(p.cmd)
	_ = inR.Close() // the program has its own
	_ = outW.Close()
	if err != nil {
		return nil, errors.Join(&rpc.DialError{
			Hint: "see whether it is a program for this machine, and not too much is in its args and env" + p.command.at(),
			Err:  fmt.Errorf("starting %q: %w", p.command.Name, bare(err)),
		}, inW.Close(), outR.Close())
	}
	p.exited = make(chan struct{})
	go p.await()
	return rpc.NewLine(outR, inW, rpc.LineOptions{Ended: p.exited, Close: func() error { return p.end(outR) }}), nil
}

// await waits for the end of the program and its group, and notes how it ended.
func (p *process) await() {
	defer close(p.exited)
	<-p.group.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.lived = p.cmd.ProcessState.String(), time.Since(p.started)
}

// runs reports whether the program runs, or ran until we ended it. If its output has ended, we ended it only if it
// needed a signal: it may have been about to end by itself.
func (p *process) runs(err error) bool {
	patience := 100 * time.Millisecond // a broken pipe often comes before the exit
	if errors.Is(err, io.EOF) {
		patience = time.Second // a program that closes its output is usually about to end
	}
	if !p.wait(patience) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.signalled || p.asked && errors.Is(err, context.DeadlineExceeded)
}

// end stops the program and all processes that it started, and returns when they are gone.
func (p *process) end(stdout io.Closer) error {
	select {
	case <-p.exited:
	default:
		p.mu.Lock()
		p.asked = true
		p.mu.Unlock()
	}
	_ = p.stdin.Close() // the program may have closed its side
	if !p.wait(graceInput) {
		p.signal(syscall.SIGTERM)
		if !p.wait(graceTerm) {
			p.signal(syscall.SIGKILL)
		}
	}
	<-p.exited
	return stdout.Close()
}

func (p *process) wait(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// signal sends a signal to the whole group, unless that is gone.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signalled = p.group.Signal(s) || p.signalled
}

func (p *process) noteJunk(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.junkLines++; p.junkLines == 1 {
		p.firstJunk = texts.Cut(strings.TrimSpace(string(line)), 120)
	}
}

// StderrTail returns the last lines of the program's standard error.
func (p *process) StderrTail() string { return p.stderr.tail() }

// Note reports something odd but harmless.
func (p *process) Note() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.junkLines == 0 {
		return ""
	}
	return fmt.Sprintf("wrote %d lines to standard output that are not MCP messages (ignored), the first: %q",
		p.junkLines, p.firstJunk)
}

// Explain explains the end of a session: the state of the program says more than a broken pipe.
func (p *process) Explain(err error) (msg, hint string) {
	if p.exited == nil {
		return "", ""
	}
	if errors.Is(err, rpc.ErrBroken) {
		return fmt.Sprintf("command %q answers, but not with MCP: %s", p.command.Name, texts.Cut(strings.TrimPrefix(err.Error(), `calling "initialize": `), 300)),
			"see its documentation: it may want other arguments to be an MCP server" + p.command.at()
	}
	running := p.runs(err) // before its standard error is read: it may still write
	hint = "see its standard error, and check its command, args and env" + p.command.at()
	if p.StderrTail() == "" {
		hint = "run it in a terminal to see what it does, and check its command, args and env" + p.command.at()
	}
	switch {
	case running && errors.Is(err, context.DeadlineExceeded):
		msg = fmt.Sprintf("command %q runs but does not answer", p.command.Name)
		if note := p.Note(); note != "" {
			msg += "; it " + note
		}
		return msg + p.lastWords("; nothing on standard error"), hint
	case running && errors.Is(err, io.EOF):
		msg = fmt.Sprintf("command %q has closed its standard output", p.command.Name)
		return msg + p.lastWords("; nothing on standard error"), hint
	case running:
		return "", ""
	}
	p.mu.Lock()
	if p.status == "" { // it never ran; the error says why
		p.mu.Unlock()
		return "", ""
	}
	msg = fmt.Sprintf("command %q ended after %v (%s)", p.command.Name, p.lived.Round(time.Millisecond), p.status)
	p.mu.Unlock()
	if old := oldNode(p.stderr.String()); old != "" {
		hint = old + p.command.at()
	}
	return msg + p.lastWords(" and wrote nothing to standard error"), hint
}

func (p *process) lastWords(none string) string {
	if t := p.StderrTail(); t != "" {
		return "; last on standard error: " + t
	}
	return none
}
