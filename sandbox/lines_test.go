package sandbox_test

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestLineByLine: a command writes line by line where a reader behind it may stop early, but not where all that it writes is
// read before that can be known.
func TestLineByLine(t *testing.T) {
	var got []string
	d := &scripted{hello: wire.Hello{Profile: wire.Dynamic, Landlock: 7, Seccomp: true, NoNewPrivs: true}}
	for _, name := range []string{"grep", "head", "sort", "uniq"} {
		d.hello.Programs = append(d.hello.Programs, wire.Found{Name: name, Path: "/usr/bin/" + name})
	}
	d.run = func(_ context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
		p, _ := programs.Find(c.Commands[0].Name)
		if argv := c.Commands[0].Argv; len(argv) == 2 && argv[1] == "--version" {
			_, _ = io.WriteString(s, p.Mark+" 1.0\n")
			return wire.Outcome{Usage: []wire.Usage{{}}}
		}
		got = nil
		for _, command := range c.Commands {
			if slices.Contains(command.Argv, "--line-buffered") {
				got = append(got, command.Argv[len(command.Argv)-1])
			}
		}
		return wire.Outcome{Usage: make([]wire.Usage, len(c.Commands))}
	}
	p := newPool(t, d, sandbox.Options{Warm: -1})
	for _, test := range []struct{ chain, want string }{
		{"grep a", ""},
		{"grep a | head", "--regexp=a"},
		{"grep a | uniq | grep b | head", "--regexp=a --regexp=b"},
		{"grep a | sort | head", ""},
		{"grep a | sort | grep b | head", "--regexp=b"},
		{"grep a | head | sort", "--regexp=a"},
		{"grep a | head | sort | head", "--regexp=a"},
	} {
		var list []map[string]any
		for text := range strings.SplitSeq(test.chain, " | ") {
			words := strings.Fields(text)
			list = append(list, map[string]any{"type": "command", "command": words[0], "args": words[1:]})
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		plan, errs := stages.Compile(t.Context(), text, stages.Deps{Commands: p})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if _, err := plan.Run(t.Context(), strings.NewReader(""), io.Discard, stages.RunOptions{}); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Join(got, " "); lines != test.want {
			t.Errorf("%s: line by line are %q, want %q", test.chain, lines, test.want)
		}
	}
}
