package stages_test

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/mcsh-dev/mcsh/stages"
)

// instant is a source of one tool that answers at once, with its arguments.
type instant struct{}

func (instant) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	return &stages.Tool{Server: server, Name: name, Annotated: true, ReadOnly: name == "get", Input: stages.Input{Properties: []string{"id"}, Required: []string{"id"}}}, nil
}

func (instant) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	if !c.MaySend() {
		return stages.Result{}, ctx.Err()
	}
	return stages.Result{Data: append(bytes.Clone(c.Args), '\n')}, nil
}

// BenchmarkForEach measures the engine's cost per item, with a tool that answers at once.
func BenchmarkForEach(b *testing.B) {
	const items = 1000
	input := []byte(lines(items))
	for _, row := range []struct{ name, fields string }{
		{"plain", ``},
		{"once", `"distinct":false,`},
		{"retries", `"retries":3,"distinct":false,`},
		{"item", `"with_item":true,"distinct":false,`},
		{"three", `"distinct":false,`},
	} {
		b.Run(row.name, func(b *testing.B) {
			const get = `{"type":"tool","server":"demo","name":"get"}`
			each := `{"type":"tool","server":"demo","name":"get","for_each":true,`
			if row.name == "three" {
				each = `{"type":"for_each","stages":[` + get + `,` + get + `,` + get + `],`
			}
			p, errs := stages.CompileFed(b.Context(), []byte(`[`+each+row.fields+`"concurrency":8}]`), stages.Deps{Tools: instant{}})
			if errs != nil {
				b.Fatal(errs)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Run(b.Context(), bytes.NewReader(input), io.Discard, stages.RunOptions{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*items), "ns/item")
		})
	}
}
