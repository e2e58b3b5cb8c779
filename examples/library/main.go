// Command library uses the engine of mcsh from a program of its own: tools that are Go functions, a pipeline that calls
// them, and no MCP server, sandbox or configuration anywhere.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// pipeline asks for the weather of every city, six at a time.
const pipeline = `[
	{"type": "tool", "server": "atlas", "name": "cities", "args": {"country": "Portugal"}},
	{"type": "tool", "server": "atlas", "name": "weather", "for_each": true, "concurrency": 6}
]`

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run checks the whole pipeline before it calls anything, then runs it.
func run(ctx context.Context, out io.Writer) error {
	compiled, mistakes := stages.Compile(ctx, []byte(pipeline), stages.Deps{
		Tools:   atlas{},
		Schemas: schemas.Stages(),
	})
	if mistakes != nil {
		var errs []error
		for _, m := range mistakes {
			errs = append(errs, m)
		}
		return errors.Join(errs...)
	}
	report, err := compiled.Run(ctx, nil, out, stages.RunOptions{})
	if err != nil {
		return err
	}
	for _, s := range report.Stages {
		fmt.Fprintf(out, "stage %s (%s), calls: %d\n", s.Place, s.Label, s.Calls)
	}
	return nil
}

// atlas is a source of tools. It implements stages.Tools; an MCP client, a database or a REST API could too.
type atlas struct{}

// A function is what a tool does: its arguments are one JSON object, its result is JSON.
type function struct {
	argument string // the one that it takes
	call     func(argument string) (any, error)
}

// functions is the table of tools.
var functions = map[string]function{
	"cities": {"country", func(country string) (any, error) {
		if country != "Portugal" {
			return nil, fmt.Errorf("no map of %q", country)
		}
		return []map[string]string{{"city": "Lisboa"}, {"city": "Porto"}, {"city": "Faro"}}, nil
	}},
	"weather": {"city", func(city string) (any, error) {
		return map[string]any{"city": city, "celsius": 10 + len(city)}, nil
	}},
}

// Tool says what the engine must know of a tool before it calls it.
func (atlas) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	f, ok := functions[name]
	if server != "atlas" || !ok {
		names := strings.Join(slices.Sorted(maps.Keys(functions)), ", ")
		return nil, stages.Errorf(stages.UnknownTool, "the tools of atlas are "+names, "there is no tool %s/%s", server, name)
	}
	return &stages.Tool{
		Server: server, Name: name,
		Annotated: true, ReadOnly: true,
		Signature: fmt.Sprintf("%s(%s: string)", name, f.argument),
		Input:     stages.Input{Properties: []string{f.argument}, Required: []string{f.argument}, Closed: true},
	}, nil
}

// CallTool calls a tool. All of them answer at once, so that none needs its timeout.
func (a atlas) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	if _, err := a.Tool(ctx, c.Server, c.Name); err != nil {
		return stages.Result{}, err
	}
	f := functions[c.Name]
	if !c.MaySend() {
		return stages.Result{}, ctx.Err()
	}
	var given map[string]string
	if err := json.Unmarshal(c.Args, &given); err != nil {
		return stages.Result{}, stages.Errorf(stages.InvalidArguments, "", "reading the arguments: %w", err)
	}
	value, err := f.call(given[f.argument])
	if err != nil {
		return stages.Result{}, stages.Errorf(stages.ToolError, "", "%w", err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return stages.Result{}, err
	}
	return stages.Result{Data: append(data, '\n')}, nil
}
