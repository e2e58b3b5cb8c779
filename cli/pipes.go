package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/servers/pipe"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/workspace"
)

// pipes run the lines of pipe servers. Each root has a sandbox of its own, which starts with its first line: a pipeline that
// holds a worker of the gateway's sandbox and calls pipe never waits for that worker.
type pipes struct {
	open   func(root string) *lazySandbox
	limits stages.Limits
	memory *memory.Share
	caller string // on whose behalf all lines run; empty: no worker is kept, since the callers are not known here

	mu     sync.Mutex // guards the fields below
	roots  map[string]*pipeRoot
	closed bool
}

// A pipeRoot has what the servers of one root share. It is closed after the last session with them, or with the process.
type pipeRoot struct {
	sandbox  *lazySandbox
	sessions int
}

// newPipes returns the pipes of a process, which start nothing after ctx has ended. If the process serves one client alone,
// its lines share workers.
func (p *program) newPipes(ctx context.Context, s settings, alone bool) *pipes {
	caller := ""
	if alone {
		caller = pipeServer
	}
	open := func(root string) *lazySandbox {
		own := s.sandbox
		own.workspace, own.checkCPU, own.checkMemory = root, s.limits.check, s.limits.checkMemory
		return p.newSandbox(ctx, own)
	}
	return &pipes{caller: caller, limits: s.limits.Limits, memory: s.shares.results, roots: map[string]*pipeRoot{}, open: open}
}

// start is a [pipe.Start].
func (x *pipes) start(dir *workspace.Dir, backup bool) pipe.Engine {
	return &pipeEngine{x, dir, workspace.NewHistory(dir, workspace.HistoryOptions{Versions: backup})}
}

// root returns what the servers of a root share, with more sessions. After close its sandbox is closed.
func (x *pipes) root(name string, more int) *pipeRoot {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.roots[name]
	if !ok {
		r = &pipeRoot{sandbox: x.open(name)}
		if x.closed {
			_ = r.sandbox.Close() // it has not started
			return r
		}
		x.roots[name] = r
	}
	r.sessions += more
	return r
}

// leave ends a session of a root.
func (x *pipes) leave(name string) error {
	x.mu.Lock()
	r, ok := x.roots[name]
	if ok {
		r.sessions--
	}
	last := ok && r.sessions == 0
	if last {
		delete(x.roots, name)
	}
	x.mu.Unlock()
	if !last {
		return nil
	}
	return r.sandbox.Close()
}

// close closes the sandboxes. A later one is closed from the start.
func (x *pipes) close() error {
	x.mu.Lock()
	roots := x.roots
	x.roots, x.closed = nil, true
	x.mu.Unlock()
	var errs []error
	for _, r := range roots {
		errs = append(errs, r.sandbox.Close())
	}
	return errors.Join(errs...)
}

// pipeSources returns the server pipe over the workspace. Any other server of this name comes first.
func pipeSources(_ context.Context, _ *program, s settings) ([]upstream.Source, error) {
	if s.workspace == "" || s.noBuiltin {
		return nil, nil
	}
	dial, err := configBuiltins(s.host)[pipeServer](optionsOf(map[string]any{"root": s.workspace}))
	if err != nil {
		return nil, configError("give --workspace a directory that exists", err)
	}
	return []upstream.Source{upstream.Static{{Name: pipeServer, Dial: dial, Found: true, InProcess: true, Sticky: true}}}, nil
}

const pipeServer = "pipe"

// A pipeEngine compiles lines to stages and runs them.
type pipeEngine struct {
	*pipes
	dir     *workspace.Dir
	history *workspace.History
}

var _ pipe.Engine = (*pipeEngine)(nil)

// Begin implements [pipe.Engine].
func (e *pipeEngine) Begin() (end func() error) {
	e.root(e.dir.Root(), 1)
	return sync.OnceValue(func() error { return e.leave(e.dir.Root()) })
}

// Run implements [pipe.Engine].
func (e *pipeEngine) Run(ctx context.Context, l pipe.Line, in io.Reader, out io.Writer) (report pipe.Report, err error) {
	box := e.root(e.dir.Root(), 0).sandbox
	if in == nil {
		if _, err := box.getSoon(ctx); err != nil {
			return report, withoutSandbox(ctx, err)
		}
	}
	saving := &savedFiles{files: files{e.dir}, history: e.history}
	deps := stages.Deps{Commands: box, Files: saving, Limits: e.limits, Memory: e.memory, Dir: l.Dir, Caller: e.caller}
	compile := stages.Compile
	if in != nil {
		compile = stages.CompileFed
	}
	pipeline, wrong := compile(ctx, stagesOf(l), deps)
	if wrong != nil {
		return report, lineFailure(wrong[0])
	}
	done, err := pipeline.Run(ctx, in, out, stages.RunOptions{})
	if err != nil {
		failure := lineFailure(err)
		if saving.saved != nil { // a command behind tee has failed
			failure.Saved = saving.saved
			failure.Detail += fmt.Sprintf(" All the same, tee has saved %s.", texts.Quote(saving.saved.Path))
		}
		return report, failure
	}
	for _, s := range done.Stages {
		report.Steps = append(report.Steps, pipe.Step{Size: s.BytesOut, Millis: s.Millis})
	}
	report.Saved = saving.saved
	return report, nil
}

// stagesOf writes a line as a pipeline.
func stagesOf(l pipe.Line) json.RawMessage {
	list := convert(l.Commands, func(c pipe.Command) map[string]any {
		if c.Save != nil {
			return map[string]any{"type": "tee", "path": c.Save.Path, "append": c.Save.Append, "confirm_oversize": c.Save.Oversize}
		}
		args := c.Args
		if args == nil {
			args = []string{}
		}
		return map[string]any{"type": "command", "command": c.Name, "args": args}
	})
	return json.RawMessage(texts.JSON(list))
}

// savedFiles are the files of one line, which saves at most one. Appended data follows right behind what is there.
type savedFiles struct {
	files
	history *workspace.History
	saved   *pipe.Saved
}

func (f *savedFiles) SaveFile(ctx context.Context, file stages.SavedFile, in io.Reader) (io.ReadCloser, error) {
	saved, err := f.save(ctx, file, in, workspace.SaveOptions{Joined: true, History: f.history})
	if err != nil {
		return nil, err
	}
	f.saved = &pipe.Saved{Path: saved.Path, Mirror: saved.Mirror, Bytes: saved.Bytes, Append: file.Append, Record: saved.Record}
	return saved, nil
}

// withoutSandbox is the failure of a line without a sandbox.
func withoutSandbox(ctx context.Context, err error) *pipe.Failure {
	if ctx.Err() != nil {
		return &pipe.Failure{Code: string(stages.Cancelled), Detail: "the call was cancelled.", Use: "Call again."}
	}
	return &pipe.Failure{
		Code: pipe.Unavailable, Detail: noCommands(err).Msg + ".",
		Use: "Ask the operator to start a container engine with the image (mcsh sandbox build), or to install the programs " +
			"on a Linux with Landlock; mcsh doctor says what is missing.",
	}
}

// lineFailure makes a failure of an error of the stages.
func lineFailure(err error) *pipe.Failure {
	e, ok := errors.AsType[*stages.Error](err)
	if !ok {
		e = stages.Errorf(stages.Internal, "", "%w", err)
	}
	f := &pipe.Failure{
		Code: string(e.Code), Detail: strings.TrimSpace(e.Msg),
		Use: cmp.Or(reword(e.Hint, hintWords), "Run the commands one by one to see where it fails."),
	}
	if !e.Foreign {
		f.Detail = reword(f.Detail, detailWords)
	}
	reasons := map[stages.Code]pipe.Reason{
		stages.DisallowedCommand: pipe.DisallowedCommand, stages.DisallowedArgument: pipe.DisallowedArgument,
		stages.InvalidArguments: pipe.DisallowedArgument, stages.Denied: pipe.PathEscape,
	}
	switch {
	case errors.Is(err, programs.ErrEscape):
		f.Reason = pipe.PathEscape
	case errors.Is(err, workspace.ErrOversize):
		f.Reason, f.Use = pipe.Oversize, `Call again with "confirm_oversize": true if so much is to be saved; nothing was.`
	default:
		f.Reason = reasons[e.Code]
	}
	if f.Reason != "" {
		f.Code = pipe.Violation
	}
	return f
}
