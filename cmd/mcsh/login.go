package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/pending"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// loginOptions are the flags of mcsh login.
type loginOptions struct {
	gatewayFlags
	all, noBrowser, device bool
	wait                   time.Duration
	scopes                 []string
}

func (o *loginOptions) add(cmd *cobra.Command) {
	o.addConfigured(cmd)
	o.gatewayFlags.add(cmd)
	f := cmd.Flags()
	f.Lookup("gateway").Usage = "sign in within this running gateway, which keeps the tokens: its id, or the URL of one of another machine that has --control-tokens"
	f.BoolVar(&o.all, "all", false, "sign in to every server that wants it and that nobody has signed in to")
	f.BoolVar(&o.noBrowser, "no-browser", false, "open no browser: print the address, and read the redirected address from standard input")
	f.BoolVar(&o.device, "device", false, "sign in on another device, with a code")
	f.DurationVar(&o.wait, "wait", 5*time.Minute, "how long to wait for the person")
	f.StringArrayVar(&o.scopes, "scope", nil, "ask for this scope too (repeatable)")
}

func (p *program) loginCommand() *cobra.Command {
	var o loginOptions
	cmd := &cobra.Command{
		Use:   "login SERVER | --all",
		Short: "Sign in to a server of the configuration",
		Long: `Sign in to a server of the configuration that wants a person to do so. The command prints an address and opens it in the browser.
Where the browser runs on another machine, paste the address that it ends at, also if it shows an error there; or use
--device where the server offers it. Running gateways use the new sign-in at once.

The tokens are kept in the state directory, sealed with a key in the keyring, or with that of --token-key-file. With --gateway a
running gateway signs in, with its own configuration, and keeps the tokens: for one in a container or on another machine.
docs/sign-in.md says more.`,
		Example: "  mcsh login github\n  mcsh login --all\n  mcsh login github --no-browser\n" +
			"  mcsh login github --gateway https://mcp.example.com/mcp --gateway-token-file token",
		Args: serverOrAll(&o.all),
	}
	return command(cmd, func(ctx context.Context, args []string) error { return p.login(ctx, &o, args) },
		o.add, completing(firstArgument, p.serverNames(&o.settings)), p.jsonFlag("print one JSON object per sign-in that was made, a line each"))
}

// serverOrAll wants one server, or --all.
func serverOrAll(all *bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case *all && len(args) > 0:
			return usageError("leave one of them out", "--all stands for all servers, and a server is named too")
		case !*all && len(args) != 1:
			return usageError("such as "+strings.TrimSpace(strings.SplitN(cmd.Example, "\n", 2)[0]), "name one server, or give --all")
		}
		return nil
	}
}

// requireStore opens the store of logins for a command that needs it.
func (p *program) requireStore(s settings) (*logins.Store, error) {
	store, err := p.openLogins(s)
	if err == nil && store == nil {
		err = usageError("leave --state off out, or name a directory", "sign-ins are kept in the state directory, and there is none")
	}
	return store, err
}

// configured returns the servers of all sources, the first of each name, and the mistakes of the configuration.
func (p *program) configured(ctx context.Context, s settings) ([]upstream.Server, error) {
	list, err := p.openSources(s)
	if err != nil {
		return nil, err
	}
	var servers []upstream.Server
	var errs []error
	for _, source := range list {
		more, err := source.Servers(ctx)
		errs = append(errs, err)
		for _, one := range more {
			if !slices.ContainsFunc(servers, func(s upstream.Server) bool { return s.Name == one.Name }) {
				servers = append(servers, one)
			}
		}
	}
	return servers, errors.Join(errs...)
}

func (p *program) login(ctx context.Context, o *loginOptions, args []string) error {
	if o.wait <= 0 {
		return usageError("such as --wait 5m", "--wait is %s, which is no time to sign in", o.wait)
	}
	if o.flags.Changed("gateway") {
		return p.loginInGateway(ctx, o, strings.Join(args, ""))
	}
	store, err := p.requireStore(o.settings)
	if err != nil {
		return err
	}
	servers, wrong := p.configured(ctx, o.settings)
	if o.all {
		if wrong != nil {
			return configError("fix the configuration first", wrong)
		}
		return p.loginAll(ctx, o, store, servers)
	}
	at := slices.IndexFunc(servers, func(s upstream.Server) bool { return s.Name == args[0] })
	if at < 0 && wrong != nil {
		return configError("fix the configuration first", wrong)
	}
	if err := personSigns(servers, at, args[0]); err != nil {
		return err
	}
	login, err := p.loginTo(ctx, o, store, *servers[at].Endpoint)
	if errors.Is(err, signin.ErrNotNeeded) {
		fmt.Fprintf(p.stderr, "%s: %s\n", args[0], worksWithout)
		return nil
	}
	if err != nil {
		return loginFailure(args[0], err)
	}
	return p.signedIn(ctx, o.settings, login)
}

// worksWithout says that a server needs no sign-in.
const worksWithout = "this server works without a sign-in"

// personSigns returns the error of a server that nobody signs in to; at is its place among the servers.
func personSigns(servers []upstream.Server, at int, name string) error {
	if at < 0 {
		names := convert(servers, func(s upstream.Server) string { return s.Name })
		return usageError(didYouMean("did you mean %s?", name, names, "the configuration has "+cmp.Or(strings.Join(names, ", "), "no server")),
			"there is no server %s", texts.Quote(name))
	}
	if why := noPerson(servers[at]); why != "" {
		return usageError("mcsh login is for servers that a person signs in to", "%s: %s", name, why)
	}
	return nil
}

// noPerson says why no person signs in to a server; empty: a person may.
func noPerson(s upstream.Server) string {
	switch e := s.Endpoint; {
	case e == nil:
		return "this server has no address (url), so nobody signs in to it"
	case e.Headers.Get("Authorization") != "":
		return "its configuration has a header Authorization, which every request uses: remove that to sign in as a person"
	case e.OAuth != nil:
		return "the gateway signs in by itself, with the issuer and clientSecret of its configuration"
	}
	return ""
}

// loginTo signs in to one server.
func (p *program) loginTo(ctx context.Context, o *loginOptions, store *logins.Store, e upstream.Endpoint) (control.Login, error) {
	server, err := e.SignInServer()
	if err != nil {
		return control.Login{}, configError("fix tls of the server", err)
	}
	server.More = o.scopes
	ctx, cancel := o.patience(ctx)
	defer cancel()
	target, err := pending.Find(ctx, store, server)
	if err != nil {
		return control.Login{}, err
	}
	login, err := p.person(ctx, o, target, server.CallbackPort)
	if err == nil {
		err = pending.Keep(ctx, store, server, login)
	}
	if err != nil {
		return control.Login{}, err
	}
	return describe(store, login)
}

// patience bounds the time for a person.
func (o *loginOptions) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, o.wait, nobody(o.wait))
}

// nobody is the error of a wait in which nobody has signed in.
type nobody time.Duration

func (n nobody) Error() string { return fmt.Sprintf("nobody signed in within %s", time.Duration(n)) }
