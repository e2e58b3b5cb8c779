package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/gateway/history"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream"
)

// controlTokensVariable replaces --control-tokens.
const controlTokensVariable = "MCSH_CONTROL_TOKENS"

// controlResultsVariable replaces --control-results.
const controlResultsVariable = "MCSH_CONTROL_RESULTS"

// controlFlags configure who may control a gateway over HTTP.
type controlFlags struct {
	tokens  string
	results bool
	flags   *pflag.FlagSet // of the command
}

func (c *controlFlags) add(cmd *cobra.Command) {
	c.flags = cmd.Flags()
	c.flags.StringVar(&c.tokens, "control-tokens", "", "file with the tokens of those who may look at and reload this gateway, and sign in "+
		"to its servers, over HTTP, another one than that of --tokens (default: nobody; $"+controlTokensVariable+")")
	_ = cmd.MarkFlagFilename("control-tokens") // the flag exists
	c.flags.BoolVar(&c.results, "control-results", false, "those with --control-tokens also see the data of all callers' runs: plans, outputs, "+
		"messages ($"+controlResultsVariable+"=1)")
}

// resolve takes the file from the variable if the flag is not given. A value that is set but empty is an error.
func (c *controlFlags) resolve(p *program, l *listenFlags) error {
	given, from := c.flags.Changed("control-tokens"), "--control-tokens"
	if value, set := p.env[controlTokensVariable]; set && !given && l.address != "" {
		c.tokens, given, from = value, true, "$"+controlTokensVariable
	}
	if value := p.env[controlResultsVariable]; value != "" && !c.flags.Changed("control-results") && c.tokens != "" {
		var err error
		if c.results, err = strconv.ParseBool(value); err != nil {
			return usageError("set it to 1 or 0", "$%s=%s is neither yes nor no", controlResultsVariable, texts.Fit(value, 40))
		}
	}
	switch {
	case given && strings.TrimSpace(c.tokens) == "":
		return usageError("give it a value, or leave it out", "%s is empty", from)
	case given && l.address == "":
		return usageError("add --listen, or leave it out: on this machine mcsh gateways needs no token",
			"--control-tokens is for a gateway that listens")
	case c.results && c.tokens == "":
		return usageError("add --control-tokens FILE, or leave it out: on this machine mcsh runs needs no token", "--control-results is for those with --control-tokens")
	case c.tokens != "" && l.auth.tokens != "" && sameFile(c.tokens, l.auth.tokens):
		return usageError("mcsh token new NAME --file ANOTHER makes a token that only controls",
			"--tokens and --control-tokens are one file: all who may call tools could control the gateway")
	}
	return nil
}

// sameFile reports whether two paths lead to one file.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	first, err := os.Stat(a)
	second, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(first, second)
}

// handler returns the API for other machines, behind its authentication; nil: there is none.
func (c *controlFlags) handler(source control.Source, log *zap.Logger) (http.Handler, error) {
	if c.tokens == "" {
		return nil, nil
	}
	file, err := openTokens("--control-tokens", c.tokens, log, nil)
	if err != nil {
		return nil, err
	}
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{file}, Refused: logRefusal(log),
		Advice: "it needs one of --control-tokens, another one than for calls of tools; its operator makes it with: mcsh token new NAME --file FILE",
	}
	return guard.Protect(auth.Unlimited(http.StripPrefix(control.Prefix, control.Handler(source, control.Viewer{All: true, Results: c.results})))), nil
}

// withControl adds the API for other machines to the paths of h, if there is one.
func withControl(api, h http.Handler) http.Handler {
	if api == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, control.Prefix+"/") {
			api.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// controlled answers the requests of the control API.
type controlled struct {
	*signIns
	*history.History
	controlledServers
	about control.Gateway
}

var _ control.Source = (*controlled)(nil)

// controlled describes a gateway that serves on listeners, or on standard input and output.
func (p *program) controlled(s settings, x gatewayParts) *controlled {
	state, _ := p.statePath(s)
	servers := controlledServers{x.parts.upstream, x.monitor.metrics, x.log}
	c := &controlled{signIns: x.logins, History: x.gateway.History(), controlledServers: servers, about: control.Gateway{
		ID: gatewayID(s.instance), Version: version(), PID: os.Getpid(), Started: time.Now().UTC().Truncate(time.Millisecond),
		Transport: "stdio", State: absolute(state), Directory: absolute("."), Configs: convert(p.configFiles(s), absolute), Group: s.group.name,
	}}
	if len(x.listeners) > 0 {
		c.about.Transport, c.about.Address = "http", endpointOf(x.listeners[0].Addr())
	}
	return c
}

// gatewayID returns the id of the gateway with an instance, which is random.
func gatewayID(instance string) string { return strings.ToLower(instance[:10]) }

// absolute returns the absolute form of a path, or "" for "".
func absolute(path string) string {
	full, err := filepath.Abs(path)
	if path == "" || err != nil {
		return path
	}
	return full
}

// Gateway implements [control.Source].
func (c *controlled) Gateway() control.Gateway {
	about := c.about
	for _, g := range c.pool.Groups(context.Background()) { // the sources were read before it serves
		if about.Group == "" || about.Group == g.Name {
			about.Groups = append(about.Groups, g.Name)
		}
	}
	return about
}

// Servers implements [control.Source].
func (c *controlled) Servers() []control.Server {
	return convert(c.pool.Statuses(), func(s upstream.ServerStatus) control.Server {
		return control.Server{Name: s.Server, Status: s.Status, Code: string(s.Code), Where: s.Where}
	})
}

// Reload implements [control.Source].
func (c *controlled) Reload(ctx context.Context) (control.Change, error) {
	change, err := c.pool.Reload(ctx)
	if err != nil {
		return control.Change{}, err
	}
	shown := control.Change{Added: orEmpty(change.Added), Removed: orEmpty(change.Removed), Restarted: orEmpty(change.Restarted), Groups: change.Groups}
	if change.Err != nil {
		shown.Error = c.pool.Hide(change.Err.Error())
	}
	return shown, nil
}

// orEmpty returns a list that JSON does not write as null.
func orEmpty(list []string) []string { return append([]string{}, list...) }

// serveControl serves the control socket of a gateway until close. Without a state directory there is none. A gateway whose
// socket cannot be made serves all the same.
func (p *program) serveControl(s settings, source *controlled, console *ui.Console, log *zap.Logger) (end func()) {
	state, _ := p.statePath(s)
	if state == "" {
		return func() {}
	}
	socket, err := control.Listen(state, source.about.ID)
	if err != nil {
		log.Warn("mcsh gateways and mcsh reload do not see this gateway", zap.Error(err))
		return func() {}
	}
	if console != nil {
		base := func(r *http.Request) string { return r.Header.Get(baseHeader) } // mcsh console of the same user
		socket.Pages(gateway.WithDeadlines(console.Handler(ui.Door{Base: base})))
	}
	socket.Serve(source)
	return func() {
		if err := socket.Close(); err != nil {
			log.Warn("the control socket was not closed well", zap.Error(err))
		}
	}
}
