package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// addOptions adds a flag for each option of a built-in server. The function that it returns gives the options that
// were set, as JSON.
func addOptions(f *pflag.FlagSet, options []strictjson.Field) func() json.RawMessage {
	values := map[string]any{}
	for _, o := range options {
		values[o.Name] = define(f, o)
	}
	return func() json.RawMessage {
		given := map[string]any{}
		for _, o := range options {
			if f.Changed(flagOf(o)) {
				given[o.Name] = values[o.Name]
			}
		}
		return optionsOf(given)
	}
}

// flagOf is the name of an option as a flag.
func flagOf(o strictjson.Field) string { return strings.ReplaceAll(o.Name, "_", "-") }

// define adds the flag of an option and returns the pointer to its value, which is encoded as the option takes it.
func define(f *pflag.FlagSet, o strictjson.Field) any {
	name := flagOf(o)
	switch {
	case o.Type == reflect.TypeFor[time.Duration](), o.Type.Kind() == reflect.String:
		return f.String(name, "", o.Usage)
	case o.Type.Kind() == reflect.Bool:
		return f.Bool(name, false, o.Usage)
	case reflect.Zero(o.Type).CanInt():
		return f.Int64(name, 0, o.Usage)
	case o.Type == reflect.TypeFor[[]string]():
		return f.StringArray(name, nil, o.Usage+" (repeatable)")
	}
	value := new(jsonValue)
	f.Var(value, name, o.Usage+" (JSON)")
	return value
}

// A jsonValue is the value of a flag whose option has a type of its own.
type jsonValue struct{ json.RawMessage }

func (v *jsonValue) String() string { return string(v.RawMessage) }
func (v *jsonValue) Type() string   { return "json" }

// Set implements [pflag.Value].
func (v *jsonValue) Set(text string) error {
	if !json.Valid([]byte(text)) {
		return errors.New("it is not valid JSON")
	}
	v.RawMessage = json.RawMessage(text)
	return nil
}

// dialBuiltin makes a server and the way to it.
func dialBuiltin(name string, options json.RawMessage) (func(context.Context) (mcp.Transport, error), error) {
	b, err := servers.Find(name)
	if err != nil {
		return nil, err
	}
	server, err := b.Open(options)
	if err != nil {
		return nil, err
	}
	return upstream.InProcess(server), nil
}

// configBuiltins is the table as configurations use it.
func configBuiltins() map[string]config.Builtin {
	table := map[string]config.Builtin{}
	for _, b := range servers.Builtins() {
		table[b.Name] = func(options json.RawMessage) (func(context.Context) (mcp.Transport, error), error) {
			return dialBuiltin(b.Name, options)
		}
	}
	return table
}

// A defaultServer is a built-in server that is there without a configuration.
type defaultServer struct {
	builtin string
	options json.RawMessage
	allow   []string // globs of its tools, all if empty
}

// defaultServers are the servers of a machine that nothing is configured on. They write nothing.
func defaultServers(s settings) []defaultServer {
	return []defaultServer{
		{"demo", nil, nil},
		{"fetch", nil, []string{"fetch"}},
		{"filesystem", optionsOf(map[string]any{"root": s.root}), []string{"read_*", "list_*", "directory_tree", "search_*"}},
	}
}

// optionsOf writes options as JSON.
func optionsOf(values map[string]any) json.RawMessage {
	data, err := json.Marshal(values)
	if err != nil { // the values are those of flags
		panic(fmt.Sprintf("mcsh: internal error: encoding options %q: %v", slices.Sorted(maps.Keys(values)), err))
	}
	return data
}
