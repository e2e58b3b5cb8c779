package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/internal/publicip"
	"github.com/mcsh-dev/mcsh/upstream/pending"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// TestLoginHints: each cause of a failed sign-in has its own hint, also within other errors.
func TestLoginHints(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&signin.Refusal{Code: "access_denied"}, "agree on the page of the issuer"},
		{&signin.Refusal{Code: "invalid_client"}, "oauth.clientId"},
		{&signin.Refusal{Code: "invalid_scope"}, "--scope"},
		{&signin.Refusal{Code: "invalid_target"}, "compare url"},
		{&signin.Refusal{Code: "invalid_redirect_uri"}, "register a client"},
		{&signin.Refusal{Code: "invalid_grant"}, "came too late; mcsh login 'a b' begins again"},
		{&signin.Refusal{Code: "server_error"}, "try mcsh login 'a b' later"},
		{&signin.Refusal{Code: "anything"}, "ask the operator of the issuer"},
		{&pending.StoreError{Err: errors.New("full")}, "correct that"},
		{nobody(time.Minute), "--wait gives more time"},
		{syscall.EADDRINUSE, "end the other command"},
		{pending.ErrMany, "wait until they end"},
		{&publicip.Refused{What: "private"}, "set oauth.issuer"},
		{&tls.CertificateVerificationError{Err: errors.New("x509")}, "set tls.ca"},
		{&net.DNSError{Name: "x"}, "check the host of url"},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "see whether the server and its issuer run"},
		{context.DeadlineExceeded, "slow"},
		{errors.New("anything else"), "docs/sign-in.md"},
	} {
		got := loginHint("a b", fmt.Errorf("signing in: %w", c.err))
		if !strings.Contains(got, c.want) || strings.Contains(got, "%s") {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
		if other, twice := seen[got]; twice {
			t.Errorf("%v and %s have one hint", c.err, other)
		}
		seen[got] = c.err.Error()
	}
}

// TestLoginAllLines: each server has one line, with its own hint after a failure.
func TestLoginAllLines(t *testing.T) {
	s := newAuthorizationServer(t)
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}, "gone": {"url": "http://`+porttest.Free(t)+`/mcp"}, "program": {"command": "true"}}}`)
	t.Setenv(browses, "1")
	p.env = append(p.env, "BROWSER="+os.Args[0])
	p.run(exitAuth, "box: ok: signed in to box; scopes: read;", "login", "--all")
	lines := map[string]string{}
	for line := range strings.Lines(p.trace.String()) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.Contains(name, " ") {
			lines[name] = text
		}
	}
	for name, want := range map[string][2]string{
		"box": {"ok: ", ""}, "gone": {"failed: ", "see whether the server and its issuer run"}, "program": {"skipped: ", "no address"},
	} {
		if !strings.HasPrefix(lines[name], want[0]) || !strings.Contains(lines[name], want[1]) {
			t.Errorf("%s: %q, want %q", name, lines[name], want)
		}
	}
}

// TestLoginBrowser: a browser that is missing or fails leaves the address on the screen.
func TestLoginBrowser(t *testing.T) {
	s := newAuthorizationServer(t)
	for browser, want := range map[string]string{"none-of-this-name": "$BROWSER names no program that is there", "false": "The browser could not be opened"} {
		p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
		p.env = append(p.env, "BROWSER="+browser)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		screen := &watched{seen: make(chan string, 1), last: "\x00"}
		alongside(t, func() {
			for ctx.Err() == nil && (!strings.Contains(screen.String(), want) || !strings.Contains(screen.String(), s.URL+"/authorize?")) {
				time.Sleep(time.Millisecond)
			}
			if ctx.Err() != nil {
				t.Errorf("%s: want %q and the address in %s", browser, want, screen.String())
			}
			cancel()
		})
		if status := run(ctx, []string{"login", "box"}, strings.NewReader(""), io.Discard, screen, p.env); status != exitInterrupted {
			t.Errorf("%s: status %d", browser, status)
		}
	}
}

// TestLoginFlags: the help shows only flags that mean something.
func TestLoginFlags(t *testing.T) {
	p := newPerson(t, `{}`)
	for _, command := range []string{"login", "logout", "logins"} {
		p.run(0, "--gateway", command, "--help")
		for _, none := range []string{"--read-only", "--root", "--no-builtin"} {
			if strings.Contains(p.out.String(), none) {
				t.Errorf("mcsh %s --help shows %s", command, none)
			}
		}
	}
}
