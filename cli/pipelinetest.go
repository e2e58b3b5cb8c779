package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

// exitTestFailed is the exit status of mcsh pipeline test after a failure, as other test programs have it.
const exitTestFailed = 1

// statusDry is that of an example that would change something.
const statusDry status = "dry"

// testedJSON is the outcome of one example; without an example, of the whole pipeline.
type testedJSON struct {
	Name    string          `json:"name"`
	Version int             `json:"version,omitempty"`
	Example int             `json:"example,omitempty"` // from 1
	Args    json.RawMessage `json:"args,omitempty"`
	Status  status          `json:"status"`
	Text    string          `json:"text,omitempty"`
	Output  string          `json:"output,omitempty"` // where it is not as expected
	run     string          // its name at the gateway that has run it
	Millis  int64           `json:"ms"`
}

func (p *program) pipelineTestCommand() *cobra.Command {
	var s settings
	var forReal bool
	cmd := &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Run the examples of saved pipelines, and check their outputs",
		Long: `Run the examples of saved pipelines, and check their outputs. Of a pipeline that may change something it runs what only reads,
and shows the calls that would change something; --for-real makes them.

Exit status: 0 everything is as expected, 1 something is not, others as for mcsh run.`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.Flags().BoolVar(&forReal, "for-real", false, "also make the calls that change something")
	return command(cmd, p.withPipelines(&s, func(ctx context.Context, x *dependencies, args []string) error {
		return p.testPipelines(ctx, x, args, forReal)
	}), s.addPipelineUse(p), completing(everyArgument, p.pipelineNames(&s)), p.jsonFlag("print one JSON object per example, a line each"))
}

func (p *program) testPipelines(ctx context.Context, x *dependencies, names []string, forReal bool) error {
	var tools []*pipelines.Tool
	for _, name := range names {
		t, err := findPipeline(ctx, x.saved, name)
		if err != nil {
			return err
		}
		tools = append(tools, t)
	}
	if len(names) == 0 {
		all := x.saved.Tools(ctx, pipelines.Operator())
		for i := range all {
			tools = append(tools, &all[i])
		}
	}
	with := compiling{x.saved, x.deps(), pipelines.Operator(), runUnseen}
	with.deps.Caller = "test"
	n := map[status]int{}
	for _, t := range tools {
		for _, one := range with.test(ctx, t, forReal) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n[one.Status]++
			if err := p.print(one, one.line()); err != nil {
				return err
			}
		}
	}
	if !p.json {
		fmt.Fprintf(p.stderr, "%s: %d ok, %d dry, %d failed\n", texts.Count(len(tools), "pipeline"), n[statusOK], n[statusDry], n[statusFailed])
	}
	if n[statusFailed] > 0 {
		return reportedStatus(exitTestFailed)
	}
	return nil
}

// line is the outcome for a person.
func (j testedJSON) line() string {
	name := atVersion(j.Name, j.Version)
	if j.Example > 0 {
		name += fmt.Sprintf(" example %d %s", j.Example, texts.Fit(string(j.Args), 100))
	}
	text := fmt.Sprintf("%-7s %s", j.Status, texts.Plain(name, false))
	if j.Text != "" {
		text += ": " + strings.ReplaceAll(strings.TrimSpace(texts.Plain(j.Text, true)), "\n", "\n          ")
	}
	text += "\n"
	if j.Output != "" {
		text += gateway.Fenced(j.Output)
	}
	return text
}

// A compiling is for whom saved pipelines are compiled, and with what.
type compiling struct {
	set    *pipelines.Set
	deps   stages.Deps
	viewer pipelines.Viewer
	run    func(ctx context.Context, t gateway.Trial, out io.Writer) (request string, report stages.Report, err error)
}

// runUnseen runs an example that nobody lists.
func runUnseen(ctx context.Context, t gateway.Trial, out io.Writer) (string, stages.Report, error) {
	report, err := t.Pipeline.Run(ctx, nil, out, stages.RunOptions{DryRun: t.Dry})
	return "", report, err
}

// test runs the examples of a pipeline.
func (with compiling) test(ctx context.Context, t *pipelines.Tool, forReal bool) (list []testedJSON) {
	one := testedJSON{Name: t.Name, Version: t.Version.Number}
	if t.Broken != nil {
		one.Status, one.Text = statusFailed, "broken: "+t.Broken.Error()
		return []testedJSON{one}
	}
	if len(t.Definition.Examples) == 0 {
		one.Status, one.Text = statusNote, "it has no examples"
		return []testedJSON{one}
	}
	for i, e := range t.Definition.Examples {
		begun := time.Now()
		one := one
		one.Example, one.Args = i+1, e.Args
		with.example(ctx, t, e, forReal, &one)
		one.Millis = time.Since(begun).Milliseconds()
		list = append(list, one)
	}
	return list
}

// shownOutput bounds the output that a failure shows, in characters.
const shownOutput = 600

// example runs one example. The output is that of a run that ended well, and was not as expected.
func (with compiling) example(ctx context.Context, t *pipelines.Tool, e pipelines.Example, forReal bool, is *testedJSON) {
	is.Status = statusFailed
	made, values, err := with.trial(ctx, t, e)
	if err != nil {
		is.Text = err.Error()
		return
	}
	made.Dry = made.Pipeline.Changes() && !forReal
	out := &bounded{max: jsonOutputMax}
	run, report, err := with.run(ctx, made, out)
	is.run = run
	switch d := report.DryRun; {
	case out.full:
		is.Text = "the output is larger than " + texts.Bytes(jsonOutputMax)
	case err != nil:
		is.Text = err.Error()
	case made.Dry && d != nil && d.Place != "":
		is.Status, is.Text = statusDry, fmt.Sprintf("stage %s (%s) may change something, and was not called; --for-real calls it", d.Place, d.Label)
	case e.JQ == "":
		is.Status = statusOK
	default:
		with.judge(ctx, values, e.JQ, out.buf.Bytes(), is)
	}
}

// trial compiles an example with its values.
func (with compiling) trial(ctx context.Context, t *pipelines.Tool, e pipelines.Example) (made gateway.Trial, values map[string]json.RawMessage, err error) {
	if values, err = t.Definition.Values(ctx, e.Args); err != nil {
		return made, nil, err
	}
	filled, err := t.Definition.Fill(values)
	if err != nil {
		return made, nil, err
	}
	plan, errs, err := with.set.Compile(ctx, t, e.Args, with.deps, with.viewer)
	if errs != nil {
		err = planError(errs)
	}
	return gateway.Trial{Name: t.Name, Plan: filled.Stages, Pipeline: plan}, values, err
}

// judge says whether an output is as expected.
func (with compiling) judge(ctx context.Context, values map[string]json.RawMessage, jq string, output []byte, is *testedJSON) {
	switch got, err := with.expect(ctx, values, jq, output); {
	case err != nil:
		is.Text = fmt.Sprintf("the expectation %s fails: %v", jq, err)
	case got != "true":
		is.Text = fmt.Sprintf("the output is not as expected: jq %s gives %s", jq, texts.Fit(got, 100))
	default:
		is.Status = statusOK
		return
	}
	is.Output = texts.Fit(string(output), shownOutput)
}

// expect runs the jq program of an example on the output: on its JSON value, an array if it has more or none, or else a text. It
// has the parameters in $params.
func (with compiling) expect(ctx context.Context, values map[string]json.RawMessage, jq string, output []byte) (string, error) {
	args := append(readingJQ(output), "-c", "--argjson", "params", string(pipelines.Args(values)), jq)
	stage := map[string]any{"type": "command", "command": "jq", "args": args}
	deps := with.deps
	deps.Runs = nil // the expectation is no run
	check, errs := stages.CompileFed(ctx, []byte(texts.JSON([]any{stage})), deps)
	if errs != nil {
		return "", planError(errs)
	}
	out := &bounded{max: jsonOutputMax}
	_, err := check.Run(ctx, bytes.NewReader(output), out, stages.RunOptions{})
	return strings.TrimSpace(out.buf.String()), err
}

// readingJQ returns the options with which jq reads an output as one value.
func readingJQ(output []byte) []string {
	n := 0
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; n++ {
		switch err := decoder.Decode(new(json.RawMessage)); {
		case err == io.EOF && n == 1:
			return nil
		case err == io.EOF:
			return []string{"-s"}
		case err != nil:
			return []string{"-R", "-s"}
		}
	}
}
