package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Variables that replace the flags of saved pipelines. The first one names directories, separated as in PATH.
const (
	pipelinesVariable     = "MCSH_PIPELINES"
	pipelineToolsVariable = "MCSH_PIPELINE_TOOLS"
)

// addPipelines adds the flags that say where saved pipelines are.
func (s *settings) addPipelines(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.pipelines, "pipelines", nil, "directory of saved pipelines (repeatable, the first wins; default: $"+pipelinesVariable+", else that of the user)")
	s.store.add(cmd)
	_ = cmd.MarkFlagDirname("pipelines") // the flag exists
}

// pipelineDirs returns the directories of saved pipelines: the named ones, or else the user's.
func (p *program) pipelineDirs(s settings) []string {
	if len(s.pipelines) > 0 {
		return s.pipelines
	}
	if named := slices.DeleteFunc(filepath.SplitList(p.env[pipelinesVariable]), func(path string) bool { return path == "" }); len(named) > 0 {
		return named
	}
	if path := p.userFile(); path != "" {
		return []string{filepath.Join(filepath.Dir(path), "pipelines")}
	}
	return nil
}

// openPipelines returns the saved pipelines; nil: there is no place for them.
func (p *program) openPipelines(ctx context.Context, s settings, deps stages.Deps, tools func() uint64) (*pipelines.Set, error) {
	saved, err := p.pipelineStore(ctx, s)
	switch {
	case errors.Is(err, errNoPipelines):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return pipelines.NewSet(saved, deps, tools), nil
}

// describePipelines adds a finding for each saved pipeline that cannot be called, and one for all others.
func (d *diagnosis) describePipelines(ctx context.Context, pool *upstream.Pool) {
	commands := d.program.newSandbox(ctx, d.settings.sandbox)
	defer commands.Close()
	x := &dependencies{upstream: pool, sandbox: commands}
	set, err := d.program.openPipelines(ctx, d.settings, x.base(), pool.Generation)
	if err != nil {
		d.add(statusWarning, "correct --store and --store-key-file", "%v", err)
	}
	if set == nil {
		return
	}
	before, fit := len(d.findings), 0
	for _, t := range set.Tools(ctx, pipelines.Operator()) {
		for _, wrong := range t.WrongExamples() {
			d.add(statusWarning, "correct the example or the parameters; calls work all the same", "an example of %s is wrong: %s", t.Name, texts.Plain(wrong, true))
		}
		if t.Broken == nil {
			fit++
			continue
		}
		hint := ""
		if e, ok := errors.AsType[*stages.Error](t.Broken); ok {
			hint = e.Hint
		}
		d.add(statusWarning, texts.Plain(hint, true), "%s cannot be called: %s", t.Name, texts.Plain(t.Why().Error(), true))
	}
	if fit > 0 {
		d.add(statusOK, "", "%s can be called", texts.Count(fit, "saved pipeline"))
	}
	if _, err := set.Store().List(ctx); err != nil {
		d.add(statusWarning, "correct it, or name other directories with --pipelines", "%v", err)
	}
	for i := range d.findings[before:] {
		d.findings[before+i].Check = "pipelines"
	}
}

// addPipelineTools adds the flag of the saved pipelines that clients call by names of their own.
func (e *exposeFlags) addPipelineTools(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.pipelines, "pipeline-tools", "",
		"saved pipelines that clients also call by names of their own: none, all, or a glob of names; at most 50 (default none; $"+pipelineToolsVariable+")")
	completeFlag(cmd, "pipeline-tools", gateway.PipelineToolsNone, gateway.PipelineToolsAll)
}

func (e *exposeFlags) resolvePipelineTools(p *program) error {
	e.pipelines = cmp.Or(e.pipelines, p.env[pipelineToolsVariable], gateway.PipelineToolsNone)
	if err := gateway.CheckPipelineTools(e.pipelines); err != nil {
		return usageError("write none, all, or names with * such as 'report_*'", "--pipeline-tools: %v", err)
	}
	return nil
}

// followPipelines follows the saved pipelines while a gateway serves.
func followPipelines(ctx context.Context, x *dependencies, g *gateway.Gateway, log *zap.Logger) (end func()) {
	if x.saved == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.saved.Follow(ctx, func(c pipelines.Change) {
			logPipelines(log, c)
			g.PipelinesChanged()
		})
	}()
	return func() { cancel(); <-done }
}

// logPipelines logs a change of the saved pipelines.
func logPipelines(log *zap.Logger, c pipelines.Change) {
	if c.Err != nil {
		log.Warn("some saved pipelines cannot be read", zap.Error(c.Err))
	}
	for name, err := range c.Broken {
		log.Warn("a saved pipeline cannot be called", zap.String("pipeline", name), zap.Error(err))
	}
	for name, wrong := range c.WrongExamples {
		log.Warn("examples of a saved pipeline do not fit its parameters", zap.String("pipeline", name), zap.Strings("examples", wrong))
	}
	for _, name := range c.Shadowed {
		log.Warn("a saved pipeline is hidden by another one of its name in an earlier directory", zap.String("file", name))
	}
	if len(c.Names) > 0 {
		var fields []zap.Field
		for _, what := range slices.Sorted(maps.Keys(c.Names)) {
			fields = append(fields, zap.Strings(what, c.Names[what]))
		}
		log.Info("the saved pipelines have changed", fields...)
	}
}
