package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// configVariable names configuration files where there is no --config, separated as in PATH.
const configVariable = "MCSH_CONFIG"

// settings are what a command line says about the parts that it needs.
type settings struct {
	configs   []string
	noBuiltin bool
	root      string
	readOnly  bool
	backend   string

	limits stages.Limits // whoever types the command line is the operator
}

// A source is one row of the table of where servers come from.
type source struct {
	name string
	open func(p *program, s settings) ([]upstream.Source, error)
}

// sources is the table. All rows are used together; a row that the settings do not ask for gives nothing.
var sources = []source{
	{"config", configSources},
	{"builtin", defaultSources},
}

// A backend is one row of the table of where commands run.
type backend struct {
	name    string
	summary string

	// open starts the backend. The error says why no command runs there.
	open func(ctx context.Context, p *program, warm int) (*sandbox.Pool, error)
}

// backends is the table. The first row is the default.
var backends = []backend{
	{"auto", "the first backend whose audit passes, here: local", openLocal},
	{"local", "worker processes on this machine, locked in by the kernel", openLocal},
	{"off", "no commands at all", openNone},
}

// laterBackends are names that people may know already, with what is said to them.
var laterBackends = map[string]string{
	"docker": "the docker backend is not part of this version; use --sandbox local, which needs no container engine",
}

// addSources adds the flags that say where servers come from.
func (s *settings) addSources(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.configs, "config", nil, "file with MCP servers, as clients have them (repeatable; $"+configVariable+")")
	f.BoolVar(&s.noBuiltin, "no-builtin", false, "without a configuration: no built-in servers either")
	f.StringVar(&s.root, "root", "", "without a configuration: the directory of the filesystem server (default: the current one)")
	f.BoolVar(&s.readOnly, "read-only", false, "call only tools that are annotated or declared read-only")
}

// addBackends adds the flag that says where commands run.
func (s *settings) addBackends(cmd *cobra.Command) {
	var names []string
	for _, b := range backends {
		names = append(names, b.name)
	}
	cmd.Flags().StringVar(&s.backend, "sandbox", names[0], "where commands run: "+strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("sandbox", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// findBackend returns the row that --sandbox names.
func findBackend(name string) (backend, error) {
	var names []string
	for _, b := range backends {
		if b.name == name {
			return b, nil
		}
		names = append(names, b.name)
	}
	if later, ok := laterBackends[name]; ok {
		return backend{}, usageError("leave --sandbox out to take the best backend there is", "--sandbox %s: %s", name, later)
	}
	return backend{}, usageError("use one of: "+strings.Join(names, ", "), "--sandbox %q: there is no such backend", name)
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
	files := p.configFiles(s)
	if len(files) > 0 && s.root != "" {
		return nil, usageError(`write {"builtin": "filesystem", "root": "DIR"} into the configuration`,
			"--root belongs to the built-in servers, which a configuration replaces")
	}
	var list []upstream.Source
	for _, path := range files {
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
	if s.noBuiltin || len(p.configFiles(s)) > 0 {
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

// openLocal starts the local backend.
func openLocal(ctx context.Context, _ *program, warm int) (*sandbox.Pool, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the sandbox worker: %w", err)
	}
	return sandbox.New(ctx, sandbox.Options{Driver: local.New(local.Options{Worker: workerArgv(self)}), Warm: warm})
}

var errSandboxOff = errors.New("the sandbox is off (--sandbox off)")

func openNone(context.Context, *program, int) (*sandbox.Pool, error) { return nil, errSandboxOff }

// Names of the sandbox worker: a binary of its own starts five times as fast.
const (
	workerBinary  = "mcsh-worker"
	workerCommand = "worker"
)

// workerArgv is the worker's binary beside ours, or ourselves.
func workerArgv(self string) []string {
	own := filepath.Join(filepath.Dir(self), workerBinary)
	if info, err := os.Stat(own); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return []string{own}
	}
	return []string{self, workerCommand}
}
