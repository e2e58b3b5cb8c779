package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/publicip"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/browser"
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
	o.store.add(cmd)
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
Where the browser runs on another machine, paste the address that it ends at, even if it shows an error there; or use
--device where the server offers it. Running gateways use the new sign-in at once.

The tokens are kept in the state directory, sealed with a key in the keyring, or with that of --token-key-file; with --store and
--store-logins in the store that gateways share, sealed with its key file. With --gateway a running gateway signs in, with its
own configuration, and keeps the tokens: for one in a container or on another machine.
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
func (p *program) requireStore(ctx context.Context, s settings) (*logins.Store, error) {
	store, err := p.openLogins(ctx, s)
	if err == nil && store == nil {
		err = usageError("leave --state off out, or name a directory", "sign-ins are kept in the state directory, and there is none")
	}
	return store, err
}

// configured returns the servers of all sources, the first of each name, and the mistakes of the configuration.
func (p *program) configured(ctx context.Context, s settings) ([]upstream.Server, error) {
	list, err := p.openSources(ctx, s)
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
	store, err := p.requireStore(ctx, o.settings)
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
	if err := checkPersonSignsIn(servers, at, args[0]); err != nil {
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

// checkPersonSignsIn returns the error of a server that nobody signs in to; at is its place among the servers.
func checkPersonSignsIn(servers []upstream.Server, at int, name string) error {
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

// loginAll signs in to each server that nobody has signed in to, one after another, and says in one line what came of each.
func (p *program) loginAll(ctx context.Context, o *loginOptions, store *logins.Store, servers []upstream.Server) error {
	say := func(server, format string, args ...any) {
		text := server + ": " + fmt.Sprintf(format, args...)
		fmt.Fprintln(p.stderr, texts.Plain(strings.Join(strings.Fields(text), " "), false))
	}
	var errs []error
	for _, s := range servers {
		skipped, login, err := p.loginIfNeeded(ctx, o, store, s)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			f := loginFailure(s.Name, err)
			errs = append(errs, f)
			say(s.Name, "failed: %v; %s", err, hintOf(f))
		case skipped != "":
			say(s.Name, "skipped: %s", skipped)
		default:
			if err := p.reportLogin(login, func(text string) { say(s.Name, "ok: %s", text) }); err != nil {
				return err
			}
		}
	}
	if len(servers) == 0 {
		fmt.Fprintln(p.stderr, "the configuration has no server")
	}
	if len(errs) == 0 || p.json {
		return errors.Join(errs...)
	}
	return reportedStatus(statusOfAll(errs))
}

// loginIfNeeded signs in to a server, or says why it does not.
func (p *program) loginIfNeeded(ctx context.Context, o *loginOptions, store *logins.Store, s upstream.Server) (skipped string, login control.Login, err error) {
	if why := noPerson(s); why != "" {
		return why, login, nil
	}
	list, err := store.Of(s.Name, "")
	if err != nil {
		return "", login, configError("", err)
	}
	if l, _ := s.Endpoint.Login(list); l.Works(time.Now()) {
		return "already signed in", login, nil
	}
	login, err = p.loginTo(ctx, o, store, *s.Endpoint)
	if errors.Is(err, signin.ErrNotNeeded) {
		return worksWithout, login, nil
	}
	return "", login, err
}

// hintOf returns the hint of an error.
func hintOf(err error) string {
	f, _ := errors.AsType[*failure](err)
	if f == nil {
		return ""
	}
	return f.hint
}

// statusOfAll returns the exit status that all errors share, or that of a failed sign-in.
func statusOfAll(errs []error) int {
	status := exitAuth
	for i, err := range errs {
		f, _ := errors.AsType[*failure](err)
		switch {
		case f == nil, i > 0 && f.status != status:
			return exitAuth
		default:
			status = f.status
		}
	}
	return status
}

// person lets a person sign in: on another device if that is wanted or nothing else is possible, or else in a browser.
func (p *program) person(ctx context.Context, o *loginOptions, target *signin.Target, port int) (logins.Login, error) {
	_, missing := browser.Find(runtime.GOOS, p.env)
	if o.device || missing != nil && !o.noBrowser && target.CanDevice() {
		return p.onDevice(ctx, target)
	}
	listener, err := browser.Listen(port)
	switch {
	case err != nil && target.CanDevice() && port == 0:
		return p.onDevice(ctx, target)
	case err != nil:
		return logins.Login{}, portError(port, err)
	}
	attempt, err := target.Begin(ctx, listener.URI)
	if err != nil {
		return logins.Login{}, errors.Join(err, listener.Close())
	}
	p.invite(o, invitation{issuer: target.Issuer, address: attempt.URL, warning: target.Warning()})
	address, err := p.inBrowser(ctx, o, listener, attempt.Answers)
	if err != nil {
		return logins.Login{}, err
	}
	return attempt.Finish(ctx, address)
}

// portError is the error of a port that cannot be listened on.
func portError(port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d, its callbackPort, is in use: another mcsh login of the server may be waiting there: %w", port, err)
	}
	return err
}

func (p *program) onDevice(ctx context.Context, target *signin.Target) (logins.Login, error) {
	return target.Device(ctx, func(address, code string) {
		p.showInvitation(invitation{issuer: target.Issuer, address: address, code: code, warning: target.Moved()})
	})
}

// An invitation is what a person opens to sign in.
type invitation struct {
	issuer, address string
	code            string // to enter there, on any device; empty: none
	warning         string // empty: none
}

// invite shows an invitation, and opens its address in a browser if there is one and the flags do not say otherwise.
func (p *program) invite(o *loginOptions, i invitation) {
	opener, missing := browser.Find(runtime.GOOS, p.env)
	if missing != nil && p.env["BROWSER"] != "" && !o.noBrowser {
		fmt.Fprintf(p.stderr, "$BROWSER names no program that is there, so open the address yourself.\n")
	}
	p.showInvitation(i)
	if missing != nil || o.noBrowser {
		return
	}
	failed := func(err error) { // at any time
		fmt.Fprintf(p.stderr, "The browser could not be opened (%v). Open this address yourself:\n\n  %s\n\n", err, texts.Plain(i.address, false))
	}
	if err := opener.Open(i.address, failed); err != nil {
		failed(err)
	}
}

// showInvitation prints an invitation.
func (p *program) showInvitation(i invitation) {
	if i.warning != "" {
		fmt.Fprintf(p.stderr, "warning: %s\n", texts.Plain(i.warning, false))
	}
	where, issuer, address := "in a browser to sign in at "+i.issuer, texts.Plain(i.issuer, false), texts.Plain(i.address, false)
	if i.code != "" {
		fmt.Fprintf(p.stderr, "Open this address on any device to sign in at %s, and enter the code %s:\n\n  %s\n\n", issuer, texts.Plain(i.code, false), address)
		return
	}
	fmt.Fprintf(p.stderr, "Open this address %s:\n\n  %s\n\n", texts.Plain(where, false), address)
}

// errPasted ends the wait for the browser.
var errPasted = errors.New("the address was pasted")

// inBrowser waits for the browser, and for a person who pastes the address that it ended at. It returns that address.
func (p *program) inBrowser(ctx context.Context, o *loginOptions, listener *browser.Listener, right func(address string) bool) (string, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pasted := make(chan string, 1)
	if o.noBrowser || isTerminal(p.stdin) {
		fmt.Fprintln(p.stderr, "If the browser is on another machine, it ends at an address that does not open: paste that address here.")
		go p.readPasted(waiting, right, func(address string) {
			pasted <- address
			stop(errPasted)
		})
	}
	address, err := listener.Wait(waiting, right)
	if errors.Is(err, errPasted) {
		return <-pasted, nil
	}
	return address, err
}

// A loginCause is a cause of failed sign-ins, with what to do next. %s stands for the command that begins again.
type loginCause struct {
	is   func(error) bool
	hint string
}

// loginCauses is the table of causes; the first that fits counts.
var loginCauses = []loginCause{
	{refusedWith("access_denied"), "agree on the page of the issuer, or ask its administrator for access; %s begins again"},
	{refusedWith("invalid_client", "unauthorized_client"), "check oauth.clientId and oauth.clientSecret of the server; without them mcsh registers itself"},
	{refusedWith("invalid_scope"), "leave --scope out, or name scopes of the issuer in oauth.scopes"},
	{refusedWith("invalid_target"), "the issuer does not know the server by this address: compare url with what its operator says"},
	{refusedWith("invalid_redirect_uri", "invalid_client_metadata"), "register a client at the issuer by hand, and set oauth.clientId and oauth.callbackPort"},
	{refusedWith("invalid_grant"), "the code from the issuer was used, or came too late; %s begins again"},
	{refusedWith("server_error", "temporarily_unavailable"), "the issuer has a problem: try %s later"},
	{isType[*signin.Refusal], "ask the operator of the issuer; %s begins again"},
	{isType[*pending.StoreError], "correct that; %s begins again"},
	{tooLate, "open the address in a browser and sign in there; --wait gives more time, and --no-browser or --device is for a browser elsewhere"},
	{isError(syscall.EADDRINUSE), "end the other command, or change oauth.callbackPort and the registered address"},
	{isError(pending.ErrMany), "finish one of them, or wait until they end"},
	{isError(pending.ErrUnknown), "%s begins again"},
	{isType[*publicip.Refused], "if the sign-in belongs there, set oauth.issuer of the server"},
	{isType[*tls.CertificateVerificationError], "check the address; set tls.ca of the server if the certificate is of an authority of your own"},
	{isType[*net.DNSError], "check the host of url"},
	{isType[*net.OpError], "see whether the server and its issuer run, and whether url is right; then %s"},
	{isError(context.DeadlineExceeded), "the server or its issuer is slow: try %s later"},
}

// refusedWith fits refusals of an issuer with one of some codes.
func refusedWith(codes ...string) func(error) bool {
	return func(err error) bool {
		r, ok := errors.AsType[*signin.Refusal](err)
		return ok && slices.Contains(codes, r.Code)
	}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isError(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

// tooLate fits the end of a wait for a person.
func tooLate(err error) bool { return isType[nobody](err) || errors.Is(err, pending.ErrLate) }

// loginHint returns what to do after a failed sign-in.
func loginHint(server string, err error) string {
	again := "mcsh login " + texts.ShellWord(server)
	for _, c := range loginCauses {
		if c.is(err) {
			return strings.Replace(c.hint, "%s", again, 1)
		}
	}
	return "docs/sign-in.md says what servers and issuers have to offer; " + again + " begins again"
}

// loginFailure returns the error of a failed sign-in, with its hint and exit status.
func loginFailure(server string, err error) error {
	status := exitAuth
	switch {
	case errors.Is(err, context.Canceled), classified(err):
		return err
	case isType[*pending.StoreError](err):
		status = exitConfig
	}
	return &failure{status, fmt.Errorf("%s: %w", server, err), loginHint(server, err)}
}
