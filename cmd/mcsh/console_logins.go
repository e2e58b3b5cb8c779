package main

import (
	"context"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/ui"
)

// consoleLogins answers for the sign-ins of a gateway that keeps them.
type consoleLogins struct{ *shown }

// Logins implements [ui.Logins].
func (s consoleLogins) Logins(ctx context.Context) (list []ui.LoginState, err error) {
	pool, ctx := s.pool(ctx)
	kept, err := s.source.Logins()
	needed := map[string]bool{}
	for _, l := range pool.Looks(ctx) {
		needed[l.Server] = l.SignIn
	}
	for _, server := range pool.Configured(ctx) {
		if _, sees := needed[server.Name]; !sees || noPerson(server) != "" {
			continue
		}
		state := ui.LoginState{Server: server.Name, Needed: needed[server.Name]}
		for i := range kept {
			if kept[i].Server == server.Name {
				state.Login = &kept[i]
			}
		}
		list = append(list, state)
	}
	return list, err
}

// Login implements [ui.Logins]. Where the gateway has no pages that an issuer can lead back to, the sign-in goes on at a page of this
// machine.
func (s consoleLogins) Login(ctx context.Context, server string) (control.PendingLogin, error) {
	begun, err := s.source.BeginLogin(ctx, control.LoginRequest{Server: server})
	if err != nil || begun.Listen == nil {
		return begun, err
	}
	target, err := s.source.server(ctx, server, nil)
	if err != nil {
		return begun, s.source.failed(server, err)
	}
	address, wait, err := s.source.Here(ctx, target)
	if err != nil {
		return begun, s.source.failed(server, err)
	}
	go func() { _ = wait(context.WithoutCancel(ctx)) }() // the page that lists the sign-ins shows what has come of it
	return control.PendingLogin{Server: server, Address: address}, nil
}

// Logout implements [ui.Logins].
func (s consoleLogins) Logout(ctx context.Context, server string) ([]control.Logout, error) {
	return s.source.Logout(ctx, control.LogoutRequest{Server: server})
}
