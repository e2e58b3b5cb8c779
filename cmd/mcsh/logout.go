package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

func (p *program) logoutCommand() *cobra.Command {
	var s settings
	var all bool
	cmd := &cobra.Command{
		Use:   "logout SERVER | --all",
		Short: "Sign out of a server",
		Long: `Sign out of a server: delete the tokens, and make the issuer revoke them where it offers that. Running gateways stop
using them with their next call. It also works for a server that is no longer in the configuration.`,
		Example: "  mcsh logout github\n  mcsh logout --all",
		Args:    serverOrAll(&all),
	}
	names := func(context.Context) []string {
		var names []string
		if store, err := p.openLogins(s); err == nil && store != nil {
			list, _ := store.All() // a completion cannot report an error
			names = slices.Compact(convert(list, func(l logins.Login) string { return l.Server }))
		}
		return names
	}
	return command(cmd, func(ctx context.Context, args []string) error { return p.logout(ctx, s, strings.Join(args, "")) },
		s.addSources, s.addState, func(cmd *cobra.Command) { cmd.Flags().BoolVar(&all, "all", false, "sign out of all servers") },
		completing(firstArgument, names), p.jsonFlag("print one JSON object per sign-in that was ended, a line each"))
}

// logout signs out of a server; "": of all.
func (p *program) logout(ctx context.Context, s settings, server string) error {
	store, err := p.requireStore(s)
	if err != nil {
		return err
	}
	all, err := store.All()
	if err != nil {
		return configError("", err)
	}
	list := slices.DeleteFunc(slices.Clone(all), func(l logins.Login) bool { return server != "" && l.Server != server })
	if len(list) == 0 && server != "" {
		names := slices.Compact(convert(all, func(l logins.Login) string { return l.Server }))
		return usageError(didYouMean("did you mean %s?", server, names, "mcsh logins lists the sign-ins"), "nobody has signed in to %s", texts.Quote(server))
	}
	if len(list) == 0 {
		fmt.Fprintln(p.stderr, "nobody has signed in to any server")
	}
	servers, wrong := p.configured(ctx, s)
	if wrong != nil {
		fmt.Fprintf(p.stderr, "warning: the configuration has mistakes; its certificates may be missing: %v\n", wrong)
	}
	deleted, err := deleteLogins(ctx, store, list)
	errs := []error{err}
	for _, l := range deleted {
		errs = append(errs, p.revoke(ctx, servers, l))
	}
	return cmp.Or(ctx.Err(), errors.Join(errs...))
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
func (p *program) revoke(ctx context.Context, servers []upstream.Server, l logins.Login) error {
	client := signin.NewHTTP(signin.Options{Server: l.Resource, Trusted: []string{l.Issuer}, Proxy: http.ProxyFromEnvironment})
	for _, s := range servers {
		if s.Name == l.Server && s.Endpoint != nil {
			if own, err := s.Endpoint.SignInServer(); err == nil {
				client = own.HTTP
			}
		}
	}
	said := "its issuer has revoked the tokens"
	err := signin.Revoke(ctx, client, l)
	switch {
	case !l.Ended.IsZero():
		said = "its issuer had ended the sign-in before"
	case errors.Is(err, signin.ErrNoRevocation):
		said = "its issuer revokes no tokens: those that are known to somebody work until they expire"
	case err != nil:
		said = fmt.Sprintf("its issuer could not be asked to revoke the tokens, which work until they expire: %v", err)
	}
	fmt.Fprint(p.stderr, gateway.Plain(fmt.Sprintf("signed out of %s: the tokens are deleted; %s", l.Server, said), false)+"\n")
	return p.print(logoutJSON{l.Server, l.Resource, l.Issuer, err == nil && l.Ended.IsZero()}, "")
}

// logoutJSON is a login that has ended.
type logoutJSON struct {
	Server   string `json:"server"`
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	Revoked  bool   `json:"revoked"` // by the issuer
}

// loginJSON is a login for people and programs, without its tokens.
type loginJSON struct {
	Server    string     `json:"server"`
	Resource  string     `json:"resource"`
	Issuer    string     `json:"issuer"`
	Account   string     `json:"account,omitempty"`
	Scopes    []string   `json:"scopes"`
	SignedIn  time.Time  `json:"signed_in"`
	Expires   *time.Time `json:"expires,omitempty"` // the access token
	Refreshed bool       `json:"refreshed"`         // before it expires
	Ended     *time.Time `json:"ended,omitempty"`   // the issuer has refused to refresh it
	Stored    string     `json:"stored"`
	Sealed    bool       `json:"sealed"`
}

func rowOf(l logins.Login, place string, sealed bool) loginJSON {
	return loginJSON{
		l.Server, l.Resource, l.Issuer, l.Account, append([]string{}, l.Scopes...), l.Made, timeOrNil(l.Expiry),
		l.RefreshToken != "", timeOrNil(l.Ended), place, sealed,
	}
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (p *program) loginsCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "logins",
		Short: "List the sign-ins: server, account, scopes and expiry",
		Long:  "List the sign-ins of mcsh login: server, account, scopes, expiry, and where the tokens are. It prints no tokens.",
		Args:  cobra.NoArgs,
	}
	return command(cmd, func(context.Context, []string) error { return p.listLogins(s) },
		s.addState, s.login.add, p.jsonFlag("print one JSON object per sign-in, a line each"))
}

func (p *program) listLogins(s settings) error {
	store, err := p.requireStore(s)
	if err != nil {
		return err
	}
	list, err := store.All()
	if err != nil {
		return configError("", err)
	}
	place, sealed, err := store.Place()
	if err != nil {
		return configError("", err)
	}
	if p.json {
		for _, l := range list {
			if err := p.print(rowOf(l, place, sealed), ""); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(p.stderr, "nobody has signed in to any server; mcsh login SERVER does")
		return nil
	}
	table := tabwriter.NewWriter(p.text, 0, 0, 2, ' ', 0)
	for _, l := range list {
		cells := []string{l.Server, cmp.Or(l.Account, "-"), cmp.Or(strings.Join(l.Scopes, " "), "-"), expiryText(l, time.Now())}
		fmt.Fprintln(table, strings.Join(convert(cells, func(cell string) string { return gateway.Plain(cell, false) }), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "the tokens are in %s\n", place)
	return nil
}
