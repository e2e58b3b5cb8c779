package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/upstream/clients"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

const importLong = `Take the servers of another MCP client, or of a file, into a configuration of mcsh. The client's own file stays
as it is. Without an argument it lists the clients, and which of their files are there.

Servers that are there already stay as they are; with --replace they become what the client has.`

const importExample = `  mcsh import claude-code --dry-run
  mcsh import cursor
  mcsh import ~/other/mcp.json --to mcp.json`

// importWait is how long an import waits for another one to the same place.
const importWait = 10 * time.Second

// importOptions are the flags of import.
type importOptions struct {
	to      string
	only    []string
	dryRun  bool
	replace bool
}

func (p *program) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:     "import [CLIENT | FILE]",
		Short:   "Take servers from the configuration of another MCP client",
		Long:    importLong,
		Example: importExample,
		Args:    cobra.MaximumNArgs(1),
		RunE: work(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return p.listClients()
			}
			return p.importServers(ctx, args[0], o)
		}),
	}
	complete(cmd, false, clientNames)
	orFiles(cmd)
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "file to write to (default: the user's, which is read where no other is named)")
	f.StringArrayVar(&o.only, "server", nil, "take only this server (repeatable)")
	f.BoolVar(&o.dryRun, "dry-run", false, "write nothing and show what would change")
	f.BoolVar(&o.replace, "replace", false, "let servers of the client replace those with the same name")
	p.addJSON(cmd, "print one JSON object, or without an argument one per client")
	return cmd
}

// places are the directories that clients keep their files in.
func (p *program) places() (clients.Places, error) {
	project, err := os.Getwd()
	if err != nil {
		return clients.Places{}, fmt.Errorf("finding the current directory: %w", err)
	}
	return clients.Places{Home: p.env["HOME"], Config: p.userConfig(), Project: project}, nil
}

// userConfig is where programs keep the settings of a user, or nothing.
func (p *program) userConfig() string {
	home := p.env["HOME"]
	switch {
	case filepath.IsAbs(p.env["XDG_CONFIG_HOME"]):
		return p.env["XDG_CONFIG_HOME"]
	case home == "":
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support")
	}
	return filepath.Join(home, ".config")
}

// userFile is the configuration of the user, or nothing where there is no place for one.
func (p *program) userFile() string {
	if dir := p.userConfig(); dir != "" {
		return filepath.Join(dir, "mcsh", "mcp.json")
	}
	return ""
}

// clientJSON is a client as --json prints it.
type clientJSON struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Files   []string `json:"files"`   // those that are there
	Gateway bool     `json:"gateway"` // one of them has the gateway
}

// listClients prints the clients and their files.
func (p *program) listClients() error {
	places, err := p.places()
	if err != nil {
		return err
	}
	for _, c := range clients.All() {
		there := clientJSON{Name: c.Name, Title: c.Title, Files: []string{}}
		for _, path := range c.Files(places) {
			if data, err := namedfile.Read(path, clients.MaxFile); err == nil && !slices.Contains(there.Files, path) {
				_, ours := c.Others(path, data, gatewayName)
				there.Files = append(there.Files, path)
				there.Gateway = there.Gateway || len(ours) > 0 || c.Has(path, data, gatewayName)
			}
		}
		if p.json {
			err = writeJSON(p.stdout, there)
		} else {
			line := cmp.Or(strings.Join(there.Files, ", "), "nothing here")
			if there.Gateway {
				line += " (has the gateway)"
			}
			_, err = fmt.Fprintf(p.stdout, "%-15s %-15s %s\n", c.Name, c.Title, line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// importServers takes the servers of a client or a file.
func (p *program) importServers(ctx context.Context, from string, o importOptions) error {
	places, err := p.places()
	if err != nil {
		return err
	}
	sources, err := importSources(from, places)
	if err != nil {
		return err
	}
	to := o.to
	if to == "" {
		if to = p.userFile(); to == "" {
			return usageError("give --to FILE", "there is no place for a configuration: HOME is not set")
		}
	}
	var all clients.Reading
	for _, s := range sources {
		data, err := namedfile.ReadOnce(ctx, s.path, clients.MaxFile)
		if err != nil {
			return configError("give a file that can be read", err)
		}
		r, err := s.client.Read(s.path, data, places)
		if err != nil {
			if len(sources) > 1 {
				fmt.Fprintf(p.stderr, "note: %v\n", err)
				continue
			}
			return configError("give a file with MCP servers; mcsh import lists the clients", err)
		}
		all.Inputs = append(all.Inputs, r.Inputs...)
		for _, f := range r.Servers {
			if !slices.ContainsFunc(all.Servers, func(other clients.Found) bool { return other.Name == f.Name }) {
				all.Servers = append(all.Servers, f)
			}
		}
	}
	if all.Servers, err = chosen(all.Servers, o.only); err != nil {
		return err
	}
	return p.mergeInto(ctx, to, all, o)
}

// An importSource is a file of a client.
type importSource struct {
	client clients.Client
	path   string
}

// importSources finds the files that an argument means.
func importSources(from string, places clients.Places) ([]importSource, error) {
	var names []string
	for _, c := range clients.All() {
		names = append(names, c.Name)
		if c.Name != from {
			continue
		}
		var found []importSource
		for _, path := range c.Files(places) {
			if _, err := os.Stat(path); err == nil {
				found = append(found, importSource{c, path})
			}
		}
		if len(found) == 0 {
			return nil, configError("give the path of its file", fmt.Errorf("%s has no file here; looked for %s", c.Title, strings.Join(c.Files(places), ", ")))
		}
		return found, nil
	}
	if info, err := os.Stat(from); err == nil && !info.IsDir() { // a pipe does: it is read once
		path, err := filepath.Abs(from)
		return []importSource{{clients.Of(path, places), path}}, err
	}
	hint := "mcsh import lists the clients"
	if near := nearest.Name(from, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, usageError(hint, "%q is neither a client nor a file", from)
}

// chosen are the servers that were asked for.
func chosen(list []clients.Found, only []string) ([]clients.Found, error) {
	if len(only) == 0 {
		return list, nil
	}
	var names []string
	for _, f := range list {
		names = append(names, f.Name)
	}
	for _, name := range only {
		if !slices.Contains(names, name) {
			return nil, usageError("there are "+strings.Join(names, ", "), "there is no server %q to take", name)
		}
	}
	return slices.DeleteFunc(list, func(f clients.Found) bool { return !slices.Contains(only, f.Name) }), nil
}

// mergeInto writes the servers into a configuration, or shows what would be written.
func (p *program) mergeInto(ctx context.Context, to string, from clients.Reading, o importOptions) error {
	ctx, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	var outcome map[string]string
	var merged []byte
	var difference []byte
	merge := func(old []byte) ([]byte, error) {
		var err error
		merged, outcome, err = clients.Merge(old, from.Servers, from.Inputs, o.replace)
		if err != nil {
			return nil, configError("mend it first, or give another file with --to", fmt.Errorf("%s: %w", to, err))
		}
		difference = diff.Diff(to, clients.Redact(old), to, clients.Redact(merged))
		if o.dryRun {
			return old, nil
		}
		return merged, nil
	}
	if err := p.rewrite(ctx, to, o.dryRun, merge); err != nil {
		if !classified(err) {
			err = configError("name another with --to, or let this user write it", err)
		}
		return err
	}
	if p.json {
		return p.importJSON(to, string(difference), from.Servers, outcome)
	}
	if o.dryRun {
		if _, err := p.stdout.Write(difference); err != nil {
			return err
		}
	}
	return p.tellImport(p.importOut(o), to, merged, from.Servers, outcome)
}

// importedJSON is what has become of a server, as --json prints it.
type importedJSON struct {
	Name    string   `json:"name"`
	Outcome string   `json:"outcome,omitempty"`
	Error   string   `json:"error,omitempty"` // why it was not taken
	LeftOut []string `json:"left_out,omitempty"`
}

// importJSON prints what has become of the servers.
func (p *program) importJSON(to, difference string, servers []clients.Found, outcome map[string]string) error {
	list := []importedJSON{}
	for _, f := range servers {
		one := importedJSON{Name: f.Name, Outcome: outcome[f.Name], LeftOut: f.LeftOut}
		if f.Err != nil {
			one.Error = f.Err.Error()
		}
		list = append(list, one)
	}
	return writeJSON(p.stdout, map[string]any{"file": to, "servers": list, "diff": difference})
}

// rewrite changes the file, or with a dry run only reads it.
func (p *program) rewrite(ctx context.Context, to string, dry bool, change func([]byte) ([]byte, error)) error {
	if !dry {
		return clients.Rewrite(ctx, to, change)
	}
	old, err := namedfile.Read(to, clients.MaxFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err = change(old)
	return err
}

// importOut is where people read what became of each server: beside a diff, on standard error.
func (p *program) importOut(o importOptions) io.Writer {
	if o.dryRun {
		return p.stderr
	}
	return p.stdout
}

// tellImport says what became of each server, and what is still to be done.
func (p *program) tellImport(w io.Writer, to string, merged []byte, servers []clients.Found, outcome map[string]string) error {
	for _, f := range servers {
		line := fmt.Sprintf("%s: not taken: %v", f.Name, f.Err)
		if f.Server != nil {
			line = fmt.Sprintf("%s: %s (%s)", f.Name, outcome[f.Name], f.Server.Summary())
		}
		if outcome[f.Name] == clients.Kept {
			line += "; --replace takes it"
		}
		if len(f.LeftOut) > 0 && f.Server != nil {
			line += "; left out: " + strings.Join(f.LeftOut, ", ")
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	file := &config.File{Path: to, Lookup: p.lookup, Builtins: configBuiltins(), ReadFile: func(path string) ([]byte, error) {
		if path == to {
			return merged, nil
		}
		return namedfile.Read(path, config.MaxFile)
	}}
	if _, err := file.Servers(context.Background()); err != nil {
		fmt.Fprint(p.stderr, "note: before these servers can be used:\n  "+strings.ReplaceAll(err.Error(), "\n", "\n  ")+"\n")
	}
	if to != p.userFile() {
		fmt.Fprintf(p.stderr, "note: mcsh serve --config %s uses them\n", to)
	}
	return nil
}
