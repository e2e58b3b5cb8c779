package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

// saveOptions are the flags of mcsh pipeline save.
type saveOptions struct {
	gatewayFlags
	file, run   string
	description string
	parameters  string
	base        int
}

func (p *program) pipelineSaveCommand() *cobra.Command {
	var o saveOptions
	cmd := &cobra.Command{
		Use:   "save NAME [-f FILE | --run RUN]",
		Short: "Save a pipeline from a file, from standard input, or from a run of a running gateway",
		Long: `Save a pipeline: a file as docs/saved-pipelines.md describes it, or an array of stages with --description, or what a run of
a running gateway has run (mcsh runs ls lists them). --parameters names literals that become parameters:
{"state": {"stage": 1, "arg": "state"}}. Earlier versions stay.`,
		Example: "  mcsh pipeline save open_by_team -f open_by_team.json\n" +
			`  mcsh pipeline save open_by_team --run q_k3vq7hd2mwxa --description "Open issues of each team" \
    --parameters '{"state": {"stage": 1, "arg": "state"}}'`,
		Args: withFirst(cobra.ExactArgs(1)),
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", `file to save, "-" for standard input (the default)`)
	f.StringVar(&o.run, "run", "", "run whose stages are saved, as logs and mcsh runs name it (q_...)")
	f.StringVar(&o.description, "description", "", "what the pipeline does and returns, where the file does not say it")
	f.StringVar(&o.parameters, "parameters", "", "literals of a plan that become parameters, as JSON")
	cmd.MarkFlagsMutuallyExclusive("file", "run")
	_ = cmd.MarkFlagFilename("file") // the flag exists
	return command(cmd, func(ctx context.Context, args []string) error { return p.savePipeline(ctx, args[0], &o) },
		o.gatewayFlags.add, o.addPipelines, versionFlag(&o.base), completing(firstArgument, p.pipelineNames(&o.settings)), p.jsonFlag("print one JSON object"))
}

func (p *program) savePipeline(ctx context.Context, name string, o *saveOptions) error {
	store, err := p.pipelineStore(ctx, o.settings)
	if err != nil {
		return err
	}
	if err := pipelines.CheckName(name); err != nil {
		return usageError("name it like open_by_team", "%w", err)
	}
	text, err := p.savedText(ctx, o)
	if err != nil {
		return err
	}
	d, err := pipelines.Parse(cmp.Or(o.file, name+".json"), text)
	if err != nil {
		return configError("docs/saved-pipelines.md has the form", err)
	}
	v, err := store.Save(ctx, name, text, o.base, pipelines.Author{})
	if err != nil {
		return pipelineFailure(err)
	}
	for i, e := range d.Examples {
		if e.Wrong != "" {
			fmt.Fprintf(p.stderr, "example %d does not fit the parameters: %s\n", i+1, texts.Plain(e.Wrong, true))
		}
	}
	return p.print(changedJSON{name, v.Number, "saved"}, fmt.Sprintf("saved %s@%d\n", name, v.Number))
}

// savedText returns the text of the new file.
func (p *program) savedText(ctx context.Context, o *saveOptions) ([]byte, error) {
	draft := pipelines.Draft{Description: o.description, Parameters: json.RawMessage(o.parameters), Ran: o.run != ""}
	if o.run != "" {
		plan, err := o.planOf(ctx, p)
		if err != nil {
			return nil, err
		}
		draft.Pipeline = plan
	} else {
		text, err := p.pipelineText(ctx, nil, cmp.Or(o.file, "-"), "")
		if err != nil {
			return nil, err
		}
		if draft.Pipeline = bytes.TrimSpace(text); !bytes.HasPrefix(draft.Pipeline, []byte("[")) {
			if o.description != "" || o.parameters != "" {
				return nil, usageError("write them into the file", "--description and --parameters are for arrays of stages and runs; the file has its own")
			}
			return text, nil
		}
	}
	if strings.TrimSpace(o.description) == "" {
		return nil, usageError(`add --description "Open issues of each team"`, "--description is missing: people and agents find the pipeline by it")
	}
	text, errs := draft.Text()
	if errs != nil {
		return nil, notSaved(errs)
	}
	return text, nil
}

// notSaved is the failure for mistakes of a draft: of the command line, if they are about parameters alone.
func notSaved(errs []*stages.Error) error {
	f := &failure{status: exitUsage}
	var all []error
	for _, e := range errs {
		if e.Code != stages.InvalidArguments {
			f.status = exitConfig
		}
		if f.hint = e.Hint; len(errs) > 1 && e.Hint != "" {
			all, f.hint = append(all, fmt.Errorf("nothing was saved: %s (%s)", e.Msg, e.Hint)), ""
		} else {
			all = append(all, fmt.Errorf("nothing was saved: %s", e.Msg))
		}
	}
	f.err = errors.Join(all...)
	return f
}

// planOf returns the plan of a run of a running gateway.
func (o *saveOptions) planOf(ctx context.Context, p *program) (json.RawMessage, error) {
	run, err := o.oneRun(ctx, p, []string{o.run}, false)
	switch {
	case err != nil:
		return nil, err
	case len(run.Plan) > 0:
		return run.Plan, nil
	case run.PlanSize > 0:
		return nil, &failure{exitFailed, fmt.Errorf("the plan of run %s was too long to be kept: %s", o.run, texts.Bytes(int64(run.PlanSize))), "save it from a file"}
	}
	return nil, &failure{exitFailed, fmt.Errorf("gateway %s does not show the plan of run %s", run.Gateway, o.run), "on its own machine it does"}
}
