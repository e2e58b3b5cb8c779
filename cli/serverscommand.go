package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/pins"
)

// noGateway says that there is none to ask.
const noGateway = "no gateway of this user is running with this state directory"

// A serverOf is a server of a gateway.
type serverOf struct {
	Gateway string `json:"gateway"`
	control.ServerDetail
}

func (p *program) serversCommand() *cobra.Command {
	enabled := func(status string) bool { return status != upstream.StatusDisabled }
	return group("servers", "Look at the servers of the running gateways; restart, disable and enable them",
		"Look at the servers of the running gateways of this user, restart them, and take them out of use for a while.",
		p.serversListCommand(), p.serversShowCommand(),
		p.serversDirectCommand(&cobra.Command{
			Use: "restart", Short: "Start servers anew, when their calls in flight have ended",
		}, "starts anew", (*control.Client).RestartServer, enabled),
		p.serversDirectCommand(&cobra.Command{
			Use: "disable", Short: "Take servers out of use until they are enabled, or their gateway ends",
			Long: `Take servers out of use in the running gateways. Their tools, resources and prompts leave all lists, a call of one is
refused, and their sessions end when the calls in flight have ended. A reload of the configuration changes nothing about it. A gateway
that starts again has the servers of its configuration: "disabled": true there leaves one out for good.`,
		}, "is disabled; calls in flight end first", (*control.Client).DisableServer, enabled),
		p.serversDirectCommand(&cobra.Command{
			Use: "enable", Short: "Put disabled servers into use again, and start them",
		}, "is enabled, and starts", (*control.Client).EnableServer, func(status string) bool { return !enabled(status) }))
}

// serversIn asks the selected gateways for a server, or for all for "". A gateway that has no such server is left out, unless all
// are like that.
func (g *gatewayFlags) serversIn(ctx context.Context, p *program, server string) ([]serverOf, map[string]error, error) {
	clients, err := g.some(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	lists, errs := askAll(clients, func(_ string, c *control.Client) ([]control.ServerDetail, error) { return c.ShowServers(ctx, server) })
	g.leaveOut(errs, len(lists))
	var all []serverOf
	for _, id := range slices.Sorted(maps.Keys(lists)) {
		all = append(all, convert(lists[id], func(s control.ServerDetail) serverOf { return serverOf{id, s} })...)
	}
	return all, errs, nil
}

// some returns the selected gateways, of which there is at least one.
func (g *gatewayFlags) some(ctx context.Context, p *program) (map[string]*control.Client, error) {
	clients, err := g.find(ctx, p)
	if err == nil && len(clients) == 0 {
		err = &failure{exitUnreachable, errors.New(noGateway), "mcsh serve starts one, and so do MCP clients"}
	}
	return clients, err
}

// leaveOut removes the errors of gateways that have ended, and those of gateways without a server that so many others have, or all
// of these but one.
func (g *gatewayFlags) leaveOut(errs map[string]error, others int) {
	g.leaveOutEnded(errs)
	for _, id := range slices.Sorted(maps.Keys(errs)) {
		e, ok := errors.AsType[*control.Error](errs[id])
		if ok && e.Status == http.StatusNotFound && others+len(errs) > 1 && g.gateway == "" {
			delete(errs, id)
		}
	}
}

func (p *program) serversListCommand() *cobra.Command {
	var g gatewayFlags
	cmd := &cobra.Command{
		Use: "ls", Short: "List the servers with their states, tools, calls and times", Args: gatewayByFlag,
		Long: `List the servers of the running gateways: state, transport, tools, calls and errors since the gateway has started, the times
within which half of the calls and 95 of 100 have ended, and the file and line that names the server.`,
		Example: "  mcsh servers ls\n  mcsh servers ls --json",
	}
	return command(cmd, func(ctx context.Context, _ []string) error {
		list, errs, err := g.serversIn(ctx, p, "")
		if err != nil {
			return err
		}
		for _, s := range list {
			err = errors.Join(err, p.print(s, ""))
		}
		if len(list) > 0 {
			err = errors.Join(err, p.printTable(serverTable(list)))
		}
		return errors.Join(err, p.printErrors(ctx, errs))
	}, g.add, p.jsonFlag("print one JSON object per server, a line each"))
}

// serverTable returns the rows of a table of servers, with their gateways if there are several, and how many columns are text.
func serverTable(list []serverOf) (rows [][]string, left int) {
	gateways := list[0].Gateway != list[len(list)-1].Gateway
	rows = [][]string{{"gateway", "server", "state", "transport", "configured in", "tools", "calls", "errors", "p50", "p95"}}
	for _, s := range list {
		tools := "-"
		if s.Tools != nil {
			tools = fmt.Sprint(*s.Tools)
		}
		rows = append(rows, []string{
			s.Gateway, s.Name, s.words(), s.Transport, cmp.Or(s.Where, "-"), tools, fmt.Sprint(s.Calls), fmt.Sprint(s.Errors), s.within(s.P50), s.within(s.P95),
		})
	}
	if gateways {
		return rows, 5
	}
	for i := range rows {
		rows[i] = rows[i][1:]
	}
	return rows, 4
}

// words describe the state of a server.
func (s serverOf) words() string {
	words := strings.TrimSpace(s.Status + " " + s.Code)
	if s.SignIn {
		words = "signed out"
	}
	if s.Changed > 0 {
		words += fmt.Sprintf(", %d changed", s.Changed)
	}
	return words
}

// within is a time of calls for people.
func (s serverOf) within(milliseconds float64) string {
	if s.Calls == 0 {
		return "-"
	}
	return ui.Duration(time.Duration(milliseconds * float64(time.Millisecond)))
}

func (p *program) serversShowCommand() *cobra.Command {
	var g gatewayFlags
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show what is known of a server, and why it has failed", Args: withFirst(cobra.ExactArgs(1)),
		Example: "  mcsh servers show github",
	}
	return command(cmd, func(ctx context.Context, args []string) error {
		list, errs, err := g.serversIn(ctx, p, args[0])
		if err != nil {
			return err
		}
		for _, s := range list {
			err = errors.Join(err, p.print(s, s.text(time.Now())))
		}
		return errors.Join(err, p.printErrors(ctx, errs))
	}, g.add, completing(firstArgument, p.runningServers(&g, func(string) bool { return true })), p.jsonFlag("print one JSON object per gateway, a line each"))
}

// text describes a server for people.
func (s serverOf) text(now time.Time) string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-10s %s\n", name, texts.Plain(text, false))
		}
	}
	fmt.Fprintf(&b, "server %s  %s\n", texts.Plain(s.Name, false), s.words())
	line("gateway", s.Gateway)
	line("configured", s.Where)
	line("transport", s.Transport)
	line("protocol", s.Protocol)
	if s.Started != nil {
		line("session", "for "+lasted(now, *s.Started))
	}
	if s.Tools != nil {
		line("tools", fmt.Sprint(*s.Tools))
	}
	if s.Changed > 0 {
		line("changed", texts.Count(s.Changed, "tool")+"; "+pins.AcceptCommand(s.Name, "")+" shows and accepts them")
	}
	line("calls", fmt.Sprintf("%d, with %s", s.Calls, texts.Count(s.Errors, "error")))
	if s.Calls > 0 {
		line("times", fmt.Sprintf("half within %s, 95 of 100 within %s", s.within(s.P50), s.within(s.P95)))
	}
	line("failure", s.Why)
	line("hint", s.Hint)
	if s.Stderr != "" {
		b.WriteString("Last lines of its standard error:\n" + gateway.Fenced(s.Stderr))
	}
	return b.String()
}

// directedJSON says what was done with a server of a gateway.
type directedJSON struct {
	Gateway string `json:"gateway"`
	Server  string `json:"server"`
	Did     string `json:"did"`
}

// serversDirectCommand returns a command that does something with servers of gateways. It completes the names of those whose state
// fits.
func (p *program) serversDirectCommand(
	cmd *cobra.Command, did string, act func(*control.Client, context.Context, string) error, fits func(status string) bool,
) *cobra.Command {
	var g gatewayFlags
	name := cmd.Use
	cmd.Use, cmd.Args = name+" NAME...", withFirst(cobra.ArbitraryArgs)
	cmd.Example = "  mcsh servers " + name + " github\n  mcsh servers " + name + " github --gateway k3vq7hd2mw"
	return command(cmd, func(ctx context.Context, args []string) error {
		clients, err := g.some(ctx, p)
		if err != nil {
			return err
		}
		for _, server := range args {
			done, errs := askAll(clients, func(_ string, c *control.Client) (bool, error) { return true, act(c, ctx, server) })
			g.leaveOut(errs, len(done))
			for _, id := range slices.Sorted(maps.Keys(done)) {
				text := fmt.Sprintf("gateway %s  %s %s\n", id, texts.Plain(server, false), did)
				err = errors.Join(err, p.print(directedJSON{id, server, name}, text))
			}
			err = errors.Join(err, p.printErrors(ctx, errs))
		}
		return err
	}, g.add, completing(everyArgument, p.runningServers(&g, fits)), p.jsonFlag("print one JSON object per gateway and server, a line each"))
}

// runningServers completes names of servers of the running gateways.
func (p *program) runningServers(g *gatewayFlags, fits func(status string) bool) completer {
	return func(ctx context.Context) (words []string) {
		list, _, _ := g.serversIn(ctx, p, "") // a completion cannot report an error
		for _, s := range list {
			if fits(s.Status) {
				words = append(words, s.Name+"\t"+s.words())
			}
		}
		return words
	}
}
