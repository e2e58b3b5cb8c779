package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/upstream/clients"
)

const connectLong = `Write this gateway into the configuration of an MCP client, which then starts it, or with --http reaches it at an
address. Nothing else in the client's file changes, not even its layout; the file as it was is kept beside it, for its
owner alone. A second time changes nothing. Without an argument it lists the clients.

The flags after -- go to mcsh serve. --replace replaces another server of the same name as a whole. --undo removes the
entry and nothing else; it removes an entry with an address only if --http gives the same address. A replaced server
comes back if nothing else has changed since, and a file that was made for the entry is removed.`

const connectExample = `  mcsh connect cursor
  mcsh connect claude-code --project --config mcp.json
  mcsh connect codex --http http://127.0.0.1:8808/mcp
  mcsh connect cursor --http https://mcp.example.com/mcp --token-env MCSH_TOKEN
  mcsh connect zed -- --read-only --toolhive off
  mcsh connect cursor --undo
  mcsh connect codex --undo --http http://127.0.0.1:8808/mcp`

// gatewayName is the default name of the gateway in clients.
const gatewayName = "mcsh"

type connectOptions struct {
	print, undo, dryRun bool
	project, replace    bool
	name, file, http    string
	token               string // the variable that holds the token for http
	configs             []string
	serve               []string // further flags of mcsh serve
}

func (p *program) connectCommand() *cobra.Command {
	var o connectOptions
	cmd := &cobra.Command{
		Use:     "connect [CLIENT] [-- FLAGS OF SERVE]",
		Short:   "Write the gateway into the configuration of an MCP client",
		Long:    connectLong,
		Example: connectExample,
	}
	run := func(ctx context.Context, args []string) error {
		if n := cmd.ArgsLenAtDash(); n >= 0 {
			args, o.serve = args[:n], args[n:]
		}
		switch len(args) {
		case 0:
			return p.listClients()
		case 1:
			return p.connect(ctx, args[0], o)
		}
		return usageError("flags of the gateway come after --", "want one client, not %s", strings.Join(args, ", "))
	}
	f := cmd.Flags()
	f.BoolVar(&o.print, "print", false, "write nothing and print what to add by hand")
	f.BoolVar(&o.undo, "undo", false, "remove the entry again")
	f.BoolVar(&o.dryRun, "dry-run", false, "write nothing and show what would change")
	f.BoolVar(&o.project, "project", false, "the client's file for this directory instead of the user's")
	f.BoolVar(&o.replace, "replace", false, "replace another server with the name of the gateway")
	f.StringVar(&o.name, "name", gatewayName, "name of the gateway in the client")
	f.StringVar(&o.file, "file", "", "file of the client, if it is not the usual one")
	f.StringVar(&o.http, "http", "", "address of a gateway that runs already, such as http://127.0.0.1:8808/mcp")
	f.StringVar(&o.token, "token-env", "", "variable of the client's environment that holds the token for --http; the token itself is never written")
	f.StringArrayVar(&o.configs, "config", nil, "configuration that the gateway is started with (repeatable; default: $"+configVariable+")")
	cmd.MarkFlagsMutuallyExclusive("print", "undo")
	cmd.MarkFlagsMutuallyExclusive("print", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("project", "file")
	cmd.MarkFlagsMutuallyExclusive("http", "config")
	return command(cmd, run, completing(firstArgument, clientNames), p.jsonFlag("print one JSON object, or without an argument one per client"))
}

type connectJSON struct {
	Client  string `json:"client"`
	File    string `json:"file"`
	Outcome string `json:"outcome"`
	Written bool   `json:"written"`
	Backup  string `json:"backup,omitempty"`
	Diff    string `json:"diff,omitempty"`
}

func (p *program) connect(ctx context.Context, name string, o connectOptions) error {
	client, err := findClient(name, "%q is not a client", "mcsh connect lists the clients; mcsh connect CLIENT --file FILE writes another file")
	if err != nil {
		return err
	}
	path, err := p.connectFile(client, o)
	if err != nil {
		return err
	}
	g := clients.Gateway{Name: o.name}
	if !o.undo || o.http != "" {
		if g, err = p.gatewayEntry(client, o); err != nil {
			return err
		}
	}
	if o.print {
		return p.printEntry(client, path, g, o)
	}
	ctx, cancel := context.WithTimeout(ctx, importWait)
	defer cancel()
	result := connectJSON{Client: client.Name, File: path}
	var after []byte
	err = p.rewrite(ctx, path, o.dryRun, func(old []byte) ([]byte, error) {
		edit, err := connectEdit(client, path, old, g, o)
		if err != nil {
			return nil, connectError(client, o, err)
		}
		after, result.Outcome = edit.Data, edit.Outcome
		result.Diff = string(diff.Diff(path, client.Shown(path, old, o.name), path, client.Shown(path, edit.Data, o.name)))
		if o.dryRun || bytes.Equal(old, edit.Data) {
			return old, nil
		}
		result.Written = true
		if !o.undo {
			result.Backup, err = clients.SaveOriginal(path, old, edit)
		}
		return edit.Data, err
	})
	if err != nil {
		return connectError(client, o, err)
	}
	if result.Written && o.undo {
		clients.RemoveBackups(path, after)
	}
	return p.printConnect(client, result, after, o)
}

// connectEdit adds the entry to the file, or removes it.
func connectEdit(c clients.Client, path string, old []byte, g clients.Gateway, o connectOptions) (clients.Edit, error) {
	if !o.undo {
		return c.Add(path, old, g, o.replace)
	}
	past, err := clients.OriginalOf(path)
	if err != nil {
		return clients.Edit{}, err
	}
	return c.Remove(path, old, past, g)
}

// connectError adds a hint to an error.
func connectError(c clients.Client, o connectOptions, err error) error {
	if classified(err) {
		return err
	}
	byHand := fmt.Sprintf("mcsh connect %s --print shows what to add by hand", c.Name)
	if o.undo {
		byHand = fmt.Sprintf("take %q out of it by hand", o.name)
	}
	switch {
	case errors.Is(err, clients.ErrTaken) && o.undo:
		return configError("give the name of the gateway there with --name, and its address with --http if it was added with one", err)
	case errors.Is(err, clients.ErrTaken):
		return configError("--name NAME gives the gateway another one, --replace replaces that server", err)
	case errors.Is(err, clients.ErrChanged):
		return configError("run it again", err)
	case errors.Is(err, clients.ErrOwner):
		return configError("run it as the owner of the file, or "+byHand, err)
	case errors.Is(err, os.ErrPermission):
		return configError("make it writable, or "+byHand, err)
	}
	return configError("fix it first; "+byHand, err)
}

// findClient returns the client with a name. Otherwise its error says what the name is not, with a hint if no client has a
// similar one.
func findClient(name, not, hint string) (clients.Client, error) {
	all := clients.All()
	if at := slices.IndexFunc(all, func(c clients.Client) bool { return c.Name == name }); at >= 0 {
		return all[at], nil
	}
	names := convert(all, func(c clients.Client) string { return c.Name })
	return clients.Client{}, usageError(didYouMean("did you mean %q?", name, names, hint), not, name)
}

// connectFile returns the file to change.
func (p *program) connectFile(c clients.Client, o connectOptions) (string, error) {
	if o.file != "" {
		return filepath.Abs(o.file)
	}
	places, err := p.places()
	if err != nil {
		return "", err
	}
	path, err := c.Target(places, o.project)
	if err != nil {
		return "", usageError("leave --project out, or name the file with --file", "%w", err)
	}
	return path, nil
}

// gatewayEntry returns the entry for the client's file.
func (p *program) gatewayEntry(c clients.Client, o connectOptions) (clients.Gateway, error) {
	if o.http == "" && o.token == "" {
		return p.stdioEntry(o)
	}
	u, err := url.Parse(o.http)
	if wrong := checkHTTP(c, o, u, err); wrong != nil {
		return clients.Gateway{}, wrong
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	return clients.Gateway{Name: o.name, URL: u.String(), Token: o.token}, nil
}

// variableName matches a variable name that every client accepts.
var variableName = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// checkHTTP checks --http, of which u and err are what was parsed, and --token-env, whose value users confuse with the
// token itself.
func checkHTTP(c clients.Client, o connectOptions, u *url.URL, err error) error {
	switch {
	case o.http == "":
		return usageError("leave it out, or give the address with --http", "--token-env: a gateway that the client starts takes no token")
	case o.token != "" && (!variableName().MatchString(o.token) || strings.HasPrefix(o.token, tokens.Prefix)):
		return usageError("such as --token-env MCSH_TOKEN, with the token in that variable",
			"--token-env takes the name of a variable, not a token; if it was one, remove it with mcsh token rm: it may be in the history of your shell")
	case o.token != "" && !c.NamesToken():
		return usageError("leave --token-env out, and write the header into the entry by hand: Authorization: Bearer TOKEN",
			"%s cannot take a token from a variable", c.Title)
	case !c.SpeaksHTTP():
		return usageError("leave --http out: it starts the gateway by itself", "%s only starts programs", c.Title)
	case err != nil && !strings.Contains(o.http, "://"), err == nil && u.Scheme != "http" && u.Scheme != "https":
		return usageError("did you mean http://"+o.http+"?", "--http %q: want an address with http:// or https://", o.http)
	case err != nil || u.Host == "":
		return usageError("such as http://127.0.0.1:8808/mcp", "--http %q is not an address", o.http)
	case len(o.serve) > 0:
		return usageError("give them to the gateway that runs there", "with --http there is nothing to start with flags")
	}
	return nil
}

// stdioEntry returns the entry of a gateway that the client starts. Clients have their own PATH and working directory.
func (p *program) stdioEntry(o connectOptions) (clients.Gateway, error) {
	g := clients.Gateway{Name: o.name, Command: "mcsh", Args: []string{"serve"}}
	serve := p.serveCommand()
	err := serve.ParseFlags(o.serve)
	if err != nil {
		return g, usageError("mcsh serve --help shows the flags", "after --: %w", err)
	}
	if rest := serve.Flags().Args(); len(rest) > 0 {
		return g, usageError("mcsh serve --help shows what it takes", "after --: %q is not a flag of mcsh serve", rest[0])
	}
	if !o.project { // project files are shared with other users and machines
		if g.Command, err = p.executablePath(); err != nil {
			return g, err
		}
	}
	configs := o.configs
	if len(configs) == 0 {
		configs = filepath.SplitList(p.env[configVariable])
	}
	for _, path := range configs {
		if _, err := os.Stat(path); err != nil {
			return g, configError("name a file that is there", err)
		}
		if !o.project || !filepath.IsLocal(path) {
			if path, err = filepath.Abs(path); err != nil {
				return g, err
			}
		}
		g.Args = append(g.Args, "--config", path)
	}
	g.Args = append(g.Args, o.serve...)
	return g, nil
}

// executablePath returns the path of this program. It prefers the path in PATH, which survives an upgrade by a package
// manager.
func (p *program) executablePath() (string, error) {
	self, err := os.Executable()
	own, missing := os.Stat(self)
	if err = cmp.Or(err, missing); err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	for _, dir := range filepath.SplitList(p.env["PATH"]) {
		path := filepath.Join(dir, filepath.Base(self))
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(path) && os.SameFile(info, own) {
			return path, nil
		}
	}
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		fmt.Fprintf(p.stderr, "note: %s is gone after this: install mcsh (go install ./cmd/...) and connect again\n", self)
	}
	return self, nil
}

// printEntry prints the entry for a manual change.
func (p *program) printEntry(c clients.Client, path string, g clients.Gateway, o connectOptions) error {
	snippet, err := c.Snippet(path, g)
	if err != nil {
		return connectError(c, o, err)
	}
	if !p.json {
		fmt.Fprintf(p.stderr, "into %s:\n", path)
	}
	return p.print(map[string]string{"client": c.Name, "file": path, "add": string(snippet)}, string(snippet))
}

// printConnect reports the change and what remains to do.
func (p *program) printConnect(c clients.Client, result connectJSON, data []byte, o connectOptions) error {
	if err := p.print(result, result.Diff); err != nil || p.json {
		return err
	}
	fmt.Fprintf(p.stderr, "%s: %s %s in %s\n", c.Title, o.name, result.Outcome, result.File)
	if o.undo {
		past, err := clients.OriginalOf(result.File)
		if err != nil || !result.Written {
			return err
		}
		for _, backup := range past.Backups {
			fmt.Fprintf(p.stderr, "the file as it was before: %s\n", backup.Path)
		}
		return nil
	}
	if result.Backup != "" {
		fmt.Fprintf(p.stderr, "the file as it was: %s\n", result.Backup)
	}
	if result.Written {
		fmt.Fprintf(p.stderr, "to take it out again: mcsh connect %s --undo%s\n", c.Name, undoFlags(o))
	}
	others, ours, _ := c.Others(result.File, data, o.name)
	if len(ours) > 0 {
		fmt.Fprintf(p.stderr, "note: the gateway is there a second time, as %s: one is enough\n", strings.Join(ours, ", "))
	}
	if len(others) > 0 {
		fmt.Fprintf(p.stderr, "note: %s has servers beside the gateway (%s): an agent calls those directly and carries what they return. "+
			"mcsh import %s gives them to the gateway; then take them out there\n", c.Title, strings.Join(others, ", "), c.Name)
	}
	if c.Then != "" && result.Written {
		fmt.Fprintln(p.stderr, "next: "+c.Then)
	}
	return nil
}

// undoFlags returns the flags with which --undo finds this entry.
func undoFlags(o connectOptions) string {
	flags := ""
	if o.project {
		flags += " --project"
	}
	for _, f := range []struct{ name, value, usual string }{{"file", o.file, ""}, {"name", o.name, gatewayName}, {"http", o.http, ""}} {
		if f.value != f.usual {
			flags += " --" + f.name + " " + f.value
		}
	}
	return flags
}
