package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/upstream"
)

// An optionFlag is an option of a built-in server as a flag of "mcsh server NAME".
type optionFlag struct {
	flag, option string
	define       func(f *pflag.FlagSet, name, usage string) func() any // defines the flag and returns its value
	usage        string
}

// builtinFlags is the table of flags by server. What is not in it can be set in a configuration.
var builtinFlags = map[string][]optionFlag{
	"demo": {
		{"latency", "latency", text, "every call takes at least this long, such as 20ms"},
		{"seed", "seed", number, "of the data and of the failures"},
	},
	"fetch": {
		{"allow-host", "allow_hosts", texts, "reach hosts that match this glob whatever their addresses (repeatable)"},
		{"allow-private", "allow_private", truth, "reach every address, private and loopback ones too"},
		{"max-bytes", "max_bytes", number, "the largest body (default 5 MiB)"},
		{"timeout", "timeout", text, "of a call, such as 10s (default 30s)"},
	},
	"filesystem": {
		{"root", "root", text, "the directory (default: the current one)"},
		{"max-bytes", "max_bytes", number, "the most text of one read (default 64 MiB)"},
	},
}

// The kinds of values that options have. An option that is not given is left out.
func text(f *pflag.FlagSet, name, usage string) func() any {
	v := f.String(name, "", usage)
	return func() any { return *v }
}

func texts(f *pflag.FlagSet, name, usage string) func() any {
	v := f.StringArray(name, nil, usage)
	return func() any { return *v }
}

func number(f *pflag.FlagSet, name, usage string) func() any {
	v := f.Int64(name, 0, usage)
	return func() any { return *v }
}

func truth(f *pflag.FlagSet, name, usage string) func() any {
	v := f.Bool(name, false, usage)
	return func() any { return *v }
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
func configBuiltins() map[string]upstream.Builtin {
	table := map[string]upstream.Builtin{}
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
