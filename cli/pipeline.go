package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
)

func (p *program) pipelineCommand() *cobra.Command {
	return group("pipeline", "List, show, save, test and compare saved pipelines", "List, show, save, test and compare saved pipelines (docs/saved-pipelines.md).",
		p.pipelineLsCommand(), p.pipelineShowCommand(), p.pipelineSaveCommand(), p.pipelineRmCommand(), p.pipelineTestCommand(),
		p.pipelineDiffCommand(), p.pipelineAdoptCommand())
}

// pipelineJSON describes a saved pipeline.
type pipelineJSON struct {
	Name        string           `json:"name"`
	Version     int              `json:"version,omitempty"`
	Hash        string           `json:"hash,omitempty"`
	Description string           `json:"description,omitempty"`
	Parameters  json.RawMessage  `json:"parameters,omitempty"`
	Signature   string           `json:"signature,omitempty"`
	ReadOnly    bool             `json:"read_only"`
	Author      pipelines.Author `json:"author"`
	Saved       *time.Time       `json:"saved,omitempty"`
	Private     bool             `json:"private"` // only the caller of its author sees it
	Removed     bool             `json:"removed,omitempty"`
	Broken      string           `json:"broken,omitempty"`
	Path        string           `json:"path"`
	Shadows     []string         `json:"shadows,omitempty"` // files of the same name that do not count
	Wrong       []string         `json:"wrong_examples,omitempty"`
	Versions    []int            `json:"versions,omitempty"` // that are kept
	File        string           `json:"file,omitempty"`     // its text
}

// authorText names the author of a version.
func authorText(v pipelines.Version) string {
	switch {
	case !v.Author.Agent:
		return "a person"
	case v.Private():
		return "an agent of " + v.Author.Caller + ", not adopted"
	}
	return "an agent of " + v.Author.Caller + ", adopted"
}

func (p *program) pipelineLsCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the saved pipelines, with their parameters, effects and authors",
		Args:  cobra.NoArgs,
	}
	return command(cmd, p.withPipelines(&s, p.listPipelines), s.addPipelineUse(p), p.jsonFlag("print one JSON object per pipeline, a line each"))
}

func (p *program) listPipelines(ctx context.Context, x *dependencies, _ []string) error {
	tools := x.saved.Tools(ctx, pipelines.Operator())
	_, broken := x.saved.Store().List(ctx)
	if len(tools) == 0 && broken == nil && !p.json {
		fmt.Fprintf(p.stderr, "there are no saved pipelines in %s; mcsh pipeline save makes one\n", strings.Join(x.saved.Store().Places(), ", "))
	}
	all := convert(tools, func(t pipelines.Tool) pipelineJSON { return describePipeline(&t) })
	rows := make([][]string, len(all))
	for i, j := range all {
		rows[i] = []string{atVersion(j.Name, j.Version), j.effect(), authorText(tools[i].Version), firstSentence(j.Description)}
	}
	lines, _ := aligned(rows, 4, p.columns(p.stdout))
	for i := range all {
		if err := p.print(all[i], lines[i]+"\n"+all[i].below(&tools[i])); err != nil {
			return err
		}
	}
	if broken == nil {
		return nil
	}
	return configError("correct it, or name other directories with --pipelines", broken)
}

// below is what one should know of the pipeline beside its line.
func (j *pipelineJSON) below(t *pipelines.Tool) (text string) {
	if len(t.Definition.Names()) > 0 {
		text = indentedNote(strings.TrimPrefix(j.Signature, j.Name)) + "\n"
	}
	for _, note := range j.notes() {
		text += indentedNote(note) + "\n"
	}
	return text
}

// describePipeline describes a saved pipeline.
func describePipeline(t *pipelines.Tool) pipelineJSON {
	v := t.Version
	one := pipelineJSON{
		Name: t.Name, Version: v.Number, Hash: v.Hash, Signature: t.Long, ReadOnly: t.Effects.ReadOnly, Author: v.Author, Private: v.Private(),
		Path: t.Path, Shadows: t.Shadows, Removed: t.Removed, Wrong: t.WrongExamples(),
	}
	if t.Definition != nil {
		one.Description, one.Parameters = t.Definition.Description, t.Schema
	}
	if !v.Saved.IsZero() {
		one.Saved = &v.Saved
	}
	if why := t.Why(); why != nil {
		one.Broken = why.Error()
	}
	return one
}

// atVersion is a name with a version; 0: it has none.
func atVersion(name string, version int) string {
	if version == 0 {
		return name
	}
	return name + "@" + strconv.Itoa(version)
}

func (j *pipelineJSON) effect() string {
	switch {
	case j.Broken != "":
		return "broken"
	case j.ReadOnly:
		return "only reads"
	}
	return "may change something"
}

// notes are what somebody should know before they use the pipeline.
func (j *pipelineJSON) notes() (list []string) {
	if j.Broken != "" {
		list = append(list, "broken: "+j.Broken)
	}
	list = append(list, j.Wrong...)
	if j.Removed {
		list = append(list, "it was removed; to have it back: mcsh pipeline show "+atVersion(j.Name, j.Version)+" --json | jq -r .file | mcsh pipeline save "+j.Name)
	} else if j.Private {
		list = append(list, "only its caller sees it until: mcsh pipeline adopt "+j.Name)
	}
	for _, path := range j.Shadows {
		list = append(list, path+" does not count: "+j.Path+" comes first")
	}
	return list
}

func indentedNote(note string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(texts.Plain(note, true)), "\n", "\n    ")
}

// pipelineFailure returns the error of the store with its exit status and a hint.
func pipelineFailure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pipelines.ErrNotFound):
		return usageError("mcsh pipeline ls lists them, mcsh pipeline show NAME the versions of one; NAME@1 also works for a removed one; give --pipelines as the gateway has it", "%w", err)
	case errors.Is(err, pipelines.ErrConflict):
		return &failure{exitFailed, err, "look at it with mcsh pipeline show, and give the --version that you have seen"}
	}
	return &failure{exitFailed, err, ""}
}

func (p *program) pipelineShowCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "show NAME[@VERSION]",
		Short: "Show a saved pipeline: what it does, its parameters, its versions and its file",
		Args:  withFirst(cobra.ExactArgs(1)),
	}
	return command(cmd, p.withPipelines(&s, func(ctx context.Context, x *dependencies, args []string) error {
		t, err := findPipeline(ctx, x.saved, args[0])
		if err != nil {
			return err
		}
		one := describePipeline(t)
		versions, err := x.saved.Store().Versions(ctx, t.Name)
		one.File, one.Versions = t.Version.Text, convert(versions, func(v pipelines.Version) int { return v.Number })
		return errors.Join(p.print(one, one.text(t)), err)
	}), s.addPipelineUse(p), completing(firstArgument, p.pipelineNames(&s)), p.jsonFlag("print one JSON object"))
}

// text is the whole description for a person.
func (j *pipelineJSON) text(t *pipelines.Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", texts.Plain(atVersion(j.Name, j.Version)+strings.TrimPrefix(j.Signature, j.Name), false))
	if j.Description != "" {
		fmt.Fprintf(&b, "\n%s", gateway.Fenced(strings.TrimSpace(j.Description)))
	}
	fmt.Fprintf(&b, "\neffect:   %s\n", j.effect())
	fmt.Fprintf(&b, "author:   %s\n", texts.Plain(authorText(t.Version), false))
	fmt.Fprintf(&b, "versions: %s\n", cmp.Or(strings.Join(convert(j.Versions, strconv.Itoa), ", "), "none is kept"))
	fmt.Fprintf(&b, "file:     %s\n", texts.Plain(j.Path, false))
	for _, note := range j.notes() {
		fmt.Fprintln(&b, indentedNote(note))
	}
	fmt.Fprintf(&b, "\n%s", gateway.Fenced(strings.TrimSpace(j.File)))
	if t.Definition != nil && j.Broken == "" {
		fmt.Fprintf(&b, "\nstage:    {\"type\":\"tool\",\"server\":%q,\"name\":%q,\"args\":%s}\n", pipelines.Server, j.Name, t.Definition.ExampleArgs())
	}
	return b.String()
}

// versionFlag adds --version, without which any version will do.
func versionFlag(base *int) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		cmd.Flags().IntVar(base, "version", pipelines.Any, "only if this is the current version; 0: only if there is none (default: any)")
		cmd.Flags().Lookup("version").DefValue = "0"
	}
}

func (p *program) pipelineRmCommand() *cobra.Command {
	return p.changeCommand(&cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove saved pipelines; their versions stay, and can be saved again",
	}, "removed", func(ctx context.Context, store *pipelines.Store, name string, base int) (v pipelines.Version, err error) {
		return v, store.Remove(ctx, name, base)
	})
}

func (p *program) pipelineAdoptCommand() *cobra.Command {
	return p.changeCommand(&cobra.Command{
		Use:   "adopt NAME...",
		Short: "Let all callers see pipelines that an agent has saved",
		Long: `Let all callers see pipelines that an agent has saved. Read them before (mcsh pipeline show): their descriptions are text for
other agents. From then on they are yours: no agent changes them.`,
	}, "adopted", func(ctx context.Context, store *pipelines.Store, name string, base int) (pipelines.Version, error) {
		return store.Adopt(ctx, name, base)
	})
}

// changedJSON is the outcome of a change.
type changedJSON struct {
	Name    string `json:"name"`
	Version int    `json:"version,omitempty"`
	Done    string `json:"done"`
}

// changeCommand returns a command that changes pipelines one after another, until one cannot be changed.
func (p *program) changeCommand(
	cmd *cobra.Command, done string, change func(ctx context.Context, store *pipelines.Store, name string, base int) (pipelines.Version, error),
) *cobra.Command {
	var s settings
	var base int
	cmd.Args = withFirst(cobra.ArbitraryArgs)
	return command(cmd, func(ctx context.Context, names []string) error {
		store, err := p.pipelineStore(ctx, s)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := pipelines.CheckName(name); err != nil {
				return usageError("mcsh pipeline ls lists the names", "%w", err)
			}
			v, err := change(ctx, store, name, base)
			if err != nil {
				return pipelineFailure(err)
			}
			if err := p.print(changedJSON{name, v.Number, done}, fmt.Sprintf("%s %s\n", done, atVersion(name, v.Number))); err != nil {
				return err
			}
		}
		return nil
	}, s.addPipelines, versionFlag(&base), completing(everyArgument, p.pipelineNames(&s)), p.jsonFlag("print one JSON object per pipeline, a line each"))
}

func (p *program) pipelineDiffCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:     "diff NAME[@VERSION] [NAME[@VERSION]]",
		Short:   "Show what differs between two versions, by default from the one before to the current one",
		Example: "  mcsh pipeline diff open_by_team\n  mcsh pipeline diff open_by_team@1\n  mcsh pipeline diff open_by_team@1 open_by_team@2",
		Args:    withFirst(cobra.RangeArgs(1, 2)),
	}
	return command(cmd, func(ctx context.Context, args []string) error {
		store, err := p.pipelineStore(ctx, s)
		if err != nil {
			return err
		}
		if len(args) == 1 {
			if args, err = versionsToCompare(ctx, store, args[0]); err != nil {
				return err
			}
		}
		was, err := store.Get(ctx, args[0], pipelines.Everybody)
		if err != nil {
			return pipelineFailure(err)
		}
		is, err := store.Get(ctx, args[1], pipelines.Everybody)
		if err != nil {
			return pipelineFailure(err)
		}
		nameOf := func(v pipelines.Saved) string { return atVersion(v.Name, v.Version.Number) }
		text := diff.Diff(nameOf(was), endedLine(was.Version.Text), nameOf(is), endedLine(is.Version.Text))
		return p.print(diffJSON{nameOf(was), nameOf(is), string(text)}, cmp.Or(string(text), "they are the same\n"))
	}, s.addPipelines, completing(everyArgument, p.pipelineNames(&s)), p.jsonFlag("print one JSON object"))
}

// versionsToCompare returns a version and the current one; of a name alone, the version before that is kept.
func versionsToCompare(ctx context.Context, store *pipelines.Store, text string) ([]string, error) {
	name, numbered, _ := strings.Cut(text, "@")
	if numbered != "" {
		return []string{text, name}, nil
	}
	if _, err := store.Get(ctx, name, pipelines.Everybody); err != nil {
		return nil, pipelineFailure(err)
	}
	versions, err := store.Versions(ctx, name)
	if len(versions) < 2 {
		return nil, errors.Join(err, usageError("name two versions: mcsh pipeline diff "+name+"@1 "+name+"@2", "no version of %s before the current one is kept", name))
	}
	return []string{atVersion(name, versions[1].Number), name}, nil
}

type diffJSON struct {
	From string `json:"from"`
	To   string `json:"to"`
	Diff string `json:"diff"`
}

func endedLine(text string) []byte { return []byte(strings.TrimRight(text, "\n") + "\n") }

// pipelineNames completes the names of saved pipelines. It starts no server.
func (p *program) pipelineNames(s *settings) completer {
	return func(ctx context.Context) []string {
		store, err := p.pipelineStore(ctx, *s)
		if err != nil {
			return nil
		}
		list, _ := store.List(ctx) // what can be read
		return convert(list, func(one pipelines.Saved) string {
			if one.Definition == nil {
				return one.Name
			}
			return one.Name + "\t" + firstSentence(one.Definition.Description)
		})
	}
}

// withPipelines is a command's function that calls f with the saved pipelines of the settings and what they need, and closes that.
func (p *program) withPipelines(s *settings, f func(context.Context, *dependencies, []string) error) func(context.Context, []string) error {
	call := p.withTools(s, f)
	return func(ctx context.Context, args []string) error {
		if _, err := p.pipelineStore(ctx, *s); err != nil {
			return err
		}
		return call(ctx, args)
	}
}

// pipelineStore returns the saved pipelines without the tools that they call.
func (p *program) pipelineStore(ctx context.Context, s settings) (*pipelines.Store, error) {
	shared, err := s.store.open(ctx, p)
	if err != nil {
		return nil, err
	}
	dirs := p.pipelineDirs(s)
	if len(dirs) == 0 && shared == nil {
		return nil, configError("name one with --pipelines", errNoPipelines)
	}
	return pipelines.NewSharedStore(shared, dirs...), nil
}

var errNoPipelines = errors.New("there is no directory for saved pipelines: neither $HOME nor $XDG_CONFIG_HOME is set")

// findPipeline returns a saved pipeline by NAME or NAME@3.
func findPipeline(ctx context.Context, set *pipelines.Set, name string) (*pipelines.Tool, error) {
	if _, err := set.Store().Get(ctx, name, pipelines.Everybody); err != nil {
		return nil, pipelineFailure(err)
	}
	return set.Find(ctx, name, pipelines.Operator())
}

// addPipelineUse adds the flags of commands that check or run saved pipelines.
func (s *settings) addPipelineUse(p *program) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		for _, add := range []func(*cobra.Command){s.addSources, s.addState, s.addWorkspace, s.limits.add, s.addMemory, p.sandboxFlags(&s.sandbox)} {
			add(cmd)
		}
	}
}
