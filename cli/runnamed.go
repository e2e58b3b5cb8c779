package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

// A namedRun is a run of a saved pipeline.
type namedRun struct {
	name   string   // empty: the pipeline is not a saved one
	params []string // NAME=VALUE
	object string   // all of them as JSON
}

func (p *program) addNamed(o *runOptions) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		f := cmd.Flags()
		f.StringArrayVar(&o.named.params, "param", nil, "a parameter of a saved pipeline, as NAME=VALUE; the value is JSON where its schema takes that, else text (repeatable)")
		f.StringVar(&o.named.object, "params", "", `parameters of a saved pipeline as one JSON object, such as '{"top": 5}'`)
		completing(firstOrFile, p.pipelineNames(&o.settings))(cmd)
		_ = cmd.RegisterFlagCompletionFunc("param", func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			words, directive := completer(func(ctx context.Context) []string { return p.paramWords(ctx, o, args, prefix) }).complete(cmd, nil, prefix)
			return words, directive | cobra.ShellCompDirectiveNoSpace
		}) // the flag exists
	}
}

// paramWords completes NAME= and the values of parameters that take only some.
func (p *program) paramWords(ctx context.Context, o *runOptions, args []string, prefix string) (words []string) {
	store, err := p.pipelineStore(ctx, o.settings)
	if err != nil || len(args) == 0 {
		return nil
	}
	saved, err := store.Get(ctx, args[0], pipelines.Everybody)
	if err != nil || saved.Definition == nil {
		return nil
	}
	for _, name := range saved.Definition.Names() {
		words = append(words, name+"=")
		if strings.HasPrefix(prefix, name+"=") {
			for _, value := range saved.Definition.Choices(ctx, name) {
				words = append(words, name+"="+value)
			}
		}
	}
	return words
}

// resolve finds out whether the argument of a command names a saved pipeline.
func (n *namedRun) resolve(ctx context.Context, p *program, args []string, o *runOptions) error {
	given := len(n.params) > 0 || n.object != ""
	const hint = "write mcsh run NAME --param NAME=VALUE; mcsh pipeline ls lists the names"
	if len(args) == 0 || o.file != "" {
		if given {
			return usageError(hint, "--param and --params are for a saved pipeline")
		}
		return nil
	}
	_, _, wrong := pipelines.SplitName(args[0])
	if wrong != nil {
		if given {
			return usageError(hint, "--param and --params are for a saved pipeline: %w", wrong)
		}
		return nil
	}
	store, err := p.pipelineStore(ctx, o.settings)
	if err != nil {
		return err
	}
	_, missing := store.Get(ctx, args[0], pipelines.Everybody)
	info, err := os.Stat(args[0])
	isFile := err == nil && !info.IsDir()
	switch {
	case missing != nil && isFile && !given:
		return nil // it is said how to run the file
	case missing != nil:
		return pipelineFailure(missing)
	case isFile:
		return usageError(fmt.Sprintf("to run the file, write -f %[1]s; to run the saved pipeline, write its version, such as %[1]s@1", args[0]),
			"%q is a file and a saved pipeline", args[0])
	case o.input != "" || o.fed:
		return usageError("give it parameters: --param NAME=VALUE", "a saved pipeline takes no input")
	}
	n.name = args[0]
	return nil
}

// compile checks the saved pipeline with its parameters, or else the one with the text.
func (n *namedRun) compile(ctx context.Context, set *pipelines.Set, text []byte, d stages.Deps, fed bool, within gateway.CallTime) (*stages.Pipeline, error) {
	if n.name == "" {
		return compile(ctx, text, d, fed, within)
	}
	d.Caller = callerRun
	var wrong error // about the name or the parameters
	pipeline, err := checked(ctx, within, func(ctx context.Context) (plan *stages.Pipeline, errs []*stages.Error) {
		var t *pipelines.Tool
		values := map[string]json.RawMessage{}
		if t, wrong = findPipeline(ctx, set, n.name); wrong == nil && t.Definition != nil {
			values, wrong = n.values(ctx, t.Definition)
		}
		if wrong == nil {
			plan, errs, wrong = set.Compile(ctx, t, pipelines.Args(values), d, pipelines.Operator())
		}
		return plan, errs
	})
	return pipeline, cmp.Or(err, wrong)
}

// values returns the given parameters.
func (n *namedRun) values(ctx context.Context, d *pipelines.Definition) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if n.object != "" {
		given, err := exactjson.Members([]byte(n.object), exactjson.Names{Unique: true})
		if err != nil {
			return nil, usageError(`write it like '{"top": 5}'`, "--params %s: %w", texts.Quote(texts.Fit(n.object, 60)), err)
		}
		maps.Copy(values, given)
	}
	for _, param := range n.params {
		name, text, ok := strings.Cut(param, "=")
		if !ok || name == "" {
			return nil, usageError("write --param NAME=VALUE", "--param %s has no name or no value", texts.Quote(texts.Fit(param, 60)))
		}
		if _, twice := values[name]; twice {
			return nil, usageError("give it once; a list is JSON: --param 'NAME=[1, 2]'", "the parameter %s is given twice", texts.Quote(name))
		}
		if !slices.Contains(d.Names(), name) {
			return nil, usageError(didYouMean("did you mean %s?", name, d.Names(), "its parameters are "+d.ParameterList()), "the pipeline has no parameter %s", texts.Quote(name))
		}
		values[name] = d.FromText(ctx, name, text)
	}
	return values, nil
}
