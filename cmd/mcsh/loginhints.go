package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/publicip"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/pending"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

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
