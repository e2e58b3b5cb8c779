package cli

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
	"github.com/mcsh-dev/mcsh/upstream/clients"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// importWait is how long an import waits for another import to the same file.
const importWait = 10 * time.Second

type importOptions struct {
	to      string
	only    []string
	dryRun  bool
	replace bool
}

func (p *program) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import [CLIENT | FILE]",
		Short: "Copy servers from the configuration of another MCP client",
		Long: `Copy the servers of another MCP client, or of a file, into a configuration of mcsh. The client's own file stays
unchanged. Without an argument it lists the clients and their files.

Servers that the configuration has already stay unchanged, unless --replace replaces them. A user's first configuration
gets the built-in servers too: without a configuration they are the default.`,
		Example: `  mcsh import claude-code --dry-run
  mcsh import cursor
  mcsh import ~/other/mcp.json --to mcp.json`,
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "to", "", "file to write to (default: the user's file)")
	f.StringArrayVar(&o.only, "server", nil, "copy only this server (repeatable)")
	f.BoolVar(&o.dryRun, "dry-run", false, "write nothing and show what would change")
	f.BoolVar(&o.replace, "replace", false, "let servers of the client replace those with the same name")
	return command(cmd, func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return p.listClients()
		}
		return p.importServers(ctx, args[0], o)
	}, completing(firstOrFile, clientNames), p.jsonFlag("print one JSON object, or without an argument one per client"))
}

// places returns the directories in which clients keep their files.
func (p *program) places() (clients.Places, error) {
	project, err := os.Getwd()
	if err != nil {
		return clients.Places{}, fmt.Errorf("finding the current directory: %w", err)
	}
	return clients.Places{Home: p.env["HOME"], Config: p.userConfig(), Project: project}, nil
}

// userConfig returns the directory for user settings, or "".
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

// userFile returns the user's configuration file, or "" without a home directory.
func (p *program) userFile() string {
	if dir := p.userConfig(); dir != "" {
		return filepath.Join(dir, "mcsh", "mcp.json")
	}
	return ""
}

type clientJSON struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Files   []string `json:"files"`   // existing ones
	Gateway bool     `json:"gateway"` // one of the files has the gateway
}

func (p *program) listClients() error {
	places, err := p.places()
	if err != nil {
		return err
	}
	var rows [][]string
	for _, c := range clients.All() {
		there := clientJSON{Name: c.Name, Title: c.Title, Files: []string{}}
		for _, path := range c.Files(places) {
			if _, gateway, readable := gatewayIn(c, path); readable {
				there.Files = append(there.Files, path)
				there.Gateway = there.Gateway || gateway
			}
		}
		line := cmp.Or(strings.Join(there.Files, ", "), "nothing here")
		if there.Gateway {
			line += " (has the gateway)"
		}
		rows = append(rows, []string{c.Name, c.Title, line})
		p.print(there, "")
	}
	return p.printTable(rows, 3)
}

// gatewayIn reports whether a file of a client has the gateway, and the servers beside it. A file that cannot be read has
// nothing.
func gatewayIn(c clients.Client, path string) (others []string, gateway, readable bool) {
	data, err := namedfile.Read(path, clients.MaxFile)
	if err != nil {
		return nil, false, false
	}
	others, ours, has := c.Others(path, data, gatewayName)
	return others, has || len(ours) > 0, true
}

// importServers imports the servers of a client or a file.
func (p *program) importServers(ctx context.Context, from string, o importOptions) error {
	places, err := p.places()
	if err != nil {
		return err
	}
	client, paths, err := importSources(from, places)
	if err != nil {
		return err
	}
	to := cmp.Or(o.to, p.userFile())
	if to == "" {
		return usageError("give --to FILE", "there is no place for a configuration: HOME is not set")
	}
	var all clients.Contents
	for _, path := range paths {
		data, err := namedfile.ReadOnce(ctx, path, clients.MaxFile)
		if err != nil {
			return configError("give a file that can be read", err)
		}
		r, err := client.Read(path, data, places)
		if err != nil && len(paths) == 1 {
			return configError("give a file with MCP servers; mcsh import lists the clients", err)
		}
		if err != nil {
			fmt.Fprintf(p.stderr, "note: %v\n", err)
			continue
		}
		all.Inputs = append(all.Inputs, r.Inputs...)
		for _, f := range r.Servers {
			if !hasServer(all.Servers, f.Name) {
				all.Servers = append(all.Servers, f)
			}
		}
	}
	if all.Servers, err = selected(all.Servers, o.only); err != nil {
		return err
	}
	all.Servers = append(all.Servers, p.keptBuiltins(to, all.Servers)...)
	if err := p.mergeInto(ctx, to, all, o); err != nil || p.json || client.Name != from {
		return err
	}
	fmt.Fprintf(p.stderr, "note: %s still has these servers in %s, and calls them beside the gateway: take them out there when the gateway works; "+
		"mcsh connect %s writes it into that file\n", client.Title, strings.Join(paths, ", "), from)
	return nil
}

func hasServer(list []clients.Entry, name string) bool {
	return slices.ContainsFunc(list, func(f clients.Entry) bool { return f.Name == name })
}

// keptBuiltins returns the built-in servers to add to the user's first configuration, which replaces the defaults.
func (p *program) keptBuiltins(to string, taken []clients.Entry) []clients.Entry {
	if _, err := os.Stat(to); to != p.userFile() || err == nil || !slices.ContainsFunc(taken, func(f clients.Entry) bool { return f.Server != nil }) {
		return nil
	}
	var list []clients.Entry
	for _, d := range defaultServers(settings{}) {
		if hasServer(taken, d.builtin) {
			continue
		}
		server := &clients.Server{Builtin: d.builtin}
		if len(d.allow) > 0 {
			server.Tools = &clients.Tools{Allow: d.allow}
		}
		list = append(list, clients.Entry{Name: d.builtin, Server: server})
	}
	return list
}

// importSources returns the client and the files that an argument names: those of a client, or one path.
func importSources(from string, places clients.Places) (c clients.Client, paths []string, err error) {
	if c, err = findClient(from, "%q is neither a client nor a file", "mcsh import lists the clients"); err == nil {
		files := c.Files(places)
		found := slices.DeleteFunc(slices.Clone(files), func(path string) bool { _, err := os.Stat(path); return err != nil })
		if len(found) == 0 {
			err = configError("give the path of its file", fmt.Errorf("%s has no file here; looked for %s", c.Title, strings.Join(files, ", ")))
		}
		return c, found, err
	}
	if info, missing := os.Stat(from); missing != nil || info.IsDir() { // a pipe is fine: it is read once
		return c, nil, err
	}
	path, err := filepath.Abs(from)
	return clients.Of(path, places), []string{path}, err
}

// selected returns the servers of --server, or all.
func selected(list []clients.Entry, only []string) ([]clients.Entry, error) {
	for _, name := range only {
		if !hasServer(list, name) {
			names := convert(list, func(f clients.Entry) string { return f.Name })
			return nil, usageError("there are "+strings.Join(names, ", "), "there is no server %q to take", name)
		}
	}
	return slices.DeleteFunc(list, func(f clients.Entry) bool { return len(only) > 0 && !slices.Contains(only, f.Name) }), nil
}

// mergeInto writes the servers into a configuration; with --dry-run it only shows the change.
func (p *program) mergeInto(ctx context.Context, to string, from clients.Contents, o importOptions) error {
	ctx, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	var outcome map[string]string
	var merged, difference []byte
	merge := func(old []byte) ([]byte, error) {
		var err error
		merged, outcome, err = clients.Merge(old, from.Servers, from.Inputs, o.replace)
		if err != nil {
			return nil, configError("fix it first, or give another file with --to", fmt.Errorf("%s: %w", to, err))
		}
		difference = diff.Diff(to, clients.Redact(old), to, clients.Redact(merged))
		return merged, nil
	}
	if err := p.rewrite(ctx, to, o.dryRun, merge); err != nil {
		if !classified(err) {
			err = configError("name another with --to, or let this user write it", err)
		}
		return err
	}
	if p.json {
		list := convert(from.Servers, func(f clients.Entry) importedJSON {
			one := importedJSON{Name: f.Name, Outcome: outcome[f.Name], LeftOut: f.LeftOut}
			if f.Err != nil {
				one.Error = f.Err.Error()
			}
			return one
		})
		return p.print(map[string]any{"file": to, "servers": list, "diff": string(difference)}, "")
	}
	outcomes := p.text
	if o.dryRun {
		outcomes = p.stderr
		p.print(nil, string(difference))
	}
	p.reportImport(outcomes, to, merged, from.Servers, outcome)
	return nil
}

// importedJSON is the outcome for one server.
type importedJSON struct {
	Name    string   `json:"name"`
	Outcome string   `json:"outcome,omitempty"`
	Error   string   `json:"error,omitempty"` // of a server that was not imported
	LeftOut []string `json:"left_out,omitempty"`
}

// rewrite changes the file; with a dry run it only reads it.
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

// reportImport prints the outcome for each server and what remains to do.
func (p *program) reportImport(w io.Writer, to string, merged []byte, servers []clients.Entry, outcome map[string]string) {
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
		fmt.Fprintln(w, line) // the program reports a failed write in the end
	}
	file := &config.File{Path: to, Lookup: p.lookup, Builtins: configBuiltins(p.host(sandboxSettings{}, settings{}.host)), Options: builtinOptions(), ReadFile: func(path string) ([]byte, error) {
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
}
