package main

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
)

// Variables that stand for flags of authentication that are not given: in a container they are easier to set.
const (
	tokensVariable   = "MCSH_TOKENS"
	issuerVariable   = "MCSH_OIDC_ISSUER"
	audienceVariable = "MCSH_OIDC_AUDIENCE"
	scopeVariable    = "MCSH_OIDC_SCOPE"
	nameVariable     = "MCSH_OIDC_NAME"
	publicVariable   = "MCSH_PUBLIC_URL"
)

// openPaths are what anybody may ask for: they say that the gateway is there, and nothing more.
var openPaths = []string{"/healthz", "/readyz"}

// authFlags say how callers show who they are.
type authFlags struct {
	tokens                 string
	issuer, audience, name string
	scope                  string // with spaces between several
	public                 string

	flags *pflag.FlagSet // of the command; nil: it has none of these
}

func (a *authFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	a.flags = f
	f.StringVar(&a.tokens, "tokens", "", "file of those who may call it over HTTP, which mcsh token new writes ($"+tokensVariable+")")
	f.StringVar(&a.issuer, "oidc-issuer", "", "issuer (OpenID Connect) whose access tokens let callers in, such as https://login.example.com ($"+issuerVariable+")")
	f.StringVar(&a.audience, "oidc-audience", "", "what those tokens have to be meant for: their aud ($"+audienceVariable+")")
	f.StringVar(&a.scope, "oidc-scope", "", "what they have to be given for, several with spaces between them ($"+scopeVariable+")")
	f.StringVar(&a.name, "oidc-name", "", "claim by which logs call a caller, such as email (default: sub; $"+nameVariable+")")
	f.StringVar(&a.public, "public-url", "", "address at which clients see the gateway, such as https://mcp.example.com/mcp (default: their Host; $"+publicVariable+")")
	_ = cmd.MarkFlagFilename("tokens") // the flag exists
}

// settle takes what the variables say where flags do not, and looks whether all of it makes sense. What is given and empty
// is a mistake, not an open door.
func (a *authFlags) settle(p *program, l *listenFlags) error {
	if a.flags == nil {
		return nil
	}
	for _, v := range []struct {
		flag, variable string
		into           *string
	}{
		{"tokens", tokensVariable, &a.tokens},
		{"oidc-issuer", issuerVariable, &a.issuer},
		{"oidc-audience", audienceVariable, &a.audience},
		{"oidc-scope", scopeVariable, &a.scope},
		{"oidc-name", nameVariable, &a.name},
		{"public-url", publicVariable, &a.public},
	} {
		value, set := p.lookup(v.variable)
		from := "$" + v.variable
		if given := a.flags.Changed(v.flag); given || l.address == "" {
			value, set, from = *v.into, given, "--"+v.flag
		}
		if set && strings.TrimSpace(value) == "" {
			return usageError("give it a value, or leave it out", "%s is empty: what it is to ask of callers would not be asked", from)
		}
		*v.into = value
	}
	return a.check(l)
}

// asks reports whether callers are asked who they are.
func (a *authFlags) asks() bool { return a.tokens != "" || a.issuer != "" }

// check says whether the flags make sense together.
func (a *authFlags) check(l *listenFlags) error {
	oidcs := a.audience + a.scope + a.name
	switch {
	case a.issuer == "" && oidcs != "":
		return usageError("add --oidc-issuer, or leave out the others", "--oidc-audience, --oidc-scope and --oidc-name say what the tokens of an issuer have to be, and there is none")
	case a.issuer != "" && a.audience == "":
		return usageError("give the identifier of this gateway there, mostly its public address with /mcp",
			"--oidc-issuer needs --oidc-audience: without it a token for any other service of the issuer would let its holder in here")
	case a.asks() && l.address == "":
		return usageError("add --listen, or leave out what says who may call", "on standard input there is one client, and nobody is asked who they are")
	case a.asks() && l.noAuth:
		return usageError("leave one of them out", "--no-auth asks nobody who they are, and --tokens or --oidc-issuer asks")
	}
	return a.checkPublic()
}

// checkPublic looks at the public address, and takes the endpoint's path off.
func (a *authFlags) checkPublic() error {
	if a.public == "" {
		return nil
	}
	u, err := url.Parse(a.public)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return usageError("such as https://mcp.example.com/mcp", "--public-url is not an address of http or https with a host and a path alone")
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp")
	u.Host = strings.ToLower(u.Host)
	a.public = u.String()
	return nil
}

// publicHost is the name in the public address, which is one of the listener's.
func (a *authFlags) publicHost() []string {
	if u, err := url.Parse(a.public); err == nil && u.Hostname() != "" {
		return []string{u.Hostname()}
	}
	return nil
}

// guard makes what stands in front of the endpoint, or nil where nobody is asked. It follows what it depends on until ctx
// is done; wait returns after that.
func (a *authFlags) guard(ctx context.Context, log *zap.Logger, ended func(id string)) (g *auth.Guard, wait func(), err error) {
	var following sync.WaitGroup
	if !a.asks() {
		return nil, following.Wait, nil
	}
	g = &auth.Guard{Open: openPaths, Refused: func(r *http.Request, why *auth.Refusal) {
		log.Info("a request was not let in", zap.String("from", r.RemoteAddr), zap.String("method", r.Method),
			zap.Int("status", why.Status), zap.String("why", why.Text))
	}}
	var issuer *oidc.Issuer
	if a.issuer != "" { // before anything is followed: it can be wrong
		if issuer, err = a.openIssuer(log, g); err != nil {
			return nil, nil, err
		}
	}
	if a.tokens != "" {
		file, err := a.openTokens(log, ended)
		if err != nil {
			return nil, nil, err
		}
		g.Verifiers = append([]auth.Verifier{file}, g.Verifiers...)
		following.Go(func() { file.Follow(ctx) })
	}
	if issuer != nil {
		following.Go(func() { issuer.Follow(ctx) })
	}
	return g, following.Wait, nil
}

// openTokens reads the file of tokens.
func (a *authFlags) openTokens(log *zap.Logger, ended func(id string)) (*tokens.File, error) {
	file, err := tokens.Open(a.tokens, tokens.Options{
		Told:  func(text string) { log.Warn("--tokens: " + text) },
		Ended: ended,
	})
	if err != nil {
		return nil, configError(tokens.Hint(err), fmt.Errorf("--tokens: %w", err))
	}
	if file.Len() == 0 {
		log.Warn("--tokens: there is no token in " + a.tokens + ": nobody can call by one until mcsh token new NAME --file " + a.tokens + " makes it")
	}
	return file, nil
}

// openIssuer makes the issuer one whose tokens the guard takes.
func (a *authFlags) openIssuer(log *zap.Logger, g *auth.Guard) (*oidc.Issuer, error) {
	issuer, err := oidc.New(oidc.Options{
		Issuer: a.issuer, Audience: a.audience, Scopes: strings.Fields(a.scope), Name: a.name, Proxy: http.ProxyFromEnvironment,
		Told: func(text string) { log.Warn("--oidc-issuer: " + text) },
	})
	if err != nil {
		return nil, usageError("give it as the issuer's tokens name it (iss)", "--oidc-issuer: %w", err)
	}
	g.Verifiers = append(g.Verifiers, issuer)
	g.Resource = &auth.Resource{Issuer: a.issuer, Scopes: strings.Fields(a.scope), Public: a.public}
	return issuer, nil
}

// openly is what to say where tokens can be read on their way: where the gateway is reached from elsewhere and nothing says that
// something in front encrypts.
func (a *authFlags) openly(addr net.Addr) string {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil || !a.asks() || isLoopback(host) || strings.HasPrefix(a.public, "https://") {
		return ""
	}
	return "tokens are sent to this address without encryption, so that the network can read them: put something that speaks TLS in front, and name it with --public-url https://..."
}
