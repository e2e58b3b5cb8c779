package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/browser"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// loginOptions are the flags of mcsh login.
type loginOptions struct {
	settings
	all, noBrowser, device bool
	wait                   time.Duration
	scopes                 []string
}

func (o *loginOptions) add(cmd *cobra.Command) {
	f := cmd.Flags()
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

The tokens are kept in the state directory, sealed with a key in the keyring, or with that of --token-key-file.
docs/sign-in.md says more.`,
		Example: "  mcsh login github\n  mcsh login --all\n  mcsh login github --no-browser",
		Args:    serverOrAll(&o.all),
	}
	return command(cmd, func(ctx context.Context, args []string) error { return p.login(ctx, &o, args) },
		o.addSources, o.addState, o.add, completing(firstArgument, p.serverNames(&o.settings)), p.jsonFlag("print one JSON object per sign-in that was made, a line each"))
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
	_ = p.addCommands(ctx, &s) // it opens the configuration files, whose sources report a mistake
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
	switch {
	case at < 0 && wrong != nil:
		return configError("fix the configuration first", wrong)
	case at < 0:
		names := convert(servers, func(s upstream.Server) string { return s.Name })
		return usageError(didYouMean("did you mean %s?", args[0], names, "the configuration has "+cmp.Or(strings.Join(names, ", "), "no server")),
			"there is no server %s", texts.Quote(args[0]))
	}
	if why := noPerson(servers[at]); why != "" {
		return usageError("mcsh login is for servers that a person signs in to", "%s: %s", args[0], why)
	}
	return p.loginTo(ctx, o, store, *servers[at].Endpoint)
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

// loginAll signs in to each server that nobody has signed in to, one after another.
func (p *program) loginAll(ctx context.Context, o *loginOptions, store *logins.Store, servers []upstream.Server) error {
	var errs []error
	found := false
	for _, s := range servers {
		if noPerson(s) != "" {
			continue
		}
		found = true
		list, err := store.Of(s.Name, "")
		if err != nil {
			return configError("", err)
		}
		if l, _ := s.Endpoint.Login(list); l.Works(time.Now()) {
			fmt.Fprintf(p.stderr, "%s: already signed in\n", s.Name)
			continue
		}
		if err := p.loginTo(ctx, o, store, *s.Endpoint); err != nil {
			if ctx.Err() != nil {
				return err
			}
			errs = append(errs, err)
		}
	}
	if !found {
		fmt.Fprintln(p.stderr, "no server of the configuration has an address that a person signs in to")
	}
	return errors.Join(errs...)
}

// loginTo signs in to one server.
func (p *program) loginTo(ctx context.Context, o *loginOptions, store *logins.Store, e upstream.Endpoint) error {
	// A store that cannot be read or written says so before the person has signed in.
	before, err := store.Of(e.Name, "")
	if err == nil {
		err = store.Writable(ctx)
	}
	if err != nil {
		return configError("", err)
	}
	server, err := e.SignInServer()
	if err != nil {
		return configError("fix tls of the server", fmt.Errorf("%s: %w", e.Name, err))
	}
	server.More = o.scopes
	ctx, cancel := context.WithTimeoutCause(ctx, o.wait, fmt.Errorf("nobody signed in within %s", o.wait))
	defer cancel()
	target, err := signin.Discover(ctx, server, "")
	if errors.Is(err, signin.ErrNotNeeded) {
		fmt.Fprintf(p.stderr, "%s: this server works without a sign-in\n", e.Name)
		return nil
	}
	if err != nil {
		return loginError(e.Name, "finding where to sign in", err)
	}
	addScopes(target, before)
	login, err := p.person(ctx, o, target, server.CallbackPort)
	if err != nil {
		return loginError(e.Name, "signing in", err)
	}
	if err := store.Put(context.WithoutCancel(ctx), login); err != nil { // its code cannot be used again
		revoking, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeWait)
		defer cancel()
		_ = signin.Revoke(revoking, server.HTTP, login) // nobody has the tokens
		return configError("sign in again after that", err)
	}
	return p.signedIn(ctx, o.settings, store, login)
}

// revokeWait bounds the request to revoke tokens that cannot be kept.
const revokeWait = 10 * time.Second

// addScopes asks also for the scopes that the issuer has granted for the server before.
func addScopes(target *signin.Target, before []logins.Login) {
	for _, l := range before {
		if l.Issuer != target.Issuer || l.Resource != target.Resource {
			continue
		}
		for _, scope := range l.Scopes {
			if len(target.Scopes) < logins.MaxScopes && !slices.Contains(target.Scopes, scope) {
				target.Scopes = append(target.Scopes, scope)
			}
		}
	}
}

func loginError(server, what string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &failure{exitAuth, fmt.Errorf("%s: %s: %w", server, what, err), "docs/sign-in.md says what to do; mcsh login " + texts.ShellWord(server) + " begins again"}
}

// person lets a person sign in: on another device if that is wanted or nothing else is possible, or else in a browser.
func (p *program) person(ctx context.Context, o *loginOptions, target *signin.Target, port int) (logins.Login, error) {
	opener, missing := browser.Find(runtime.GOOS, p.env)
	if o.device || missing != nil && !o.noBrowser && target.CanDevice() {
		return p.onDevice(ctx, target)
	}
	listener, err := browser.Listen(port)
	switch {
	case err != nil && target.CanDevice() && port == 0:
		return p.onDevice(ctx, target)
	case errors.Is(err, syscall.EADDRINUSE):
		return logins.Login{}, fmt.Errorf("port %d, its callbackPort, is in use: another mcsh login of the server may be waiting there", port)
	case err != nil:
		return logins.Login{}, err
	}
	attempt, err := target.Begin(ctx, listener.URI)
	if err != nil {
		return logins.Login{}, errors.Join(err, listener.Close())
	}
	if warning := target.MixUp(); warning != "" {
		fmt.Fprintf(p.stderr, "warning: %s\n", gateway.Plain(warning, false))
	}
	fmt.Fprintf(p.stderr, "Open this address in a browser to sign in at %s:\n\n  %s\n\n", gateway.Plain(target.Issuer, false), attempt.URL)
	if missing == nil && !o.noBrowser {
		if err := opener.Open(attempt.URL); err != nil {
			fmt.Fprintf(p.stderr, "(no browser could be opened: %v)\n", err)
		}
	}
	return p.inBrowser(ctx, o, listener, attempt)
}

func (p *program) onDevice(ctx context.Context, target *signin.Target) (logins.Login, error) {
	return target.Device(ctx, func(address, code string) {
		fmt.Fprintf(p.stderr, "Open this address on any device to sign in at %s, and enter the code %s:\n\n  %s\n\n",
			gateway.Plain(target.Issuer, false), gateway.Plain(code, false), gateway.Plain(address, false))
	})
}

// inBrowser waits for the browser, and for a person who pastes the address that it ended at.
func (p *program) inBrowser(ctx context.Context, o *loginOptions, listener *browser.Listener, attempt *signin.Attempt) (logins.Login, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pasted := make(chan string, 1)
	if o.noBrowser || isTerminal(p.stdin) {
		fmt.Fprintln(p.stderr, "If the browser is on another machine, it ends at an address that does not open: paste that address here.")
		go p.readPasted(waiting, attempt.State, func(address string) {
			pasted <- address
			stop(errPasted)
		})
	}
	address, err := listener.Wait(waiting, attempt.State)
	if err != nil && !errors.Is(err, errPasted) {
		return logins.Login{}, err
	}
	if err != nil {
		address = <-pasted
	}
	return attempt.Finish(ctx, address)
}

// errPasted ends the wait for the browser.
var errPasted = errors.New("the address was pasted")

// readPasted waits for a line that is a redirected address, or its query, with the state.
func (p *program) readPasted(ctx context.Context, state string, found func(address string)) {
	lines := p.typed.lines(p.stdin)
	for {
		var line string
		var more bool
		select {
		case line, more = <-lines:
		case <-ctx.Done():
		}
		if !more {
			return
		}
		if !strings.Contains(line, "?") {
			line = "?" + line
		}
		u, err := url.Parse(line)
		switch {
		case line == "?":
			fmt.Fprintf(p.stderr, "This line is longer than %s, and no address is. Paste the address alone.\n", texts.Bytes(maxTyped))
		case err != nil || !u.Query().Has("state"):
			fmt.Fprintln(p.stderr, "This is not an address that a sign-in ends at: it has \"code=\" and \"state=\". Copy all of it.")
		case u.Query().Get("state") != state:
			fmt.Fprintln(p.stderr, "This address belongs to another sign-in. Paste the one that the address above has led to.")
		default:
			found(line)
			return
		}
	}
}

// maxTyped bounds a line that a person types or pastes, in bytes.
const maxTyped = 64 << 10

// typed are the lines of standard input. One goroutine reads them for all sign-ins of a command, because a read of a terminal
// cannot be ended. It ends with the input.
type typed struct {
	once sync.Once
	all  chan string
}

// lines returns the lines that are not empty. A line that is too long is an empty one. It is closed at the end of the input.
func (t *typed) lines(in io.Reader) <-chan string {
	t.once.Do(func() {
		t.all = make(chan string)
		go func() {
			defer close(t.all)
			reader := bufio.NewReaderSize(in, maxTyped)
			for {
				part, err := reader.ReadSlice('\n')
				line, long := strings.TrimSpace(string(part)), errors.Is(err, bufio.ErrBufferFull)
				for errors.Is(err, bufio.ErrBufferFull) {
					line = ""
					_, err = reader.ReadSlice('\n')
				}
				if line != "" || long {
					t.all <- line
				}
				if err != nil {
					return
				}
			}
		}()
	})
	return t.all
}

// signedIn says what the person has now.
func (p *program) signedIn(ctx context.Context, s settings, store *logins.Store, l logins.Login) error {
	place, sealed, err := store.Place()
	if err != nil {
		return configError("", err)
	}
	if err := p.print(rowOf(l, place, sealed), ""); err != nil {
		return err
	}
	as := ""
	if l.Account != "" {
		as = " as " + l.Account
	}
	fmt.Fprint(p.stderr, gateway.Plain(fmt.Sprintf("signed in to %s%s; scopes: %s; %s", l.Server, as,
		cmp.Or(strings.Join(l.Scopes, " "), "those of the issuer"), expiryText(l, time.Now())), false)+"\n")
	fmt.Fprintf(p.stderr, "the tokens are in %s\n", place)
	if !sealed {
		fmt.Fprintln(p.stderr, "note: this file is not sealed; to seal it, give --token-key-file to this command and the gateway")
	}
	p.sayGateways(ctx, s, l.Server)
	return nil
}

// expiryText says how long a login lasts, for people.
func expiryText(l logins.Login, now time.Time) string {
	renewed := ", and is refreshed before that"
	if l.RefreshToken == "" {
		renewed = "; nothing refreshes it"
	}
	switch {
	case !l.Ended.IsZero():
		return "signed out: run mcsh login " + texts.ShellWord(l.Server)
	case l.Expiry.IsZero():
		return "the access token has no known end"
	case l.RefreshToken == "" && !l.Expiry.After(now):
		return "expired: run mcsh login " + texts.ShellWord(l.Server)
	}
	return "the access token ends at " + l.Expiry.Local().Format(time.RFC3339) + renewed
}

// gatewayWait bounds the questions to running gateways.
const gatewayWait = 5 * time.Second

// sayGateways names the running gateways that have a server. They read the new login with their next request.
func (p *program) sayGateways(ctx context.Context, s settings, server string) {
	state, _ := p.statePath(s)
	clients, err := control.Find(state)
	if err != nil || len(clients) == 0 {
		fmt.Fprintln(p.stderr, "no gateway with this state directory is running; the next one uses the sign-in")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatewayWait)
	defer cancel()
	answers, _ := askAll(clients, func(_ string, c *control.Client) (bool, error) {
		list, err := c.Servers(ctx)
		return slices.ContainsFunc(list, func(one control.Server) bool { return one.Name == server }), err
	})
	n := 0
	for _, has := range answers {
		if has {
			n++
		}
	}
	fmt.Fprintf(p.stderr, "of %s running with this state directory, %d with a server of this name: the sign-in counts from the next call on\n",
		texts.Count(len(clients), "gateway"), n)
}
