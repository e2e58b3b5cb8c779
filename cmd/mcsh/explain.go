package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/docs"
	"github.com/mcsh-dev/mcsh/internal/nearest"
)

const explainLong = `Say what an error code or an exit status means, what usually causes it and what to do about it. Without an argument
it lists them.`

// A topic is an error code or an exit status with what there is to say of it.
type topic struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Text    string `json:"text"` // the summary too, as Markdown
}

// topics takes the document of errors apart: a section of the third level each.
func topics(document []byte) []topic {
	var list []topic
	for _, section := range strings.Split("\n"+string(document), "\n### ")[1:] {
		title, text, _ := strings.Cut(section, "\n")
		text, _, _ = strings.Cut(text, "\n## ") // of the document, not of this section
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
		Use:     "explain [CODE]",
		Short:   "Say what an error code or an exit status means and what to do",
		Long:    explainLong,
		Example: "  mcsh explain INVALID_ARGUMENTS\n  mcsh explain 4",
		Args:    cobra.MaximumNArgs(1),
		RunE: work(func(_ context.Context, args []string) error {
			if len(args) == 0 {
				return p.listTopics()
			}
			return p.explainTopic(args[0])
		}),
	}
	complete(cmd, false, topicNames)
	p.addJSON(cmd, "print one JSON object per code, a line each")
	return cmd
}

func (p *program) listTopics() error {
	for _, t := range topics(docs.Errors) {
		var err error
		if p.json {
			err = writeJSON(p.stdout, t)
		} else {
			_, err = fmt.Fprintf(p.stdout, "%-20s %s\n", t.Name, t.Summary)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *program) explainTopic(name string) error {
	name = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	list := topics(docs.Errors)
	i := slices.IndexFunc(list, func(t topic) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range list {
			names = append(names, t.Name)
		}
		hint := "mcsh explain lists them"
		if near := nearest.Name(name, names); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		return usageError(hint, "%q is neither an error code nor an exit status", name)
	}
	if p.json {
		return writeJSON(p.stdout, list[i])
	}
	_, err := io.WriteString(p.stdout, list[i].Name+"\n\n"+forTerminal(list[i].Text)+"\n")
	return err
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
