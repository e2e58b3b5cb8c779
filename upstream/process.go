package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// How long a program may take to end after each step of asking: most end within 200 ms of their input's end.
const (
	graceInput = 1 * time.Second // after its input has ended
	graceTerm  = 2 * time.Second // after SIGTERM
)

// inherited are the variables that a program gets without being named in its configuration. All others stay here:
// an environment often holds secrets, and some servers print theirs.
var inherited = []string{"PATH", "HOME", "LANG", "TERM", "USER", "SHELL", "LOGNAME"}

// A Command is a local program that speaks MCP on its standard streams.
type Command struct {
	Name string   // a program: looked up in PATH, or a path if it has a slash
	Args []string // without the program's name
	Dir  string   // working directory; empty: this process's

	Env map[string]string // variables of its own

	// Lookup gives the values of PATH, HOME, LANG, TERM, USER, SHELL and LOGNAME, which every program gets. Other
	// variables are not asked for. A nil Lookup gives none.
	Lookup func(name string) (string, bool)

	MaxMessage int    // bytes of one message, 0: 64 MiB; a longer one fails its call with LIMIT_EXCEEDED
	Where      string // where it is configured, such as "mcp.json:7", for messages
}

// Stdio reaches a program that is started for each session, in a process group of its own. At the end of the session
// its input is closed; what then still runs gets SIGTERM and soon SIGKILL, children included.
func Stdio(c Command) func(context.Context) (mcp.Transport, error) {
	return func(context.Context) (mcp.Transport, error) {
		path, err := c.find()
		if err != nil {
			return nil, err
		}
		p := &process{command: c, path: path}
		return &stdioTransport{tapTransport{Transport: p}, p}, nil
	}
}

// stdioTransport is a tapped process that can tell about itself.
type stdioTransport struct {
	tapTransport
	*process
}

// Connect resolves the ambiguity of the two embedded ones: the session goes through the tap.
func (t *stdioTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	return t.tapTransport.Connect(ctx)
}

func (c *Command) lookup(name string) string {
	if v, ok := c.Env[name]; ok {
		return v
	}
	if c.Lookup == nil || !slices.Contains(inherited, name) {
		return ""
	}
	v, _ := c.Lookup(name)
	return v
}

// environ is the whole environment of the program.
func (c *Command) environ() []string {
	var env []string
	for _, name := range inherited {
		if _, own := c.Env[name]; own || c.Lookup == nil {
			continue
		}
		if v, ok := c.Lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range c.Env {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	return env
}

// find returns the path of the program. exec.LookPath is not used because it reads this process's environment.
func (c *Command) find() (string, error) {
	if strings.ContainsRune(c.Name, '/') {
		path := c.Name
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		path, err := filepath.Abs(path)
		if err == nil {
			err = executable(path)
		}
		if err != nil {
			return "", &dialError{
				"give the path of a program that exists and may be run" + c.at(),
				fmt.Errorf("command %q: %w", c.Name, bare(err)),
			}
		}
		return path, nil
	}
	dirs := filepath.SplitList(c.lookup("PATH"))
	for _, dir := range dirs {
		path := filepath.Join(dir, c.Name)
		if filepath.IsAbs(path) && executable(path) == nil {
			return path, nil
		}
	}
	hint := "install it, or give its whole path as command" + c.at()
	if name := nearest.Name(c.Name, programs(dirs)); name != "" {
		hint = fmt.Sprintf("did you mean %q? Else %s", name, hint)
	}
	return "", &dialError{hint, fmt.Errorf("command %q not found in PATH (%s)", c.Name, strings.Join(dirs, ":"))}
}

func (c *Command) at() string {
	if c.Where == "" {
		return ""
	}
	return " (" + c.Where + ")"
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("is a directory")
	case info.Mode()&0o111 == 0:
		return errors.New("is not executable")
	}
	return nil
}

// bare strips the operation and the path, which the message has already.
func bare(err error) error {
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// programs lists what is in the directories of PATH, as far as they can be read.
func programs(dirs []string) []string {
	var names []string
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	return names
}

// A process is one run of a Command.
type process struct {
	command Command
	path    string

	cmd     *exec.Cmd
	stdin   *os.File
	started time.Time
	exited  chan struct{} // closed when the program itself has ended; the group may outlive it
	reaped  chan struct{} // closed when the group is gone

	mu        sync.Mutex // guards what follows
	gone      bool       // the group's number may no longer be used
	status    string     // how it ended, once exited is closed
	lived     time.Duration
	stderr    ring
	junkLines int
	firstJunk string
}

// Connect starts the program.
func (p *process) Connect(context.Context) (mcp.Connection, error) {
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
		SysProcAttr: groupAttr(), WaitDelay: time.Second,
	}
	p.stdin, p.exited, p.reaped, p.started = inW, make(chan struct{}), make(chan struct{}), time.Now()
	startErr := make(chan error, 1)
	go p.run(startErr)
	err = <-startErr
	_ = inR.Close() // the program has its own
	_ = outW.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting %q: %w", p.command.Name, bare(err)), inW.Close(), outR.Close())
	}
	conn := newLineConn(outR, inW, p.command.MaxMessage, func() error { return p.end(outR) })
	conn.junk = p.noteJunk
	return conn, nil
}

// end stops the program and everything it started, and returns when they are gone.
func (p *process) end(stdout io.Closer) error {
	_ = p.stdin.Close() // the program may have closed its side
	if !p.wait(graceInput) {
		p.signal(terminate)
		if !p.wait(graceTerm) {
			p.signal(kill)
		}
	}
	<-p.reaped
	return stdout.Close()
}

func (p *process) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// signal sends a signal to the whole group, unless that is gone.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// abandon makes signal do nothing from now on.
func (p *process) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
}

// noteExit records how the program ended.
func (p *process) noteExit(status string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.lived = status, time.Since(p.started)
}

func (p *process) noteJunk(line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.junkLines++; p.junkLines == 1 {
		p.firstJunk = shorten(strings.TrimSpace(string(line)), 120)
	}
}

// tail returns the last lines that the program wrote to its standard error.
func (p *process) tail() string { return p.stderr.tail() }

// note tells of something odd that does no harm.
func (p *process) note() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.junkLines == 0 {
		return ""
	}
	return fmt.Sprintf("wrote %d lines to standard output that are no MCP messages (ignored), the first: %q",
		p.junkLines, p.firstJunk)
}

// explain puts the end of a session into words: what became of the program says more than the broken pipe.
func (p *process) explain(err error) (msg, hint string) {
	if p.exited == nil {
		return "", ""
	}
	hint = "see what it says on standard error, and check its command, args and env" + p.command.at()
	if !p.wait(100 * time.Millisecond) { // a broken pipe is often seen before the exit
		if errors.Is(err, context.DeadlineExceeded) {
			msg = fmt.Sprintf("command %q runs but does not answer", p.command.Name)
			return msg + p.lastWords("; nothing on standard error"), hint
		}
		return "", ""
	}
	p.mu.Lock()
	msg = fmt.Sprintf("command %q ended after %v (%s)", p.command.Name, p.lived.Round(time.Millisecond), p.status)
	p.mu.Unlock()
	return msg + p.lastWords(" and wrote nothing to standard error"), hint
}

func (p *process) lastWords(none string) string {
	if t := p.tail(); t != "" {
		return "; last on standard error: " + t
	}
	return none
}
