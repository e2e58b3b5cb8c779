package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/upstream"
)

// configVariable names configuration files where there is no --config, separated as in PATH.
const configVariable = "MCSH_CONFIG"

// A source is one row of the table of where servers come from.
type source struct {
	// open returns what the settings ask for, or nothing.
	open func(p *program, s settings) ([]upstream.Source, error)

	alone bool // for when no other row gives anything
}

// sources is the table. All rows are used together; none knows of the others.
var sources = []source{
	{configSources, false},
	{defaultSources, true},
}

// openSources asks the rows of the table.
func (p *program) openSources(s settings) ([]upstream.Source, error) {
	var list []upstream.Source
	for _, alone := range []bool{false, true} {
		if alone && len(list) > 0 {
			return list, s.unused()
		}
		for _, row := range sources {
			if row.alone != alone {
				continue
			}
			more, err := row.open(p, s)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	return list, nil
}

// addSources adds the flags that say where servers come from.
func (s *settings) addSources(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.configs, "config", nil, "file with MCP servers, as clients have them (repeatable; $"+configVariable+")")
	f.BoolVar(&s.noBuiltin, "no-builtin", false, "without a configuration: no built-in servers either")
	f.StringVar(&s.root, "root", "", "without a configuration: the directory of the filesystem server (default: the current one)")
	f.BoolVar(&s.readOnly, "read-only", false, "call only tools that are annotated or declared read-only")
}

// unused refuses the settings of the built-in servers where those are not used.
func (s settings) unused() error {
	if s.root == "" {
		return nil
	}
	return usageError(`write {"builtin": "filesystem", "root": "DIR"} into the configuration`,
		"--root belongs to the built-in servers, which a configuration replaces")
}

// configFiles are the configuration files to read.
func (p *program) configFiles(s settings) []string {
	if len(s.configs) > 0 {
		return s.configs
	}
	return slices.DeleteFunc(filepath.SplitList(p.env[configVariable]), func(path string) bool { return path == "" })
}

// configSources reads the configuration files.
func configSources(p *program, s settings) ([]upstream.Source, error) {
	var list []upstream.Source
	for _, path := range p.configFiles(s) {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("reading the configuration: there is no file %s", path)
		}
		if err != nil {
			return nil, configError("give the path of a file with MCP servers, or leave --config out to use the built-in ones", err)
		}
		list = append(list, upstream.Config{
			Path: path, Data: data, Lookup: p.lookup, Builtins: configBuiltins(), Proxy: http.ProxyFromEnvironment,
		})
	}
	return list, nil
}

// defaultSources are the servers of a machine that nothing is configured on.
func defaultSources(p *program, s settings) ([]upstream.Source, error) {
	if s.noBuiltin {
		return nil, nil
	}
	var list upstream.Static
	for _, d := range defaultServers(s) {
		dial, err := dialBuiltin(d.builtin, d.options)
		if err != nil {
			return nil, configError("mend the flag that says so, or name the servers you want in a configuration", err)
		}
		list = append(list, upstream.Server{Name: d.builtin, Dial: dial, Allow: d.allow})
	}
	return []upstream.Source{list}, nil
}
