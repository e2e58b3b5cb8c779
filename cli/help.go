package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcsh-dev/mcsh/docs"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/clients"
)

// The width of help texts and of the text of manual pages, in columns.
const (
	helpWidth = 100
	manWidth  = 72
)

// A flagGroup is a group of flags in the help.
type flagGroup struct {
	title  string
	flags  []string // names, or prefixes that end in a dash
	shared bool     // many commands have them, and few users of these need them: mcsh help flags describes them
}

// flagGroups lists the groups. Flags outside of them are those of the command itself, and come first.
var flagGroups = []flagGroup{
	{"HTTP", []string{"allow-host", "trusted-proxy", "public-url", "drain", "grace"}, false},
	{"Questions of servers", []string{"ask-timeout", "sampling"}, false},
	{"Callers", []string{"tokens", "control-", "oidc-"}, false},
	{"Servers and files", []string{"config", "no-builtin", "read-only", "pin", "root", "workspace", "pipelines", "state", "store", "store-"}, false},
	{"Gateways", []string{"gateway", "gateway-"}, false},
	{"Sandbox", []string{"sandbox", "sandbox-"}, true},
	{"Sign-in", []string{"token-key-file", "client-metadata-url"}, true},
	{"ToolHive", []string{"toolhive", "toolhive-"}, true},
	{"Limits", []string{"limit", "memory", "keep-"}, true},
	{"Logs and metrics", []string{"log-", "no-metrics", "metrics-listen", "otel", "require-server"}, false},
}

func (g flagGroup) has(name string) bool {
	return slices.ContainsFunc(g.flags, func(pattern string) bool {
		return name == pattern || strings.HasSuffix(pattern, "-") && strings.HasPrefix(name, pattern)
	})
}

// A helpSection holds the flags of a command that belong to one group.
type helpSection struct {
	flagGroup
	set *pflag.FlagSet
}

// flagSections returns the flags of a command by group.
func flagSections(cmd *cobra.Command) []helpSection {
	groups := append([]flagGroup{{title: "Flags"}}, flagGroups...)
	sections := make([]helpSection, len(groups))
	for i, g := range groups {
		sections[i] = helpSection{g, pflag.NewFlagSet(g.title, pflag.ContinueOnError)}
	}
	cmd.InitDefaultHelpFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		at := slices.IndexFunc(flagGroups, func(g flagGroup) bool { return g.has(f.Name) })
		sections[at+1].set.AddFlag(f)
	})
	return slices.DeleteFunc(sections, func(s helpSection) bool { return !s.set.HasAvailableFlags() })
}

func helpText(cmd *cobra.Command) string {
	return longText(cmd, helpWidth) + "\n\n" + usageText(cmd, helpWidth, cmd.Name() == "serve" || cmd.Name() == "flags")
}

func longText(cmd *cobra.Command, width int) string {
	return wrapped(cmp.Or(cmd.Long, cmd.Short+"."), width)
}

// usageText describes how a command is used. Without all it refers to mcsh help flags for shared ones, and to the list of a group.
func usageText(cmd *cobra.Command, width int, all bool) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() && cmd.Flags().HasAvailableFlags() && (all || !cmd.HasAvailableSubCommands()) {
		b.WriteString("  " + cmd.UseLine() + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.CommandPath() + " COMMAND\n\nCommands:\n")
		for _, below := range cmd.Commands() {
			if below.IsAvailableCommand() || below.Name() == "help" {
				fmt.Fprintf(&b, "  %-11s %s\n", below.Name(), hanging(below.Short, 14, width))
			}
		}
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	var shared []string
	for _, s := range flagSections(cmd) {
		switch {
		case cmd.HasAvailableSubCommands() && !all:
		case s.shared && !all:
			shared = append(shared, s.title)
		default:
			b.WriteString("\n" + s.title + ":\n" + flagText(s.set, width))
		}
	}
	if shared != nil {
		b.WriteString("\n" + wrapped("More flags ("+strings.Join(shared, ", ")+"): mcsh help flags describes them.", width) + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help says more of a command.\n", cmd.CommandPath())
	}
	return b.String()
}

// flagsCommand describes the flags that many commands share, with those of mcsh serve.
func (p *program) flagsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "flags", Hidden: true,
		Short: "Flags that many commands share",
		Long: `Flags that many commands share. They say which servers there are, where commands run, and what a run may use. Each command has
those that mean something to it: mcsh COMMAND --help names their groups.`,
	}
	p.serveCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if slices.ContainsFunc(flagGroups, func(g flagGroup) bool { return g.shared && g.has(f.Name) }) {
			cmd.Flags().AddFlag(f)
		}
	})
	return cmd
}

// exclusiveFlags refuses flags that exclude each other, before cobra does, which keeps them in annotations.
func exclusiveFlags(cmd *cobra.Command, _ []string) error {
	given := map[string][]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, group := range f.Annotations["cobra_annotation_mutually_exclusive"] {
			given[group] = append(given[group], "--"+f.Name)
		}
	})
	for _, group := range slices.Sorted(maps.Keys(given)) {
		if flags := given[group]; len(flags) > 1 {
			return usageError("give one of them", "%s exclude each other", strings.Join(flags, " and "))
		}
	}
	return nil
}

// flagText describes each flag beside its name, or below a long name.
func flagText(flags *pflag.FlagSet, width int) string {
	const indent = 28
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		name := "  " + flagName(f)
		if f.Shorthand == "" {
			name = "    " + name
		}
		if len(name) > indent-2 {
			b.WriteString(name + "\n")
			name = ""
		}
		fmt.Fprintf(&b, "%-*s%s\n", indent, name, hanging(flagUsage(f), indent, width))
	})
	return b.String()
}

// flagName returns the names of the flag and of its value.
func flagName(f *pflag.Flag) string {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	takes, _ := pflag.UnquoteUsage(f)
	takes = strings.TrimSuffix(strings.TrimSuffix(takes, "Array"), "s") // the usage says if it is repeatable
	return strings.TrimSpace(name + " " + takes)
}

// flagUsage returns the usage of a flag, with its default unless the usage contains it.
func flagUsage(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	if slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) || strings.Contains(usage, "default") {
		return usage
	}
	return usage + " (default " + f.DefValue + ")"
}

// hanging wraps a text whose lines begin at a column.
func hanging(text string, column, width int) string {
	lines := strings.Split(wrapped(text, width-column), "\n")
	return strings.Join(lines, "\n"+strings.Repeat(" ", column))
}

// wrapped wraps the paragraphs of a text. Lines that begin with a space stay unchanged.
func wrapped(text string, width int) string {
	var lines []string
	open := false // the last line belongs to a paragraph
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' {
			lines, open = append(lines, line), false
			continue
		}
		for word := range strings.FieldsSeq(line) {
			last := len(lines) - 1
			if open && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
				lines[last] += " " + word
				continue
			}
			lines, open = append(lines, word), true
		}
	}
	return strings.Join(lines, "\n")
}

// knownCommand refuses an unknown subcommand and suggests the nearest one.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	path := cmd.CommandPath()
	hint := didYouMean("did you mean "+path+" %s?", args[0], convert(cmd.Commands(), (*cobra.Command).Name), path+" --help shows what there is")
	return usageError(hint, "unknown command %q for %q", args[0], path)
}

// withFirst refuses a missing first argument by its name in the usage. Otherwise check decides.
func withFirst(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return check(cmd, args)
		}
		_, takes, _ := strings.Cut(cmd.Use, " ")
		name, _, _ := strings.Cut(strings.TrimSuffix(takes, "..."), " ")
		return usageError(fmt.Sprintf("write %s %s", cmd.CommandPath(), takes), "%s is missing", name)
	}
}

// flagError adds a hint to the error of an invalid flag.
func flagError(cmd *cobra.Command, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok && wrong.GetFlag().Value.Type() == "duration" {
		if _, none := strconv.ParseFloat(wrong.GetValue(), 64); none == nil {
			name := "--" + wrong.GetFlag().Name
			return usageError(fmt.Sprintf("write %s %ss for seconds", name, wrong.GetValue()), "%s %s: a unit is needed, such as 10s", name, wrong.GetValue())
		}
	}
	hint := cmd.CommandPath() + " --help shows the flags"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		hint = didYouMean("did you mean --%s?", unknown.GetSpecifiedName(), known, hint)
	}
	return usageError(hint, "%w", err)
}

func (p *program) manCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a manual page for each command into a directory",
		Example: "  mcsh man ~/.local/share/man/man1",
		Args:    withFirst(cobra.ExactArgs(1)),
	}
	return command(cmd, func(_ context.Context, args []string) error {
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return usageError("name a directory that can be written", "%w", err)
		}
		for name, page := range manual(cmd.Root()) {
			if err := os.WriteFile(filepath.Join(args[0], name), []byte(page), 0o644); err != nil {
				return usageError("name a directory that can be written", "%w", err)
			}
		}
		return nil
	})
}

// manual returns a page of section 1 for each command, by file name.
func manual(root *cobra.Command) map[string]string {
	pages := map[string]string{manName(root) + ".1": manPage(root)}
	for _, below := range root.Commands() {
		if below.IsAvailableCommand() {
			maps.Copy(pages, manual(below))
		}
	}
	return pages
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the help of a command as a page. Titles become sections, and the other lines stay lines.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := roff(manName(cmd))
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"mcsh\" \"mcsh\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(name), name, roff(cmd.Short))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n.nf\n%s\n", roff(longText(cmd, manWidth)))
	for line := range strings.Lines(usageText(cmd, manWidth, true)) {
		if title, ok := strings.CutSuffix(line, ":\n"); ok && line[0] != ' ' {
			line = ".SH " + strings.ToUpper(title) + "\n.nf\n"
		} else {
			line = roff(line)
		}
		b.WriteString(line)
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s(1)\n", roff(manName(cmd.Parent())))
	}
	return b.String()
}

// roff escapes a text, so that it contains no requests. Lines that begin with a space stay lines: roff breaks before them.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// A topic is the explanation of an error code or an exit status.
type topic struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Text    string `json:"text"` // Markdown, the summary included
}

// topics splits the document of errors: each section of level three is a topic.
func topics(document []byte) []topic {
	var list []topic
	for _, section := range strings.Split("\n"+string(document), "\n### ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ") // the next section of level two
		text = strings.TrimSpace(text)
		summary, _, _ := strings.Cut(text, "\n\n")
		summary = strings.Join(strings.Fields(summary), " ")
		if i := strings.Index(summary, ". "); i > 0 {
			summary = summary[:i+1]
		}
		list = append(list, topic{strings.Trim(title, "` "), summary, text})
	}
	return list
}

func (p *program) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain an error code or an exit status and its remedy",
		Long: `Explain an error code or an exit status: its meaning, its usual causes and its remedy. Without an argument it lists
them.`,
		Example: "  mcsh explain INVALID_ARGUMENTS\n  mcsh explain 4",
		Args:    cobra.MaximumNArgs(1),
	}
	return command(cmd, func(_ context.Context, args []string) error {
		list := topics(docs.Errors)
		if len(args) == 0 {
			for _, t := range list {
				p.print(t, fmt.Sprintf("%-20s %s\n", t.Name, t.Summary))
			}
			return nil
		}
		name := strings.ToUpper(strings.ReplaceAll(args[0], "-", "_"))
		i := slices.IndexFunc(list, func(t topic) bool { return t.Name == name })
		if i < 0 {
			names := convert(list, func(t topic) string { return t.Name })
			return usageError(didYouMean("did you mean %s?", name, names, "mcsh explain lists them"), "%q is neither an error code nor an exit status", args[0])
		}
		return p.print(list[i], list[i].Name+"\n\n"+forTerminal(list[i].Text)+"\n")
	}, completing(firstArgument, topicNames), p.jsonFlag("print one JSON object per code, a line each"))
}

// forTerminal is Markdown without the marks that only matter to a browser: examples are indented.
func forTerminal(text string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside:
			b.WriteString("    " + line)
		default:
			b.WriteString(strings.ReplaceAll(line, "`", ""))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// completeWait bounds a completion: a user is waiting after Tab.
const completeWait = time.Second

// A completer returns the words for an argument, each alone or followed by a tab and a description.
type completer func(ctx context.Context) []string

// Arguments that a completer completes.
const (
	firstArgument = iota
	firstOrFile   // files too
	everyArgument
)

// completing makes f complete arguments of a command.
func completing(which int, f completer) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 && which != everyArgument {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			words, directive := f.complete(cmd, args, prefix)
			if which == firstOrFile {
				directive = cobra.ShellCompDirectiveDefault
			}
			return words, directive
		}
	}
}

// complete returns the words with a prefix that are not in args. It is a [cobra.CompletionFunc].
func (f completer) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWait)
	defer cancel()
	words := slices.DeleteFunc(f(ctx), func(word string) bool {
		name, _, _ := strings.Cut(word, "\t")
		return !strings.HasPrefix(name, prefix) || slices.Contains(args, name) || texts.Plain(name, false) != name // users cannot type it
	})
	for i, word := range words {
		words[i] = texts.Plain(word, false)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag sets the values that complete a flag.
func completeFlag(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// convert returns the results of f for all elements of a list.
func convert[T, U any](list []T, f func(T) U) []U {
	all := make([]U, len(list)) // an empty list is one in JSON too
	for i, one := range list {
		all[i] = f(one)
	}
	return all
}

// clientNames returns the known clients.
func clientNames(context.Context) []string {
	return convert(clients.All(), func(c clients.Client) string { return c.Name + "\t" + c.Title })
}

// topicNames returns the codes of mcsh explain.
func topicNames(context.Context) []string {
	return convert(topics(docs.Errors), func(t topic) string { return t.Name + "\t" + t.Summary })
}

// serverNames completes servers of the settings.
func (p *program) serverNames(s *settings) completer {
	return func(ctx context.Context) []string {
		return convert(p.knownListings(ctx, *s), func(l upstream.Listing) string { return l.Server })
	}
}

// toolNames completes tools of the servers, as SERVER/TOOL.
func (p *program) toolNames(s *settings) completer {
	return func(ctx context.Context) []string {
		var words []string
		for _, l := range p.knownListings(ctx, *s) {
			for _, t := range l.Tools {
				words = append(words, l.Server+"/"+t.Name+"\t"+firstSentence(t.Description))
			}
		}
		return append(words, convert(p.pipelineNames(s)(ctx), func(word string) string { return pipelines.Server + "/" + word })...)
	}
}

// listedNames completes servers of the settings, with that of the saved pipelines.
func (p *program) listedNames(s *settings) completer {
	return func(ctx context.Context) []string {
		names := p.serverNames(s)(ctx)
		if len(p.pipelineNames(s)(ctx)) > 0 {
			names = append(names, pipelines.Server)
		}
		return names
	}
}

// knownListings returns the tools that are known without starting or calling a server: saved lists, and without a
// configuration the built-in servers.
func (p *program) knownListings(ctx context.Context, s settings) []upstream.Listing {
	s.keeps, s.toolhive.mode = true, toolhiveOff
	s.configs = slices.Compact(slices.Sorted(slices.Values(s.configs))) // cobra parses the flags twice
	pool, err := p.openUpstream(ctx, s)
	if err != nil {
		return nil // a completion cannot report an error; the command will
	}
	defer pool.Close()
	if len(p.configFiles(s)) == 0 {
		return pool.Catalog(ctx)
	}
	return pool.Saved(ctx)
}
