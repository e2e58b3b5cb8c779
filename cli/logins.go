package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

func (p *program) loginsCommand() *cobra.Command {
	var g gatewayFlags
	cmd := &cobra.Command{
		Use:   "logins",
		Short: "List the sign-ins: server, account, scopes and expiry",
		Long:  "List the sign-ins of mcsh login: server, account, scopes, expiry, and where the tokens are. It prints no tokens.",
		Args:  cobra.NoArgs,
	}
	add := func(cmd *cobra.Command) {
		g.add(cmd)
		g.store.add(cmd)
		cmd.Flags().Lookup("gateway").Usage = "those of this running gateway: its id, or the URL of one of another machine that has --control-tokens"
	}
	return command(cmd, func(ctx context.Context, _ []string) error { return p.listLogins(ctx, &g) },
		add, g.login.add, p.jsonFlag("print one JSON object per sign-in, a line each"))
}

func (p *program) listLogins(ctx context.Context, g *gatewayFlags) error {
	list, err := p.loginsOf(ctx, g)
	if err != nil {
		return err
	}
	if p.json {
		for _, l := range list {
			if err := p.print(l, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(p.stderr, "nobody has signed in to any server; to sign in, run mcsh login SERVER")
		return nil
	}
	rows := convert(list, func(l control.Login) []string {
		return []string{l.Server, cmp.Or(l.Account, "-"), cmp.Or(strings.Join(l.Scopes, " "), "-"), expiryText(l, time.Now())}
	})
	if err := p.printTable(rows, 4); err != nil {
		return err
	}
	place := list[0].Stored
	if g.flags.Changed("gateway") {
		place = ofGateway(place)
	}
	fmt.Fprintf(p.stderr, "the tokens are in %s\n", texts.Plain(place, false))
	return nil
}

// loginsOf returns the sign-ins of a running gateway, or of the state directory.
func (p *program) loginsOf(ctx context.Context, g *gatewayFlags) ([]control.Login, error) {
	if g.flags.Changed("gateway") {
		client, err := g.one(ctx, p)
		if err != nil {
			return nil, err
		}
		list, err := client.Logins(ctx)
		return list, gatewayFailure(err)
	}
	store, err := p.requireStore(ctx, g.settings)
	if err != nil {
		return nil, err
	}
	return storedLogins(store)
}

// storedLogins describes all logins of a store.
func storedLogins(store *logins.Store) ([]control.Login, error) {
	list, err := store.All()
	if err != nil {
		return nil, configError("", err)
	}
	place, sealed, err := store.Place()
	if err != nil {
		return nil, configError("", err)
	}
	return convert(list, func(l logins.Login) control.Login { return rowOf(l, place, sealed) }), nil
}

// rowOf describes a login without its tokens.
func rowOf(l logins.Login, place string, sealed bool) control.Login {
	return control.Login{
		Server: l.Server, Resource: l.Resource, Issuer: l.Issuer, Account: l.Account, Scopes: append([]string{}, l.Scopes...),
		SignedIn: l.Made, Expires: timeOrNil(l.Expiry), Refreshed: l.RefreshToken != "", Ended: timeOrNil(l.Ended), Stored: place, Sealed: sealed,
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// describe returns a login of the store for people and programs.
func describe(store *logins.Store, l logins.Login) (control.Login, error) {
	place, sealed, err := store.Place()
	if err != nil {
		return control.Login{}, configError("", err)
	}
	return rowOf(l, place, sealed), nil
}

// signedIn says what the person has now.
func (p *program) signedIn(ctx context.Context, s settings, l control.Login) error {
	if err := p.reportLogin(l, func(text string) { fmt.Fprintln(p.stderr, text) }); err != nil {
		return err
	}
	p.sayPlace(l, "this command and the gateway")
	p.sayGateways(ctx, s, l.Server)
	return nil
}

// reportLogin prints a new login, and says its text.
func (p *program) reportLogin(l control.Login, say func(text string)) error {
	if err := p.print(l, ""); err != nil {
		return err
	}
	as := ""
	if l.Account != "" {
		as = " as " + l.Account
	}
	say(texts.Plain(fmt.Sprintf("signed in to %s%s; scopes: %s; %s", l.Server, as,
		cmp.Or(strings.Join(l.Scopes, " "), "those of the issuer"), expiryText(l, time.Now())), false))
	return nil
}

// sayPlace says where the tokens are. whose are the programs that need the key.
func (p *program) sayPlace(l control.Login, whose string) {
	fmt.Fprintf(p.stderr, "the tokens are in %s\n", texts.Plain(l.Stored, false))
	if !l.Sealed {
		fmt.Fprintf(p.stderr, "note: this file is not sealed; to seal it, give --token-key-file to %s\n", whose)
	}
}

// expiryText says how long a login lasts, for people.
func expiryText(l control.Login, now time.Time) string {
	renewed := ", and is refreshed before that"
	if !l.Refreshed {
		renewed = "; nothing refreshes it"
	}
	switch {
	case l.Ended != nil:
		return "signed out: run mcsh login " + texts.ShellWord(l.Server)
	case l.Expires == nil:
		return "the access token has no known end"
	case !l.Refreshed && !l.Expires.After(now):
		return "expired: run mcsh login " + texts.ShellWord(l.Server)
	}
	return "the access token ends at " + l.Expires.Local().Format(time.RFC3339) + renewed
}

// gatewayWait bounds the questions to running gateways.
const gatewayWait = 5 * time.Second

// sayGateways names the running gateways that have a server. They read the new login with their next request.
func (p *program) sayGateways(ctx context.Context, s settings, server string) {
	if shared := s.store; shared.resolve(p) == nil && shared.logins {
		fmt.Fprintln(p.stderr, "all gateways with this store and --store-logins use the sign-in from the next second on")
		return
	}
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
	fmt.Fprintf(p.stderr, "%d of %s with this state directory have a server of this name; the sign-in counts from the next call on\n",
		n, texts.Count(len(clients), "gateway"))
}

// logoutOptions are the flags of mcsh logout.
type logoutOptions struct {
	gatewayFlags
	all bool
}

func (o *logoutOptions) add(cmd *cobra.Command) {
	o.addConfigured(cmd)
	o.store.add(cmd)
	o.gatewayFlags.add(cmd)
	cmd.Flags().Lookup("gateway").Usage = "sign this running gateway out: its id, or the URL of one of another machine that has --control-tokens"
	cmd.Flags().BoolVar(&o.all, "all", false, "sign out of all servers")
}

func (p *program) logoutCommand() *cobra.Command {
	var o logoutOptions
	cmd := &cobra.Command{
		Use:   "logout SERVER | --all",
		Short: "Sign out of a server",
		Long: `Sign out of a server: delete the tokens, and make the issuer revoke them where it offers that. Running gateways stop
using them with their next call. It also works for a server that is no longer in the configuration.`,
		Example: "  mcsh logout github\n  mcsh logout --all",
		Args:    serverOrAll(&o.all),
	}
	names := func(ctx context.Context) []string {
		var names []string
		if store, err := p.openLogins(ctx, o.settings); err == nil && store != nil {
			list, _ := store.All() // a completion cannot report an error
			names = slices.Compact(convert(list, func(l logins.Login) string { return l.Server }))
		}
		return names
	}
	return command(cmd, func(ctx context.Context, args []string) error { return p.logout(ctx, &o, strings.Join(args, "")) },
		o.add, completing(firstArgument, names), p.jsonFlag("print one JSON object per sign-in that was ended, a line each"))
}

// logout signs out of a server; "": of all.
func (p *program) logout(ctx context.Context, o *logoutOptions, server string) error {
	if o.flags.Changed("gateway") {
		return p.logoutInGateway(ctx, o, server)
	}
	store, err := p.requireStore(ctx, o.settings)
	if err != nil {
		return err
	}
	servers, wrong := p.configured(ctx, o.settings)
	if wrong != nil {
		fmt.Fprintf(p.stderr, "warning: the configuration has mistakes; its certificates may be missing: %v\n", wrong)
	}
	err = endLogins(ctx, store, servers, server, p.signedOut)
	if errors.Is(err, errNobodySignedIn) && server == "" {
		fmt.Fprintln(p.stderr, err)
		return nil
	}
	return cmp.Or(ctx.Err(), err)
}

// signedOut reports a login that has ended.
func (p *program) signedOut(l control.Logout) error {
	fmt.Fprint(p.stderr, texts.Plain(fmt.Sprintf("signed out of %s: the tokens are deleted; %s", l.Server, l.Note), false)+"\n")
	return p.print(l, "")
}

// errNobodySignedIn is the error of a logout without logins.
var errNobodySignedIn = errors.New("nobody has signed in to any server")

// endLogins signs out of a server, or of all if it is empty, and reports each login that has ended. All are deleted before an
// issuer is asked.
func endLogins(ctx context.Context, store *logins.Store, servers []upstream.Server, server string, report func(control.Logout) error) error {
	all, err := store.All()
	if err != nil {
		return configError("", err)
	}
	list := slices.DeleteFunc(slices.Clone(all), func(l logins.Login) bool { return server != "" && l.Server != server })
	switch {
	case len(list) == 0 && server != "":
		names := slices.Compact(convert(all, func(l logins.Login) string { return l.Server }))
		return usageError(didYouMean("did you mean %s?", server, names, "mcsh logins lists the sign-ins"), "nobody has signed in to %s", texts.Quote(server))
	case len(list) == 0:
		return errNobodySignedIn
	}
	deleted, err := deleteLogins(ctx, store, list)
	errs := []error{err}
	for _, l := range deleted {
		errs = append(errs, report(revoke(ctx, servers, l)))
	}
	return errors.Join(errs...)
}

// deleteLogins deletes logins and returns them with their last tokens, because the store waits for refreshes. One that cannot be
// deleted does not stop it.
func deleteLogins(ctx context.Context, store *logins.Store, list []logins.Login) (deleted []logins.Login, err error) {
	var errs []error
	for _, l := range list {
		gone, err := store.Delete(ctx, l.Key)
		switch {
		case err == nil:
			deleted = append(deleted, gone)
		case !errors.Is(err, logins.ErrNone): // another process was faster
			errs = append(errs, configError("", err))
		}
	}
	return deleted, errors.Join(errs...)
}

// revoke makes the issuer end a login that is already deleted, and says how that went.
func revoke(ctx context.Context, servers []upstream.Server, l logins.Login) control.Logout {
	out := control.Logout{Server: l.Server, Resource: l.Resource, Issuer: l.Issuer, Note: "its issuer has revoked the tokens"}
	err := revoker(servers, l).Revoke(ctx, l)
	switch {
	case !l.Ended.IsZero():
		out.Note = "its issuer had ended the sign-in before"
	case errors.Is(err, signin.ErrNoRevocation):
		out.Note = "its issuer revokes no tokens: those that are known to somebody work until they expire"
	case err != nil:
		out.Note = fmt.Sprintf("its issuer could not be asked to revoke the tokens, which work until they expire: %v", err)
	default:
		out.Revoked = true
	}
	return out
}

// revoker is the server of a login as it is configured. For one that is not, only public addresses are asked: the login is a
// record in a file, and names any.
func revoker(servers []upstream.Server, l logins.Login) signin.Server {
	for _, s := range servers {
		if s.Name != l.Server || s.Endpoint == nil || !signin.Covers(l.Resource, s.Endpoint.URL) {
			continue
		}
		if own, err := s.Endpoint.SignInServer(); err == nil {
			return own
		}
	}
	return signin.Server{HTTP: signin.NewHTTP(signin.Options{Proxy: http.ProxyFromEnvironment})}
}

// Variables that replace the flags of sign-ins.
const (
	tokenKeyVariable       = "MCSH_TOKEN_KEY_FILE"
	clientMetadataVariable = "MCSH_CLIENT_METADATA_URL"
)

// loginFlags say where tokens of sign-ins are sealed, and how mcsh introduces itself to authorization servers.
type loginFlags struct {
	keyFile        string
	clientMetadata string
}

func (l *loginFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.keyFile, "token-key-file", "", "file with the key (32 bytes) that seals the tokens of mcsh login (default: the keyring; $"+tokenKeyVariable+")")
	f.StringVar(&l.clientMetadata, "client-metadata-url", "", "address of the document that describes this client to authorization servers ($"+clientMetadataVariable+")")
	_ = cmd.MarkFlagFilename("token-key-file") // the flag exists
}

// stores are the stores that a program has opened, by their settings. Those of logins close with the program.
type stores struct {
	mu      sync.Mutex
	open    map[[2]string]*logins.Store // guarded by mu
	shared  map[storeFlags]store.Store  // guarded by mu
	metrics *observe.StoreMetrics       // of the shared store; nil without one
}

// openLogins opens the store of logins; nil without a state directory and without a shared store that has them.
func (p *program) openLogins(ctx context.Context, s settings) (*logins.Store, error) {
	shared, keyFile := s.store, cmp.Or(s.login.keyFile, p.env[tokenKeyVariable])
	if err := shared.resolve(p); err != nil {
		return nil, err
	}
	if shared.logins {
		return p.openSharedLogins(ctx, shared, keyFile)
	}
	s.keeps = true // commands that keep nothing else, such as doctor, use logins too
	state, _ := p.statePath(s)
	if state == "" {
		return nil, nil
	}
	dir := filepath.Join(state, "logins")
	return once(&p.stores.mu, &p.stores.open, [2]string{dir, keyFile}, func() (*logins.Store, error) {
		store, err := logins.Open(dir, logins.Options{KeyFile: keyFile, Keyring: p.keyring()})
		if err != nil {
			return nil, configError("fix that, or name another state directory with --state; docs/sign-in.md says more", err)
		}
		return store, nil
	})
}

// openSharedLogins opens the logins in the store that gateways share.
func (p *program) openSharedLogins(ctx context.Context, f storeFlags, keyFile string) (*logins.Store, error) {
	if keyFile != "" {
		return nil, usageError("leave --token-key-file and $"+tokenKeyVariable+" out",
			"with --store-logins the sign-ins are sealed as the store is, with --store-key-file, and there is a --token-key-file, too")
	}
	objects, err := f.open(ctx, p)
	if err != nil {
		return nil, err
	}
	return once(&p.stores.mu, &p.stores.open, [2]string{f.at}, func() (*logins.Store, error) { return logins.OpenShared(objects, f.at), nil })
}

// once returns what was opened with a key, which it opens the first time.
func once[K comparable, V any](mu *sync.Mutex, opened *map[K]V, key K, open func() (V, error)) (V, error) {
	mu.Lock()
	defer mu.Unlock()
	if there, ok := (*opened)[key]; ok {
		return there, nil
	}
	fresh, err := open()
	if err != nil {
		return fresh, err
	}
	if *opened == nil {
		*opened = map[K]V{}
	}
	(*opened)[key] = fresh
	return fresh, nil
}

// closeStores waits for refreshes that have begun.
func (p *program) closeStores() {
	p.stores.mu.Lock()
	defer p.stores.mu.Unlock()
	for _, store := range p.stores.open {
		if err := store.Close(); err != nil {
			fmt.Fprintln(p.stderr, "warning:", err)
		}
	}
}

// keyring returns the keyring of the user; nil: the environment has none. Without a session bus the library would start one.
func (p *program) keyring() logins.Keyring {
	if runtime.GOOS == "darwin" && p.env["HOME"] == os.Getenv("HOME") || p.env["DBUS_SESSION_BUS_ADDRESS"] != "" {
		return logins.System{}
	}
	if dir := p.env["XDG_RUNTIME_DIR"]; dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "bus")); err == nil {
			return logins.System{}
		}
	}
	return nil
}

// noteLogins says if the directory of sign-ins cannot be used, which concerns only hosted servers.
func (p *program) noteLogins(ctx context.Context, s settings) {
	if len(p.configFiles(s)) == 0 {
		return
	}
	if store, err := p.openLogins(ctx, s); err == nil && store != nil && store.Usable() != nil {
		fmt.Fprintf(p.stderr, "mcsh: servers are called without sign-ins (--state %s if this is intended): %v\n", stateOff, store.Usable())
	}
}
