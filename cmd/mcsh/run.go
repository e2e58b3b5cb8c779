package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/stages"
)

const runLong = `Run a pipeline: a JSON array of stages, each one reading what the one before writes.

The output goes to standard output as it comes. With -v, or on a terminal, a table of the stages follows on
standard error; what preview stages see stands before it. The whole plan is checked before anything is called.

--json prints one object: {"output", "windows", "note", "dry_run", "report"}, or {"errors", "report"} when it failed.`

const runExample = `  mcsh run '[{"type": "tool", "server": "demo", "name": "list_orders"},
             {"type": "command", "command": "jq", "args": ["-c", ".orders[] | {id, total}"]},
             {"type": "command", "command": "head", "args": ["-n", "3"]}]'
  mcsh run -f pipeline.json --config mcp.json
  mcsh run -f pipeline.json --input orders.json`

// jsonOutputMax is how much output --json holds in memory.
const jsonOutputMax = 64 << 20

// runOptions are the flags of run.
type runOptions struct {
	settings
	pipelineFlags
	input   string
	timeout time.Duration
	table   bool
	dry     bool
}

func (p *program) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run [PIPELINE | -]",
		Short:   "Run a pipeline",
		Long:    runLong,
		Example: runExample,
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.RunE = work(func(ctx context.Context, args []string) error {
		if o.timeout <= 0 && cmd.Flags().Changed("timeout") {
			return usageError("give a duration such as 90s", "--timeout %s is not above zero", o.timeout)
		}
		return p.runPipeline(ctx, args, o)
	})
	o.addSources(cmd)
	o.addState(cmd)
	o.addWorkspace(cmd)
	o.limits.add(cmd)
	p.addSandbox(cmd, &o.sandbox)
	o.pipelineFlags.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.input, "input", "", `file that the first stage reads, "-" for standard input`)
	f.DurationVar(&o.timeout, "timeout", 0, "time for the whole run from its start, waiting for servers included, such as 90s, and for each command in it if that is more than 30s (default 5m)")
	f.BoolVarP(&o.table, "verbose", "v", false, "print the table of stages also where standard error is no terminal")
	f.BoolVar(&o.table, "table", false, "the same as --verbose")
	f.BoolVar(&o.dry, "dry-run", false, "call only what reads, and show the calls that would change something")
	p.addJSON(cmd, "print one JSON object instead of the output")
	return cmd
}

// runPipeline compiles the pipeline, runs it and closes everything that was started.
func (p *program) runPipeline(ctx context.Context, args []string, o runOptions) (err error) {
	begun := time.Now()
	o.limits.Run = max(o.timeout, cmp.Or(o.limits.Run, defaultRun))
	o.limits.Command = max(o.timeout, cmp.Or(o.limits.Command, defaultCommand))
	within := gateway.CallTime{Timeout: cmp.Or(o.timeout, o.limits.Run), Begun: begun, Limits: o.limits.Limits}
	ready, err := p.prepare(ctx, args, o, within)
	defer func() { err = errors.Join(err, ready.close()) }()
	if err != nil {
		return err
	}
	pipeline, err := compile(ctx, ready.text, ready.parts.deps(), ready.in != nil, within)
	if err != nil {
		return err
	}
	options := stages.RunOptions{Timeout: o.timeout, Spent: time.Since(begun), DryRun: o.dry}
	if p.json {
		return p.runToJSON(ctx, pipeline, ready.in, options)
	}
	err = p.runToStdout(ctx, pipeline, ready.in, options, o.table)
	if r, ok := ready.parts.sandbox.used(); ok && (o.table || isTerminal(p.stderr)) {
		fmt.Fprint(p.stderr, usedText(r))
	}
	return err
}

// prepared is what a run needs before its plan can be checked.
type prepared struct {
	text  []byte
	in    io.ReadCloser // nil: the run is given no input
	parts *parts
}

// prepare reads the pipeline and the configuration, and opens the input, within the time of the run. What it returns is
// to be closed, also with an error.
func (p *program) prepare(ctx context.Context, args []string, o runOptions, within gateway.CallTime) (ready prepared, err error) {
	bound, end := within.Bound(ctx)
	defer end()
	defer func() {
		if late := within.Late(bound, err); late != nil {
			err = &runError{late, jsonOf(stages.Report{})}
		}
	}()
	if ready.text, err = p.pipelineText(bound, args, o.file, o.input); err != nil {
		return ready, err
	}
	if ready.in, err = p.openInput(bound, o.input); err != nil {
		return ready, err
	}
	ready.parts, err = p.open(ctx, bound, o.settings, oneRun)
	return ready, err
}

func (r prepared) close() (err error) {
	if r.parts != nil {
		err = r.parts.close()
	}
	if r.in != nil {
		r.in.Close()
	}
	return err
}

// The times of a run and of a command in it without --timeout. A shorter --timeout leaves them as the limits of stages;
// a longer one is for both, because a long stream keeps one command busy for as long as the run takes.
const (
	defaultRun     = 5 * time.Minute
	defaultCommand = 30 * time.Second
)

// oneRun is how many sandbox workers wait where there is one run: none.
const oneRun = -1

// compile checks the pipeline and waits, for as long as the call's time allows, for the servers that it needs.
func compile(ctx context.Context, text []byte, d stages.Deps, fed bool, within gateway.CallTime) (*stages.Pipeline, error) {
	d.Caller = runCaller
	check := stages.Compile
	if fed {
		check = stages.CompileFed
	}
	pipeline, errs, late := within.Check(ctx, func(ctx context.Context) (*stages.Pipeline, []*stages.Error) { return check(ctx, text, d) })
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case late != nil:
		return nil, &runError{late, jsonOf(stages.Report{})} // it was the run's time, though nothing ran
	case errs != nil:
		return nil, planError(errs)
	}
	return pipeline, nil
}

// A runError is the failure of a run with what it did before.
type runError struct {
	err    error
	report reportJSON
}

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// runCaller is on whose behalf mcsh run runs: there is only one.
const runCaller = "run"

// runToStdout streams the output and tells the rest on stderr.
func (p *program) runToStdout(ctx context.Context, pipeline *stages.Pipeline, in io.Reader, o stages.RunOptions, table bool) error {
	progress := p.startProgress()
	o.Progress = progress.update
	out := &stdout{w: p.stdout}
	report, err := pipeline.Run(ctx, in, out, o)
	progress.stop()
	if d := report.DryRun; d != nil && d.Place != "" {
		_, werr := io.WriteString(out, gateway.Plain(gateway.DryRunText(report), true))
		err = errors.Join(err, werr)
	}
	err = out.result(err)
	fmt.Fprint(p.stderr, gateway.NoteText(report))
	if table || isTerminal(p.stderr) {
		writeReport(p.stderr, report)
	} else {
		writeWindows(p.stderr, report.Windows)
	}
	if err != nil {
		return &runError{err, jsonOf(report)}
	}
	return nil
}

// errEnough is what the engine sees when the reader at the other end of standard output has left: that is no failure,
// and what a stage says of its own stays one.
var errEnough = fmt.Errorf("the reader of the output has what it wanted: %w", io.ErrClosedPipe)

// stdout is standard output for a run, or for help. It remembers a failure of its own.
type stdout struct {
	w   io.Writer
	err error
}

func (s *stdout) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	switch {
	case errors.Is(err, syscall.EPIPE):
		return n, errEnough
	case err != nil:
		s.err = err
	}
	return n, err
}

// result is what becomes of err, with which something has ended that writes here.
func (s *stdout) result(err error) error {
	switch {
	case errors.Is(err, errEnough):
		return nil
	case s.err != nil && (err == nil || errors.Is(err, s.err)):
		return &failure{exitFailed, fmt.Errorf("writing the output: %w", s.err), "free some space, or write elsewhere"}
	}
	return err
}

// resultJSON is what run --json prints.
type resultJSON struct {
	Output  string         `json:"output"`
	Windows []windowJSON   `json:"windows,omitempty"`
	Note    string         `json:"note,omitempty"`
	DryRun  *stages.DryRun `json:"dry_run,omitempty"`
	Report  reportJSON     `json:"report"`
}

type windowJSON struct {
	Stage stages.Place `json:"stage"`
	Text  string       `json:"text"`
}

// runToJSON keeps the output and prints one object.
func (p *program) runToJSON(ctx context.Context, pipeline *stages.Pipeline, in io.Reader, o stages.RunOptions) error {
	out := &bounded{max: jsonOutputMax}
	report, err := pipeline.Run(ctx, in, out, o)
	if out.full {
		err = stages.Errorf(stages.LimitExceeded, "leave out --json to have the output as a stream, or end the pipeline with a stage that reduces it",
			"the output is larger than --json holds: %s", size(jsonOutputMax))
	}
	if err != nil {
		return &runError{err, jsonOf(report)}
	}
	result := resultJSON{Output: strings.ToValidUTF8(out.buf.String(), "\uFFFD"), Report: jsonOf(report)}
	result.Note, result.DryRun = strings.TrimSpace(gateway.NoteText(report)), report.DryRun
	for _, w := range report.Windows {
		result.Windows = append(result.Windows, windowJSON{w.Place, w.Text})
	}
	to := &stdout{w: p.stdout}
	return to.result(writeJSON(to, result))
}

// bounded is a buffer that refuses more than max bytes.
type bounded struct {
	buf  bytes.Buffer
	max  int
	full bool
}

var errFull = errors.New("the buffer is full")

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > b.max {
		b.full = true
		return 0, errFull
	}
	return b.buf.Write(p)
}

// checkCommand explains a pipeline, or everything that is wrong with it.
func (p *program) checkCommand() *cobra.Command {
	var s settings
	var f pipelineFlags
	var fed bool
	cmd := &cobra.Command{
		Use:   "check [PIPELINE | -]",
		Short: "Check a pipeline and explain what it would do, calling nothing",
		Long: "Check a pipeline: what each stage does, whether it only reads or may change something, and what it expects;\n" +
			"or everything that is wrong with it. Nothing is called.",
		Args: cobra.MaximumNArgs(1),
		RunE: work(func(ctx context.Context, args []string) error { return p.check(ctx, args, s, f, fed) }),
	}
	s.addSources(cmd)
	s.addWorkspace(cmd)
	s.limits.add(cmd)
	p.addSandbox(cmd, &s.sandbox)
	f.add(cmd)
	cmd.Flags().BoolVar(&fed, "fed", false, "the pipeline will be run with --input")
	p.addJSON(cmd, `print {"stages"}, or {"errors"}`)
	return cmd
}

func (p *program) check(ctx context.Context, args []string, s settings, f pipelineFlags, fed bool) (err error) {
	text, err := p.pipelineText(ctx, args, f.file, "")
	if err != nil {
		return err
	}
	parts, err := p.open(ctx, ctx, s, oneRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.close()) }()
	deps := parts.deps()
	deps.CheckOnly = true
	within := gateway.CallTime{Timeout: cmp.Or(s.limits.Run, defaultRun), Begun: time.Now(), Limits: deps.Limits}
	pipeline, err := compile(ctx, text, deps, fed, within)
	if err != nil {
		return err
	}
	if p.json {
		return writeJSON(p.stdout, pipeline.Plan())
	}
	_, err = io.WriteString(p.stdout, gateway.PlanText(pipeline.Plan()))
	return err
}
