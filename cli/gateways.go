package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// gatewayTokenVariable holds a token for the gateway of --gateway URL.
const gatewayTokenVariable = "MCSH_GATEWAY_TOKEN"

// maxTokenFile bounds the file of a token, in bytes.
const maxTokenFile = 1 << 20

// gatewayFlags select running gateways: all of this user, one of them, or one of another machine.
type gatewayFlags struct {
	settings
	gateway   string
	tokenFile string
	flags     *pflag.FlagSet // of the command
}

func (g *gatewayFlags) add(cmd *cobra.Command) {
	g.addState(cmd)
	f := cmd.Flags()
	g.flags = f
	f.StringVar(&g.gateway, "gateway", "",
		"one gateway: its id, or the URL of one of another machine that has --control-tokens (default: all of this user)")
	f.StringVar(&g.tokenFile, "gateway-token-file", "",
		"file with the token for --gateway URL (default: $"+gatewayTokenVariable+")")
	_ = cmd.MarkFlagFilename("gateway-token-file") // the flag exists
}

// gatewayByFlag refuses arguments: people give the id of a gateway as one.
func gatewayByFlag(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError("for one gateway: --gateway "+texts.ShellWord(args[0]), "%s takes no argument", cmd.CommandPath())
}

// find returns the selected gateways by their ids.
func (g *gatewayFlags) find(ctx context.Context, p *program) (map[string]*control.Client, error) {
	if strings.Contains(g.gateway, "://") {
		client, err := g.remote(ctx, p)
		if err != nil {
			return nil, err
		}
		return map[string]*control.Client{g.gateway: client}, nil
	}
	if g.gateway == "" && g.flags.Changed("gateway") {
		return nil, usageError("give an id or an address, or leave it out", "--gateway is empty")
	}
	if g.tokenFile != "" {
		return nil, usageError("give --gateway URL, or leave it out", "--gateway-token-file is for a gateway of another machine")
	}
	state, _ := p.statePath(g.settings)
	if state == "" {
		return nil, usageError("name the state directory of the gateways with --state",
			"gateways without a state directory have no control socket")
	}
	found, err := control.Find(state)
	if err != nil && len(found) == 0 {
		return nil, configError("name another state directory with --state, or correct the owner or the mode of this one", err)
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "warning: %v\n", err)
	}
	if g.gateway == "" {
		return found, nil
	}
	client := found[g.gateway]
	if client == nil {
		return nil, &failure{
			exitUnreachable, fmt.Errorf("no gateway of this user has the id %s", texts.Quote(g.gateway)),
			didYouMean("did you mean %s?", g.gateway, slices.Collect(maps.Keys(found)),
				"mcsh gateways lists them; an address begins with http:// or https://"),
		}
	}
	return map[string]*control.Client{g.gateway: client}, nil
}

// remote returns the client of a gateway of another machine.
func (g *gatewayFlags) remote(ctx context.Context, p *program) (*control.Client, error) {
	token := p.env[gatewayTokenVariable]
	if g.tokenFile != "" {
		data, err := namedfile.ReadOnce(ctx, g.tokenFile, maxTokenFile)
		if err != nil {
			return nil, configError("name a file with one token", fmt.Errorf("--gateway-token-file: %w", err))
		}
		token = string(data)
	}
	token = strings.TrimSpace(token)
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return nil, usageError("give one with --gateway-token-file FILE or $"+gatewayTokenVariable+
			"; the operator of that gateway makes it with mcsh token new NAME --file FILE", "--gateway URL needs one token")
	}
	u, err := parseEndpoint("--gateway", g.gateway)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = headerBytes
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		fmt.Fprintln(p.stderr, "warning: the token goes over the network without encryption; use https")
	}
	return control.Remote(u.String(), token, transport), nil
}

// gatewaysAtOnce bounds the gateways that are asked at the same time.
const gatewaysAtOnce = 8

// askAll asks gateways at the same time, and returns their answers and errors by id.
func askAll[T any](
	clients map[string]*control.Client, ask func(id string, c *control.Client) (T, error),
) (map[string]T, map[string]error) {
	var mu sync.Mutex
	answers, errs := map[string]T{}, map[string]error{}
	var asking errgroup.Group
	asking.SetLimit(gatewaysAtOnce)
	for id, client := range clients {
		asking.Go(func() error {
			answer, err := ask(id, client)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[id] = err
			} else {
				answers[id] = answer
			}
			return nil
		})
	}
	_ = asking.Wait() // the errors are in errs
	return answers, errs
}

// leaveOutEnded removes the errors of gateways that have ended meanwhile, unless the flag names one.
func (g *gatewayFlags) leaveOutEnded(errs map[string]error) {
	if g.gateway == "" {
		maps.DeleteFunc(errs, func(_ string, err error) bool { return errors.Is(err, control.ErrEnded) })
	}
}

// gatewayJSON is a gateway with what it does.
type gatewayJSON struct {
	control.Gateway
	Servers []control.Server `json:"servers"`
	Runs    []control.Run    `json:"runs"`
}

// silentJSON is a gateway that gives no answer.
type silentJSON struct {
	ID    string `json:"id"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func (p *program) gatewaysCommand() *cobra.Command {
	var g gatewayFlags
	cmd := &cobra.Command{
		Use:   "gateways",
		Short: "List the running gateways, their servers and their runs",
		Long: `List the running gateways of this user, also those that clients have started, with the states of their servers and
the runs in progress. They are found in the state directory: a gateway with another one needs --state, and one with
--state off is not found.`,
		Example: "  mcsh gateways\n  mcsh gateways --json\n" +
			"  mcsh gateways --gateway https://mcp.example.com/mcp --gateway-token-file token",
		Args: gatewayByFlag,
	}
	return command(cmd, func(ctx context.Context, _ []string) error { return p.listGateways(ctx, &g) },
		g.add, p.jsonFlag("print one JSON object per gateway, a line each"))
}

func (p *program) listGateways(ctx context.Context, g *gatewayFlags) error {
	clients, err := g.find(ctx, p)
	if err != nil {
		return err
	}
	answers, errs := askAll(clients, func(_ string, c *control.Client) (row gatewayJSON, err error) {
		if row.Gateway, err = c.Gateway(ctx); err != nil {
			return row, err
		}
		if row.Servers, err = c.Servers(ctx); err != nil {
			return row, err
		}
		row.Runs, err = c.Live(ctx)
		return row, err
	})
	g.leaveOutEnded(errs)
	rows := slices.SortedFunc(maps.Values(answers), func(a, b gatewayJSON) int {
		return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
	})
	for _, row := range rows {
		if err := p.print(row, gatewayText(row, time.Now())); err != nil {
			return err
		}
	}
	if len(rows)+len(errs) == 0 && !p.json {
		fmt.Fprintln(p.stderr, noGateway)
	}
	return p.printErrors(ctx, errs)
}

// printErrors prints the errors of gateways, and returns the exit status for them.
func (p *program) printErrors(ctx context.Context, errs map[string]error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status := 0
	for _, id := range slices.Sorted(maps.Keys(errs)) {
		err, hint := errs[id], hintOfGateway(errs[id])
		status = max(status, statusOfGateway(err))
		if p.json {
			p.print(silentJSON{id, err.Error(), hint}, "")
			continue
		}
		fmt.Fprint(p.stderr, errorText(err, hint))
	}
	if status == 0 {
		return nil
	}
	return reportedStatus(status)
}

// statusOfGateway returns the exit status for the error of a gateway.
func statusOfGateway(err error) int {
	e, ok := errors.AsType[*control.Error](err)
	switch {
	case !ok || e.Status == 0:
		return exitUnreachable
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return exitAuth
	}
	return exitFailed
}

// hintOfGateway returns the hint for the error of a gateway; "": there is none.
func hintOfGateway(err error) string {
	e, ok := errors.AsType[*control.Error](err)
	_, network := errors.AsType[*net.OpError](err)
	switch {
	case ok && e.Status == http.StatusNotFound && e.Hint == "":
		return "start it with --control-tokens, or correct the address"
	case ok:
		return e.Hint
	case errors.Is(err, control.ErrEnded):
		return "mcsh gateways lists those that run"
	case network:
		return "start the gateway there, or correct the address"
	}
	return ""
}

// gatewayText describes a gateway for people.
func gatewayText(g gatewayJSON, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "gateway %s  pid %d  %s  for %s  mcsh %s\n",
		g.ID, g.PID, cmp.Or(g.Address, g.Transport), lasted(now, g.Started), g.Version)
	fmt.Fprintf(&b, "  in %s\n", g.Directory)
	for _, path := range g.Configs {
		fmt.Fprintf(&b, "  configured by %s\n", path)
	}
	if len(g.Groups) > 0 {
		fmt.Fprintf(&b, "  groups %s\n", strings.Join(g.Groups, ", "))
	}
	width := 0
	for _, s := range g.Servers {
		width = max(width, columnsOf(s.Name))
	}
	for _, s := range g.Servers {
		fmt.Fprintf(&b, "  server %s  %s\n", padded(s.Name, width), strings.TrimSpace(s.Status+" "+s.Code))
	}
	for _, r := range g.Runs {
		caller, dry := "", ""
		if r.Caller != "" {
			caller = "  of " + r.Caller
		}
		if r.DryRun {
			dry = "  (a dry run)"
		}
		fmt.Fprintf(&b, "  run %s%s  %s  for %s%s\n",
			r.Request, caller, texts.Count(r.Stages, "stage"), lasted(now, r.Started), dry)
	}
	return b.String()
}

// lasted returns the time from a moment to now, for people.
func lasted(now, since time.Time) string { return max(0, now.Sub(since)).Round(time.Second).String() }

// reloadJSON is the change of a gateway.
type reloadJSON struct {
	ID string `json:"id"`
	control.Change
}

func (p *program) reloadCommand() *cobra.Command {
	var g gatewayFlags
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make the running gateways read their configuration again",
		Long: `Make the running gateways of this user read their configuration files again, and print what has changed. A gateway
notices a changed file by itself; reload says at once what it makes of it. Calls in flight finish.`,
		Example: "  mcsh reload\n  mcsh reload --gateway k3vq7hd2mw",
		Args:    gatewayByFlag,
	}
	return command(cmd, func(ctx context.Context, _ []string) error { return p.reloadGateways(ctx, &g) },
		g.add, p.jsonFlag("print one JSON object per gateway, a line each"))
}

func (p *program) reloadGateways(ctx context.Context, g *gatewayFlags) error {
	clients, err := g.find(ctx, p)
	if err != nil {
		return err
	}
	if len(clients) == 0 && !p.json {
		fmt.Fprintln(p.stderr, noGateway)
	}
	changes, errs := askAll(clients, func(_ string, c *control.Client) (control.Change, error) { return c.Reload(ctx) })
	g.leaveOutEnded(errs)
	wrong := false
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		c := changes[id]
		if err := p.print(reloadJSON{id, c}, "gateway "+id+"  "+changeText(c)+"\n"); err != nil {
			return err
		}
		if wrong = wrong || c.Error != ""; c.Error != "" && !p.json {
			err := fmt.Errorf("gateway %s: %s", id, c.Error)
			fmt.Fprint(p.stderr, errorText(err, "the configuration before stays in use until this is fixed"))
		}
	}
	if err := p.printErrors(ctx, errs); err != nil || !wrong {
		return err
	}
	return reportedStatus(exitConfig)
}

// changeText describes a change for people.
func changeText(c control.Change) string {
	var parts []string
	for _, part := range []struct {
		word  string
		names []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"restarted", c.Restarted}} {
		if len(part.names) > 0 {
			parts = append(parts, part.word+" "+strings.Join(part.names, ", "))
		}
	}
	if c.Groups {
		parts = append(parts, "other groups")
	}
	if len(parts) == 0 && c.Error != "" {
		return "keeps its servers"
	}
	return cmp.Or(strings.Join(parts, "; "), "nothing has changed")
}
