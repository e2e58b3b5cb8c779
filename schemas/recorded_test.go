//go:build !race

package schemas_test

import (
	"context"
	"slices"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
)

// TestWithoutRecorded: of every tool of real servers each property can be taken out, and nothing else goes.
func TestWithoutRecorded(t *testing.T) {
	checked := 0
	for server, tools := range recordedTools(t) {
		for _, tool := range tools {
			if same, err := schemas.Without(steps(), tool.InputSchema, []string{"no such property"}); string(same) != string(tool.InputSchema) {
				t.Errorf("%s/%s: the schema has changed: %v", server, tool.Name, err)
			}
			in, err := compileInput(tool.InputSchema)
			if err != nil {
				continue
			}
			for _, name := range in.Properties {
				checked++
				pruned, _ := schemas.Without(steps(), tool.InputSchema, []string{name})
				out, err := compileInput(pruned)
				if err != nil {
					t.Errorf("%s/%s without %s does not compile: %v", server, tool.Name, name, err)
					continue
				}
				want := slices.DeleteFunc(slices.Clone(in.Properties), func(p string) bool { return p == name })
				required := slices.DeleteFunc(slices.Clone(in.Required), func(p string) bool { return p == name })
				if !slices.Equal(out.Properties, want) || !slices.Equal(out.Required, required) || out.Closed != in.Closed {
					t.Errorf("%s/%s without %s: %v, required %v; want %v, required %v", server, tool.Name, name, out.Properties, out.Required, want, required)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d properties of real tools were looked at", checked)
	}
}

// TestExample: the example of every recorded tool whose schema compiles satisfies that schema.
func TestExample(t *testing.T) {
	tools, satisfied := 0, 0
	for server, recorded := range recordedTools(t) {
		for _, tool := range recorded {
			in, err := compileInput(tool.InputSchema)
			if err != nil {
				t.Fatalf("%s %s: %v", server, tool.Name, err)
			}
			tools++
			args, ok := schemas.Example(context.Background(), tool.InputSchema, in)
			if ok {
				satisfied++
			} else {
				t.Errorf("%s %s: %s: %v", server, tool.Name, args, check(in, args, false))
			}
		}
	}
	t.Logf("%d of %d", satisfied, tools)
	if tools < 250 {
		t.Errorf("only %d tools have a schema that compiles", tools)
	}
}

func TestCompileInputRecorded(t *testing.T) {
	compiled, samples := 0, 0
	for server, tools := range recordedTools(t) {
		for _, tool := range tools {
			in, err := compileInput(tool.InputSchema)
			if err != nil {
				t.Errorf("%s/%s: %v", server, tool.Name, err)
				continue
			}
			compiled++
			for _, args := range tool.Accepts {
				samples++
				for _, partial := range []bool{false, true} {
					if said := check(in, args, partial); len(said) > 0 {
						t.Errorf("%s/%s took %s, but Check says %q", server, tool.Name, args, said)
					}
				}
			}
			t.Log(signature(tool.Name, tool.InputSchema))
		}
	}
	if compiled < 280 || samples < 50 {
		t.Errorf("checked %d tools and %d samples, want at least 280 and 50", compiled, samples)
	}
}
