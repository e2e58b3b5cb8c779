package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream/logins"
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
		fmt.Fprintln(p.stderr, "nobody has signed in to any server; mcsh login SERVER does")
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
		place = ofGateway + place
	}
	fmt.Fprintf(p.stderr, "the tokens are in %s\n", gateway.Plain(place, false))
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
	store, err := p.requireStore(g.settings)
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
