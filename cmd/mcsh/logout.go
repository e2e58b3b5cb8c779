package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// logoutOptions are the flags of mcsh logout.
type logoutOptions struct {
	gatewayFlags
	all bool
}

func (o *logoutOptions) add(cmd *cobra.Command) {
	o.addConfigured(cmd)
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
	names := func(context.Context) []string {
		var names []string
		if store, err := p.openLogins(o.settings); err == nil && store != nil {
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
	store, err := p.requireStore(o.settings)
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
	fmt.Fprint(p.stderr, gateway.Plain(fmt.Sprintf("signed out of %s: the tokens are deleted; %s", l.Server, l.Note), false)+"\n")
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
