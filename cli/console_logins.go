package cli

import (
	"context"
	"sync"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/ui"
)

// consoleLogins answers for the sign-ins of a gateway that keeps them.
type consoleLogins struct {
	*shown

	mu    sync.Mutex
	begun map[string]func() // ends the last sign-in that a person has begun to a server; guarded by mu
}

// Logins implements [ui.Logins].
func (s *consoleLogins) Logins(ctx context.Context) (list []ui.LoginState, err error) {
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
// machine. It takes the place of one that the person has begun to the server before.
func (s *consoleLogins) Login(ctx context.Context, server string) (control.PendingLogin, error) {
	key := viewerOf(ctx).Caller + "\n" + server // no identity has a line break
	s.replace(key, nil)
	begun, err := s.source.BeginLogin(ctx, control.LoginRequest{Server: server})
	if err != nil || begun.Listen == nil {
		if err == nil {
			s.replace(key, func() { _ = s.source.CancelLogin(begun.ID) }) // it may have ended
		}
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
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	s.replace(key, end)
	go func() {
		defer end()
		_ = wait(life) // the page that lists the sign-ins shows what has come of it
	}()
	return control.PendingLogin{Server: server, Address: address}, nil
}

// replace ends what was begun under a key, and notes how the next one ends.
func (s *consoleLogins) replace(key string, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.begun[key]; before != nil {
		before()
	}
	if s.begun[key] = end; end == nil {
		delete(s.begun, key)
	}
}

// Logout implements [ui.Logins].
func (s *consoleLogins) Logout(ctx context.Context, server string) ([]control.Logout, error) {
	return s.source.Logout(ctx, control.LogoutRequest{Server: server})
}
