package sandboxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// tools are functions for pipelines that join the data of two of them.
type tools map[string]func(ctx context.Context, args string, out io.Writer) error

func (f tools) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	return &stages.Tool{Server: server, Name: name, Annotated: true, ReadOnly: true, Input: stages.Input{
		Check: func(context.Context, json.RawMessage, bool) ([]string, string) { return nil, "" },
	}}, nil
}

func (f tools) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	var out bytes.Buffer
	err := f[c.Name](ctx, string(c.Args), &out)
	return stages.Result{Data: out.Bytes()}, err
}

// testInputPipelines runs whole pipelines: joins of two tools, whichever is slower, and a large second input.
func testInputPipelines(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1})
	size := parttest.Times(50_000_000, 200_000_000)
	join := `{"type":"command","command":"join","args":["-","@b"],"inputs":{"b":[{"type":"tool","server":"x","name":"b"},{"type":"command","command":"sort"}]}}`
	for _, test := range []struct {
		name, pipeline, out string
	}{
		{"join", `[{"type":"tool","server":"x","name":"a"},{"type":"command","command":"sort"},` + join + `,{"type":"command","command":"tr","args":["a-z","A-Z"]}]`, "1 A EINS\n2 B ZWEI\n"},
		{
			"jq", `[{"type":"tool","server":"x","name":"a"},{"type":"command","command":"jq","args":["-R","--rawfile","b","@b","-c","[., ($b|length)]"],"for_each":true,
			"inputs":{"b":[{"type":"tool","server":"x","name":"b"}]}}]`, "[\"2 b\",14]\n[\"1 a\",14]\n",
		},
		{
			"large", fmt.Sprintf(`[{"type":"tool","server":"x","name":"a"},{"type":"command","command":"paste","args":["-d","","@b","-"],
			"inputs":{"b":[{"type":"command","command":"awk","args":["BEGIN{for(i=0;i<%d;i++) print \"1234567890123456789\"}"]}]}},{"type":"command","command":"wc","args":["-c"]}]`, size/20), fmt.Sprintln(size + 6),
		},
	} {
		for _, slow := range []string{"a", "b", ""} {
			if test.name == "large" && slow != "" {
				continue // one tool waits for nobody
			}
			t.Run(test.name+" with a slow "+slow, func(t *testing.T) {
				quick := make(chan struct{})
				tool := func(name, text string) func(context.Context, string, io.Writer) error {
					return func(ctx context.Context, _ string, out io.Writer) error {
						if name == slow {
							select {
							case <-quick: // the other one has answered
							case <-ctx.Done():
							}
						} else if slow != "" {
							defer close(quick)
						}
						_, err := io.WriteString(out, text)
						return err
					}
				}
				plan, errs := stages.Compile(t.Context(), []byte(test.pipeline), stages.Deps{
					Commands: p, Tools: tools{"a": tool("a", "2 b\n1 a\n"), "b": tool("b", "2 zwei\n1 eins\n")},
				})
				if errs != nil {
					t.Fatal(errs)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				var out bytes.Buffer
				if _, err := plan.Run(ctx, nil, &out, stages.RunOptions{}); err != nil || out.String() != test.out {
					t.Errorf("got %q, %v, want %q", out.String(), err, test.out)
				}
			})
		}
	}
}

// testLinesForReader has a source that goes on only when a line has come through programs that write in blocks: where
// a later stage may stop early, also behind a tool, each line must come out as soon as it is there.
func testLinesForReader(t *testing.T, open func() sandbox.Driver) {
	p := newPool(t, open, sandbox.Options{Warm: -1})
	for _, filter := range []string{`"grep","args":["1"]`, `"sed","args":["p"]`, `"jq","args":["-c","."]`} {
		t.Run(filter, func(t *testing.T) {
			f := tools{
				"first": func(ctx context.Context, args string, out io.Writer) error {
					if !strings.Contains(args, "1") {
						<-ctx.Done() // the second item comes when nobody wants it any more
						return ctx.Err()
					}
					_, err := io.WriteString(out, "1")
					return err
				},
				"second": func(_ context.Context, _ string, out io.Writer) error {
					_, err := io.WriteString(out, "2")
					return err
				},
			}
			plan, errs := stages.Compile(t.Context(), []byte(`[{"type":"command","command":"jq","args":["-n","range(1;10)"]},
				{"type":"tool","server":"x","name":"first","for_each":true,"concurrency":1,"collect":"lines"},
				{"type":"command","command":`+filter+`},
				{"type":"tool","server":"x","name":"second","for_each":true,"collect":"lines"},
				{"type":"command","command":"head","args":["-n","1"]}]`), stages.Deps{Commands: p, Tools: f})
			if errs != nil {
				t.Fatal(errs)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var out bytes.Buffer
			if _, err := plan.Run(ctx, nil, &out, stages.RunOptions{}); err != nil || out.String() != "\"2\"\n" { // text is a string
				t.Errorf("got %q, %v, want one line", out.String(), err)
			}
		})
	}
}
