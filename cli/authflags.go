package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/oidc"
	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream/signin"
)

// Environment variables for authentication flags, which other commands read too.
const (
	tokensVariable   = "MCSH_TOKENS"
	issuerVariable   = "MCSH_OIDC_ISSUER"
	audienceVariable = "MCSH_OIDC_AUDIENCE"
)

// authFlags select how callers authenticate.
type authFlags struct {
	tokens                 string
	issuer, audience, name string
	groups                 string // the claim
	scope                  string // space-separated
	public                 string
	secret                 string   // of that client; empty: it has none
	operator               string   // the claim and its word that make an operator
	client                 string   // of the issuer, for the console
	hosts                  []string // of public, under which the listener also accepts requests

	flags *pflag.FlagSet // of the command
}

// An authFlag is a flag with its variable, which is easier to set in a container.
type authFlag struct {
	value                 *string
	flag, variable, usage string // the usage ends with the variable
}

// table lists the flags.
func (a *authFlags) table() []authFlag {
	return []authFlag{
		{&a.tokens, "tokens", tokensVariable, "file with the tokens of HTTP callers, written by mcsh token new ("},
		{&a.issuer, "oidc-issuer", issuerVariable, "issuer (OpenID Connect) of the access tokens to accept, such as https://login.example.com ("},
		{&a.audience, "oidc-audience", audienceVariable, "audience that those tokens must have: their aud ("},
		{&a.scope, "oidc-scope", "MCSH_OIDC_SCOPE", "scopes that those tokens must have, separated by spaces ("},
		{&a.name, "oidc-name", "MCSH_OIDC_NAME", "claim that names a caller in logs, such as email (default: sub; "},
		{&a.groups, "oidc-groups-claim", "MCSH_OIDC_GROUPS_CLAIM", "claim with the groups of servers that a caller may use; a token without it may use none (default: callers have no groups; "},
		{&a.operator, "oidc-operator", "MCSH_OIDC_OPERATOR", "claim and word of those who see the runs of all callers in the console, such as roles=mcsh-operator (default: nobody; "},
		{&a.client, "oidc-client", "MCSH_OIDC_CLIENT", "client of the issuer with which people sign in to the console; its redirect address is that of the gateway with /signin/callback (default: they paste a token; "},
		{&a.public, "public-url", "MCSH_PUBLIC_URL", "address at which clients see the gateway, such as https://mcp.example.com/mcp (default: their Host; "},
	}
}

func (a *authFlags) add(cmd *cobra.Command) {
	a.flags = cmd.Flags()
	for _, row := range a.table() {
		a.flags.StringVar(row.value, row.flag, "", row.usage+"$"+row.variable+")")
	}
	_ = cmd.MarkFlagFilename("tokens") // the flag exists
}

// resolve takes values from the variables for flags that are not given, and checks them. A value that is set but empty is
// an error: it must not disable authentication.
func (a *authFlags) resolve(p *program, l *listenFlags) error {
	for _, row := range a.table() {
		given, from := a.flags.Changed(row.flag), "--"+row.flag
		if value, set := p.env[row.variable]; set && !given && l.address != "" {
			*row.value, given, from = value, true, "$"+row.variable
		}
		if given && strings.TrimSpace(*row.value) == "" {
			return usageError("give it a value, or leave it out", "%s is empty: callers would not be checked", from)
		}
	}
	a.secret = p.env[clientSecretVariable]
	return a.check(l)
}

// clientSecretVariable holds the secret of --oidc-client, if it has one. There is no flag: others see the arguments of a process.
const clientSecretVariable = "MCSH_OIDC_CLIENT_SECRET"

// enabled reports whether callers must authenticate.
func (a *authFlags) enabled() bool { return a.tokens != "" || a.issuer != "" }

// check refuses flags that contradict each other.
func (a *authFlags) check(l *listenFlags) error {
	oidcs := a.audience + a.scope + a.name + a.groups + a.operator + a.client
	switch {
	case a.issuer == "" && oidcs != "":
		return usageError("add --oidc-issuer, or leave out the others", "--oidc-audience, --oidc-scope, --oidc-name, --oidc-groups-claim, --oidc-operator and --oidc-client need an issuer")
	case a.issuer != "" && a.audience == "":
		return usageError("give the identifier of this gateway there, mostly its public address with /mcp",
			"--oidc-issuer needs --oidc-audience: without it a token for any other service of the issuer would be accepted here")
	case a.enabled() && l.address == "":
		return usageError("add --listen, or leave out the flags of authentication", "standard input has one client, which does not authenticate")
	case a.enabled() && l.noAuth:
		return usageError("leave one of them out", "--no-auth turns authentication off, and --tokens or --oidc-issuer turns it on")
	}
	return a.checkPublic()
}

// checkPublic checks the public address and removes the path of the endpoint from it.
func (a *authFlags) checkPublic() error {
	if a.public == "" {
		return nil
	}
	u, err := parseEndpoint("--public-url", a.public)
	if err != nil {
		return err
	}
	a.public, a.hosts = u.String(), []string{u.Hostname()}
	return nil
}

// parseEndpoint reads the address of a gateway from a flag, and leaves out the path of the endpoint.
func parseEndpoint(flag, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, usageError("such as https://mcp.example.com/mcp", "%s: want an http or https address with only a host and a path", flag)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp")
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// guard returns the authentication in front of the endpoint, or nil if there is none. It follows the file and the issuer
// until ctx is done; wait returns after that.
func (a *authFlags) guard(ctx context.Context, log *zap.Logger, ended func(id string)) (g *auth.Guard, wait func(), err error) {
	var following sync.WaitGroup
	if !a.enabled() {
		return nil, following.Wait, nil
	}
	open := []string{"/healthz", "/readyz"} // they only say that the gateway runs
	g = &auth.Guard{Open: open, Refused: logRefusal(log)}
	if a.tokens != "" {
		file, err := openTokens("--tokens", a.tokens, log, ended)
		if err != nil {
			return nil, following.Wait, err
		}
		g.Verifiers = append(g.Verifiers, file)
		following.Go(func() { file.Follow(ctx) })
	}
	if a.issuer != "" {
		issuer, err := a.openIssuer(log, g)
		if err != nil {
			return nil, following.Wait, err
		}
		following.Go(func() { issuer.Follow(ctx) })
	}
	return g, following.Wait, nil
}

// people returns the issuer with which people sign in to the console; nil: they paste a token.
func (a *authFlags) people(guard *auth.Guard) ui.Issuer {
	if guard == nil || a.client == "" {
		return nil
	}
	return &consoleIssuer{name: a.issuer, server: signin.Server{
		Name: "console", URL: a.issuer, HTTP: signin.NewHTTP(signin.Options{Server: a.issuer, Trusted: []string{a.issuer}, Proxy: http.ProxyFromEnvironment}),
		Settings: signin.Settings{
			Issuer: a.issuer, ClientID: a.client, ClientSecret: a.secret, Scopes: append([]string{"openid"}, strings.Fields(a.scope)...),
		},
	}, audience: a.audience}
}

// logRefusal logs a refused request.
func logRefusal(log *zap.Logger) func(*http.Request, *auth.Refusal) {
	return func(r *http.Request, why *auth.Refusal) {
		log.Info("a request was refused", zap.String("from", r.RemoteAddr), zap.String("method", r.Method),
			zap.Int("status", why.Status), zap.String("why", why.Text))
	}
}

// openTokens opens the file of a flag.
func openTokens(flag, path string, log *zap.Logger, ended func(id string)) (*tokens.File, error) {
	file, err := tokens.Open(path, tokens.Options{
		Notify: func(text string) { log.Warn(flag + ": " + text) },
		Ended:  ended,
	})
	if err != nil {
		return nil, configError(tokens.Hint(err), fmt.Errorf("%s: %w", flag, err))
	}
	if file.Len() == 0 {
		log.Warn(flag + ": there is no token in " + path + ": no caller can authenticate with one until mcsh token new NAME --file " + path + " makes it")
	}
	return file, nil
}

// openIssuer makes the issuer a verifier of the guard.
func (a *authFlags) openIssuer(log *zap.Logger, g *auth.Guard) (*oidc.Issuer, error) {
	issuer, err := oidc.New(oidc.Options{
		Issuer: a.issuer, Audience: a.audience, Scopes: strings.Fields(a.scope), Name: a.name, Groups: a.groups, Operator: a.operator, Proxy: http.ProxyFromEnvironment,
		Notify: func(text string) { log.Warn("--oidc-issuer: " + text) },
	})
	if err != nil {
		return nil, usageError("give it as the issuer's tokens name it (iss)", "--oidc-issuer: %w", err)
	}
	g.Verifiers = append(g.Verifiers, issuer)
	g.Resource = &auth.Resource{Issuer: a.issuer, Scopes: strings.Fields(a.scope), Public: a.public}
	return issuer, nil
}

// plaintextWarning returns a warning for a gateway with tokens if other machines can reach it and no proxy in front is known
// to encrypt.
func (a *authFlags) plaintextWarning(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil || isLoopback(host) || strings.HasPrefix(a.public, "https://") {
		return ""
	}
	return "clients send tokens to this address without encryption, and the network can read them: put a TLS proxy in front, and give its address with --public-url https://..."
}

// tokenLong is the long help of mcsh token.
const tokenLong = `Make, list and remove the tokens with which callers authenticate to mcsh serve --listen. The file holds a name and a
hash per line and no token, so a new token is printed only once. A gateway with --tokens FILE notices changes at once.`
