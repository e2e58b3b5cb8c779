package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// configVariable names configuration files where there is no --config, separated as in PATH.
const configVariable = "MCSH_CONFIG"

// A source is one row of the table of where servers come from.
type source struct {
	// open returns what the settings ask for, or nothing.
	open func(p *program, s settings) ([]upstream.Source, error)

	beside bool // gives servers beside those of any other row
	alone  bool // for when no other row gives anything, those beside left aside
}

// sources is the table. All rows are used together; none knows of the others. Of servers that nobody has configured
// and that have the same name, those of the first row count.
var sources = []source{
	{open: configSources},
	{open: toolhiveSources, beside: true},
	{open: defaultSources, alone: true},
}

// openSources asks the rows of the table.
func (p *program) openSources(s settings) ([]upstream.Source, error) {
	var list []upstream.Source
	configured := false
	for _, row := range sources {
		if row.alone && configured {
			if err := s.unused(); err != nil {
				return nil, err
			}
			continue
		}
		more, err := row.open(p, s)
		if err != nil {
			return nil, err
		}
		configured = configured || !row.beside && len(more) > 0
		list = append(list, more...)
	}
	return list, nil
}

// addSources adds the flags that say where servers come from.
func (s *settings) addSources(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.configs, "config", nil, "file with MCP servers, as clients have them (repeatable; default: $"+configVariable+", else the user's)")
	f.BoolVar(&s.noBuiltin, "no-builtin", false, "without a configuration: no built-in servers either")
	f.StringVar(&s.root, "root", "", "without a configuration: the directory of the filesystem server (default: the current one)")
	s.toolhive.add(cmd)
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

// configFiles are the configuration files to read: those named, else that of the user if there is one.
func (p *program) configFiles(s settings) []string {
	if len(s.configs) > 0 {
		return s.configs
	}
	if named := slices.DeleteFunc(filepath.SplitList(p.env[configVariable]), func(path string) bool { return path == "" }); len(named) > 0 {
		return named
	}
	if path := p.userFile(); path != "" && !s.noBuiltin && s.root == "" {
		if _, err := os.Stat(path); err == nil {
			return []string{path}
		}
	}
	return nil
}

// configSources reads the configuration files.
func configSources(p *program, s settings) ([]upstream.Source, error) {
	var list []upstream.Source
	for _, path := range p.configFiles(s) {
		list = append(list, &config.File{
			Path: path, Lookup: p.lookup, Builtins: configBuiltins(), Proxy: http.ProxyFromEnvironment,
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
		list = append(list, upstream.Server{Name: d.builtin, Dial: dial, Allow: d.allow, Found: true})
	}
	return []upstream.Source{list}, nil
}
