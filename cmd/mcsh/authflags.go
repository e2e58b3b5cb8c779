package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/tokens"
)

// Variables that stand for flags of authentication that are not given: in a container they are easier to set.
const (
	tokensVariable = "MCSH_TOKENS"
)

// openPaths are what anybody may ask for: they say that the gateway is there, and nothing more.
var openPaths = []string{"/healthz", "/readyz"}

// authFlags say how callers show who they are.
type authFlags struct {
	tokens string

	flags *pflag.FlagSet // of the command; nil: it has none of these
}

func (a *authFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	a.flags = f
	f.StringVar(&a.tokens, "tokens", "", "file of those who may call it over HTTP, which mcsh token new writes ($"+tokensVariable+")")
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
	} {
		value, set := p.lookup(v.variable)
		from := "$" + v.variable
		if given := a.flags.Changed(v.flag); given || l.address == "" {
			value, set, from = *v.into, given, "--"+v.flag
		}
		if set && value == "" {
			return usageError("give it a value, or leave it out", "%s is empty: nobody would be asked who they are", from)
		}
		*v.into = value
	}
	return a.check(l)
}

// asks reports whether callers are asked who they are.
func (a *authFlags) asks() bool { return a.tokens != "" }

// check says whether the flags make sense together.
func (a *authFlags) check(l *listenFlags) error {
	switch {
	case !a.asks():
		return nil
	case l.address == "":
		return usageError("add --listen, or leave out what says who may call", "on standard input there is one client, and nobody is asked who they are")
	case l.noAuth:
		return usageError("leave one of them out", "--no-auth asks nobody who they are, and --tokens asks")
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
	if a.tokens != "" {
		file, err := tokens.Open(a.tokens, tokens.Options{
			Told:  func(text string) { log.Warn("--tokens: " + text) },
			Ended: ended,
		})
		if err != nil {
			return nil, nil, configError(tokens.Hint(err), fmt.Errorf("--tokens: %w", err))
		}
		if file.Len() == 0 {
			log.Warn("--tokens: nobody may call yet: there is no token in " + a.tokens + "; mcsh token new NAME --file " + a.tokens + " makes one")
		}
		g.Verifiers = append(g.Verifiers, file)
		following.Go(func() { file.Follow(ctx) })
	}
	return g, following.Wait, nil
}
