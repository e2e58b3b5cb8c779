// Command mcsh is a gateway in front of MCP servers that runs whole pipelines of tool calls and commands and returns
// only their end. This package is where everything is put together: it alone reads flags, environment variables and
// configuration files, and hands each part its settings. It knows how to start the parts and how to talk to people,
// and nothing of what the parts do.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == workerCommand {
		os.Exit(workerMain(args[1:])) // before every command of a pipeline: no flags, no signals, nothing that takes time
	}
	headroom := make([]byte, gcHeadroom)
	code := run(context.Background(), args, os.Stdin, os.Stdout, os.Stderr, os.Environ())
	runtime.KeepAlive(headroom)
	os.Exit(code)
}

// gcHeadroom counts as live memory for the garbage collector. Nobody uses it, so that it costs no memory itself, unless
// the runtime has to clear it. The SDK allocates several hundred kilobytes for each message, and collecting them every
// 4 MB, as a small heap makes the collector do, takes a third of the time of a call.
const gcHeadroom = 16 << 20

// A program is what the commands have of the process they run in.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            map[string]string
	json           bool // the command's --json: errors are JSON on stdout too
}

// run is the whole program, but for the worker. It returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, out, stderr io.Writer, environ []string) int {
	p := &program{stdin: stdin, stdout: out, stderr: stderr, env: map[string]string{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		p.env[name] = value
	}
	if err := hide(); err != nil {
		return p.report(err)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	root := p.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	said := &stdout{w: out} // help and completions, whose writers do not look whether it went well
	root.SetOut(said)
	root.SetErr(stderr)
	return p.report(said.result(root.ExecuteContext(ctx)))
}

// endSignals are those that ask for the end. Who was started with nohup is not asked by the end of the terminal.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// untilSignal returns a context that the first of the [endSignals] ends, so that everything is closed in order. The
// second one ends the process as if nobody had asked; not so SIGHUP, which a terminal that is closed sends, and its
// shell once more. A closed pipe at the other end of stdout is an error of Write here and not the end of the process,
// which would leave temporary files behind.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, endSignals()...)
	context.AfterFunc(ctx, stop)
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(unheard, syscall.SIGHUP)
	}
	return ctx, func() { stop(); signal.Stop(unheard) }
}

// lookup gives the value of an environment variable.
func (p *program) lookup(name string) (string, bool) {
	value, ok := p.env[name]
	return value, ok
}

// isTerminal reports whether a person sees what is written to w, or types what is read from it.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
