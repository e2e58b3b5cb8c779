package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// jsonOutputMax bounds the output that --json holds in memory.
const jsonOutputMax = 64 << 20

type runOptions struct {
	settings
	file    string // of the pipeline
	input   string
	timeout time.Duration
	table   bool
	dry     bool
	quiet   bool
	check   bool // explain the pipeline instead
	fed     bool // for a check: the run will have an input
	named   namedRun
}

func (p *program) runCommand() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [PIPELINE | NAME | -]",
		Short: "Run a pipeline",
		Long: `Run a pipeline: a JSON array of stages, each one reading what the one before writes; or a saved pipeline by its name
(mcsh pipeline ls).

The output goes to standard output as it comes. On a terminal standard error shows the progress meanwhile. With -v, or
on a terminal, a table of the stages follows there; what preview stages see stands before it. The whole plan is checked
before anything is called.

--json prints one object: {"output", "windows", "note", "dry_run", "report"}, or {"errors", "report"} when it failed.`,
		Example: `  mcsh run '[{"type": "tool", "server": "demo", "name": "list_orders"},
             {"type": "command", "command": "jq", "args": ["-c", ".orders[] | {id, total}"]},
             {"type": "command", "command": "head", "args": ["-n", "3"]}]'
  mcsh run -f pipeline.json --config mcp.json
  mcsh run -f pipeline.json --input orders.json
  mcsh run open_by_team --param state=closed --param top=5`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&o.input, "input", "", `file that the first stage reads, "-" for standard input`)
	f.DurationVar(&o.timeout, "timeout", 0, "time for the whole run from its start, waiting for servers included, such as 90s, and for each command in it if that is more than 30s (default 5m)")
	f.BoolVarP(&o.table, "verbose", "v", false, "print the table of stages also where standard error is not a terminal")
	f.BoolVar(&o.table, "table", false, "the same as --verbose")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show neither progress nor, without --verbose, the table of stages on a terminal")
	f.BoolVar(&o.dry, "dry-run", false, "call only what reads, and show the calls that would change something")
	return command(cmd, func(ctx context.Context, args []string) error {
		if o.timeout <= 0 && f.Changed("timeout") {
			return usageError("give a duration such as 90s", "--timeout %s is not above zero", o.timeout)
		}
		return p.runPipeline(ctx, args, o)
	}, o.addSources, o.addState, o.addWorkspace, o.limits.add, o.addMemory, p.sandboxFlags(&o.sandbox), o.addFile, p.addNamed(&o),
		p.jsonFlag("print one JSON object instead of the output"))
}

// runPipeline compiles and runs the pipeline, or only explains it, and closes everything that it started.
func (p *program) runPipeline(ctx context.Context, args []string, o runOptions) (err error) {
	begun := time.Now()
	if err := p.setMemory(&o.settings); err != nil {
		return err
	}
	o.limits.Run = max(o.timeout, cmp.Or(o.limits.Run, defaultRun))
	o.limits.Command = max(o.timeout, cmp.Or(o.limits.Command, defaultCommand))
	within := gateway.CallTime{Timeout: cmp.Or(o.timeout, o.limits.Run), Begun: begun, Limits: o.limits.Limits}
	text, in, parts, err := p.prepare(ctx, args, &o, within)
	if in != nil {
		defer in.Close()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.close()) }()
	screen := o.show(p, parts.upstream.Statuses)
	defer screen.stop()
	deps := parts.deps()
	deps.CheckOnly = o.check
	pipeline, err := o.named.compile(ctx, parts.saved, text, deps, o.fed || in != nil, within)
	if err != nil {
		return err
	}
	if o.check {
		return p.print(pipeline.Plan(), gateway.PlanText(pipeline.Plan()))
	}
	options := stages.RunOptions{Timeout: o.timeout, Spent: time.Since(begun), DryRun: o.dry}
	if in == nil {
		options.Asker = p.asker(ctx, screen)
	}
	if screen != nil {
		options.Begun = func(list func() []stages.StageReport) { screen.follow(time.Now(), list) }
		options.Progress = func(stages.Progress) {} // it makes tools report progress
	}
	if p.json {
		return p.runToJSON(ctx, pipeline, in, options)
	}
	table := o.table || p.stderr.terminal && !o.quiet
	err = p.runToStdout(ctx, pipeline, in, options, table)
	if active, _ := parts.sandbox.state(); active != nil && table {
		used := active.report()
		fmt.Fprintf(p.stderr, "commands ran in %s\n", sandboxLine(used))
		for _, note := range used.Notes {
			if o.table {
				fmt.Fprintf(p.stderr, "note: %s\n", note)
			}
		}
	}
	return err
}

// show starts the screen of a run, if there is to be one.
func (o *runOptions) show(p *program, servers func() []upstream.ServerStatus) *screen {
	if o.quiet {
		return nil
	}
	return p.show(servers)
}

// prepare reads the pipeline and the configuration, and opens the input, within the time of the run. A saved pipeline has no text.
// Without an input in is nil; otherwise the caller must close it, also after an error.
func (p *program) prepare(ctx context.Context, args []string, o *runOptions, within gateway.CallTime) (text []byte, in io.ReadCloser, parts *dependencies, err error) {
	bound, end := within.Bound(ctx)
	defer end()
	defer func() {
		if late := within.Late(bound, err); late != nil {
			err = &runError{late, jsonOf(stages.Report{})}
		}
	}()
	if err = o.named.resolve(bound, p, args, o); err == nil && o.named.name == "" {
		text, err = p.pipelineText(bound, args, o.file, o.input)
	}
	if err == nil {
		in, err = p.openInput(bound, o.input)
	}
	if err == nil {
		o.sandbox.warm = 0
		parts, err = p.open(ctx, bound, o.settings)
	}
	return text, in, parts, err
}

// The default times of a run and of one command. A shorter --timeout keeps them as limits of stages; a longer one raises
// both, because a stream keeps its commands busy for the whole run.
const (
	defaultRun     = 5 * time.Minute
	defaultCommand = 30 * time.Second
)

// compile checks the pipeline and waits for the servers that it needs, within the time of the call.
func compile(ctx context.Context, text []byte, d stages.Deps, fed bool, within gateway.CallTime) (*stages.Pipeline, error) {
	check := stages.Compile
	if fed {
		check = stages.CompileFed
	}
	d.Caller = callerRun
	return checked(ctx, within, func(ctx context.Context) (*stages.Pipeline, []*stages.Error) { return check(ctx, text, d) })
}

// callerRun is the only caller of a run of the command line.
const callerRun = "run"

// checked returns the pipeline that check makes within the time of the call.
func checked(ctx context.Context, within gateway.CallTime, check func(context.Context) (*stages.Pipeline, []*stages.Error)) (*stages.Pipeline, error) {
	pipeline, errs, late := within.Check(ctx, check)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case late != nil:
		return nil, &runError{late, jsonOf(stages.Report{})} // the time of the run is over, although nothing ran
	case errs != nil:
		return nil, planError(errs)
	}
	return pipeline, nil
}

// A runError is the failure of a run, with its report.
type runError struct {
	err    error
	report reportJSON
}

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// runToStdout streams the output, and then prints the notes and the report on standard error.
func (p *program) runToStdout(ctx context.Context, pipeline *stages.Pipeline, in io.Reader, o stages.RunOptions, table bool) error {
	report, err := pipeline.Run(ctx, in, p.stdout, o)
	if d := report.DryRun; d != nil && d.Place != "" {
		_, werr := io.WriteString(p.text, gateway.DryRunText(report))
		err = errors.Join(err, werr)
	}
	if p.stdout.terminal && p.stdout.open { // end the last line
		_, _ = p.stdout.Write([]byte{'\n'}) // the stream keeps the error
	}
	err = p.stdout.result(err)
	fmt.Fprint(p.stderr, gateway.NoteText(report, 0)) // the output is there byte for byte
	for _, window := range report.Windows {
		io.WriteString(p.stderr, gateway.WindowText(window))
	}
	if len(report.Stages) > 0 && table {
		io.WriteString(p.stderr, tableOf(report, p.columns(p.stderr.stream)))
	}
	if err != nil {
		return &runError{err, jsonOf(report)}
	}
	return nil
}

type resultJSON struct {
	Output  string          `json:"output"`
	Windows []stages.Window `json:"windows,omitempty"`
	Note    string          `json:"note,omitempty"`
	DryRun  *stages.DryRun  `json:"dry_run,omitempty"`
	Report  reportJSON      `json:"report"`
}

// runToJSON collects the output and prints one object.
func (p *program) runToJSON(ctx context.Context, pipeline *stages.Pipeline, in io.Reader, o stages.RunOptions) error {
	out := &bounded{max: jsonOutputMax}
	report, err := pipeline.Run(ctx, in, out, o)
	if out.full {
		err = stages.Errorf(stages.LimitExceeded, "leave out --json to have the output as a stream, or end the pipeline with a stage that reduces it",
			"the output is larger than --json holds: %s", texts.Bytes(jsonOutputMax))
	}
	if err != nil {
		return &runError{err, jsonOf(report)}
	}
	output, replaced := texts.Valid(out.buf.Bytes())
	result := resultJSON{Output: output, Windows: report.Windows, Report: jsonOf(report)}
	result.Note, result.DryRun = strings.TrimSpace(gateway.NoteText(report, replaced)), report.DryRun
	return writeJSON(p.stdout, result)
}

// bounded is a buffer that refuses more than max bytes.
type bounded struct {
	buf  bytes.Buffer
	max  int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.buf.Len()+len(p) > b.max {
		b.full = true
		return 0, io.ErrShortBuffer
	}
	return b.buf.Write(p)
}

func (p *program) checkCommand() *cobra.Command {
	o := runOptions{check: true}
	cmd := &cobra.Command{
		Use:   "check [PIPELINE | NAME | -]",
		Short: "Check a pipeline and explain what it would do, calling nothing",
		Long: "Check a pipeline: what each stage does, whether it only reads or may change something, and what it expects;\n" +
			"or everything that is wrong with it. Nothing is called.",
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVar(&o.fed, "fed", false, "the pipeline will be run with --input")
	return command(cmd, func(ctx context.Context, args []string) error {
		return p.runPipeline(ctx, args, o)
	}, o.addSources, o.addWorkspace, o.limits.add, o.addMemory, p.sandboxFlags(&o.sandbox), o.addFile, p.addNamed(&o), p.jsonFlag(`print {"stages"}, or {"errors"}`))
}

// maxPipeline bounds the text of a pipeline. People and models write it; embedded data is a mistake.
const maxPipeline = 4 << 20

func (o *runOptions) addFile(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.file, "file", "f", "", `file with the pipeline, "-" for standard input`)
}

// pipelineText reads the pipeline from the argument, a file or standard input. input is the source of its data.
func (p *program) pipelineText(ctx context.Context, args []string, file, input string) ([]byte, error) {
	const hint = `give the pipeline as an argument, with -f FILE, or "-" for standard input`
	switch {
	case len(args) > 0 && file != "":
		return nil, usageError(hint, "there are two pipelines: an argument and -f %s", file)
	case len(args) == 0 && file == "":
		return nil, usageError(hint, "there is no pipeline")
	case len(args) > 0 && args[0] != "-":
		if text := strings.TrimSpace(args[0]); text == "" || !strings.Contains(`["{`, text[:1]) {
			if info, err := os.Stat(args[0]); err == nil && !info.IsDir() {
				return nil, usageError(fmt.Sprintf("to run the pipeline in that file, write -f %s", args[0]), "%q is a file, not a pipeline", args[0])
			}
			return nil, usageError(hint, "%q is not a pipeline: that is a JSON array of stages", texts.Fit(args[0], 60))
		}
		return []byte(args[0]), nil
	}
	file = cmp.Or(file, "-")
	if file == "-" && input == "-" {
		return nil, usageError("put the pipeline into a file or an argument", "the pipeline and its input cannot both be standard input")
	}
	r, err := p.openInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := readUntil(ctx, io.LimitReader(r, maxPipeline+1))
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the pipeline is still being read from %s: %w", nameOf(file), ctx.Err())
	case err != nil:
		return nil, usageError(hint, "reading the pipeline: %w", err)
	case len(text) > maxPipeline:
		return nil, usageError("feed data with --input", "the pipeline in %s is larger than %s", file, texts.Bytes(maxPipeline))
	}
	return bytes.TrimPrefix(text, byteOrderMark), nil
}

// byteOrderMark is a prefix that some editors write.
var byteOrderMark = []byte("\xEF\xBB\xBF")

// readUntil reads r to its end while ctx lives. Standard input cannot be closed under a reader, so after ctx the reader
// stays until the process ends.
func readUntil(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(r)
		read <- result{data, err}
	}()
	select {
	case got := <-read:
		return got.data, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// nameOf names a file in messages.
func nameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// openInput opens a file or standard input; an empty name opens nothing. It streams, so the file may be a device or a
// pipe; opening a pipe waits for its writer while ctx lives.
func (p *program) openInput(ctx context.Context, name string) (io.ReadCloser, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return io.NopCloser(p.stdin), nil
	}
	f, err := namedfile.Open(ctx, name)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s is still being opened: %w", name, ctx.Err())
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no file %s", name)
	}
	if err != nil {
		return nil, usageError(`give the path of a file, or "-" for standard input`, "%w", err)
	}
	return f, nil
}
