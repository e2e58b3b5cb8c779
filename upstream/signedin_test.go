package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/logins"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// clientDocument is where the suite expects the document about a client.
const clientDocument = "https://conformance-test.local/client-metadata.json"

// keptLogins keeps one login in memory.
type keptLogins struct {
	mu    sync.Mutex
	login *logins.Login
}

// Of implements [upstream.Logins].
func (k *keptLogins) Of(string, string) ([]logins.Login, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.login == nil {
		return nil, nil
	}
	return []logins.Login{*k.login}, nil
}

// Refresh implements [upstream.Logins].
func (k *keptLogins) Refresh(ctx context.Context, _ logins.Key, stale string, refresh func(context.Context, logins.Login) (logins.Login, error)) (logins.Login, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.login == nil {
		return logins.Login{}, logins.ErrNone
	}
	if k.login.AccessToken != stale {
		return *k.login, nil
	}
	fresh, err := refresh(ctx, *k.login)
	if err == nil {
		k.login = &fresh
	}
	return fresh, err
}

func (k *keptLogins) put(l logins.Login) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.login = &l
}

// signIn signs in as mcsh login does, with a browser that agrees to everything.
func (k *keptLogins) signIn(ctx context.Context, e upstream.Endpoint, scopes []string) error {
	server, err := e.SignInServer()
	if err != nil {
		return err
	}
	server.More = scopes
	if before, _ := k.Of("", ""); len(before) > 0 {
		server.More = append(before[0].Scopes, scopes...)
	}
	target, err := signin.Discover(ctx, server, "")
	if err != nil {
		return err
	}
	attempt, err := target.Begin(ctx, "http://127.0.0.1:3000/oauth/callback")
	if err != nil {
		return err
	}
	browser := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(attempt.URL)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.Header.Get("Location") == "" {
		return fmt.Errorf("the browser is not sent back: %s", answer.Status)
	}
	login, err := attempt.Finish(ctx, answer.Header.Get("Location"))
	if err != nil {
		return err
	}
	k.put(login)
	return nil
}
