package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/exactjson"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/pins"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

// pinVariable with the value "on" stands for --pin.
const pinVariable = "MCSH_PIN"

// addPins sets what the pool does with tools that are new or have changed. Commands that keep no state look at that of others.
func (p *program) addPins(s settings, dir *state.Dir, o *upstream.Options) (err error) {
	value := cmp.Or(p.env[pinVariable], "off")
	if value != "on" && value != "off" {
		return configError("on holds back tools that are new or have changed; off, or nothing, does not", fmt.Errorf("%s=%s: want on or off", pinVariable, texts.Fit(value, 40)))
	}
	o.Pin, o.OnUntrusted = s.pin || value == "on", s.tools
	if s.look || o.Pin && !s.keeps {
		o.Look, err = p.lookAtState(s)
		return err
	}
	if o.Pin && dir == nil {
		return configError("name a directory that can be written with --state, or leave --pin out",
			errors.New("--pin compares tools with those of earlier starts, and there is no state directory that has them"))
	}
	return nil
}

// lookAtState opens the state directory if it exists.
func (p *program) lookAtState(s settings) (*state.Dir, error) {
	s.keeps = true
	path, _ := p.statePath(s)
	if info, err := os.Stat(filepath.Clean(path)); path == "" || err != nil || !info.IsDir() {
		return nil, nil
	}
	return state.Open(path)
}

// logTools returns a function that logs tools that are new or have changed.
func logTools(log *zap.Logger) func(pins.Change) {
	return func(c pins.Change) {
		fields := []zap.Field{zap.String("server", c.Server), zap.Strings("changed", c.Changed), zap.Strings("new", c.New), zap.Int("more", c.More)}
		switch {
		case c.Err != nil:
			log.Warn("the hashes of the tools of a server cannot be kept", zap.String("server", c.Server), zap.Bool("held_back", c.Held), zap.Error(c.Err))
		case c.Held:
			log.Warn("tools are held back: "+pins.AcceptCommand(c.Server, "")+" shows and accepts them", fields...)
		default:
			log.Warn("tools have changed: "+pins.AcceptCommand(c.Server, "")+" shows and accepts that", fields...)
		}
	}
}

const (
	maxShownTools = 50  // of a server, with what has changed
	maxDiffLines  = 200 // of one tool
	diffWidth     = 120 // characters of a line of a definition
)

func (p *program) toolsAcceptCommand() *cobra.Command {
	var s settings
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "accept [SERVER | SERVER/TOOL]...",
		Short: "Show tools that are new or have changed since they were first listed, and accept them",
		Long: `Show tools that are new or have changed since they were first listed, as the gateways with this state directory have seen
them, and accept them. Without --yes it asks, which needs a terminal. Running gateways offer accepted tools at once. No server is
started or asked.`,
		Example: "  mcsh tools accept github\n  mcsh tools accept github/create_issue --yes\n  mcsh tools accept --all",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.Flags().BoolVar(&all, "all", false, "of all servers")
	cmd.Flags().BoolVar(&yes, "yes", false, "accept without asking")
	accept := p.withTools(&s, func(ctx context.Context, x *dependencies, args []string) error {
		if path, _ := p.statePath(s); path == "" {
			return usageError("name the state directory of the gateway with --state", "there is no state directory, so no tool waits to be accepted")
		}
		if all {
			args = x.upstream.Servers(ctx)
		}
		return p.acceptTools(ctx, x.upstream, args, yes)
	})
	return command(cmd, func(ctx context.Context, args []string) error {
		if all != (len(args) == 0) {
			return usageError("mcsh tools accept --all is for all servers", "name servers or tools, or --all")
		}
		return accept(ctx, args)
	}, s.addSources, s.addState, completing(everyArgument, p.serverNames(&s)), p.jsonFlag("print one JSON object per tool, a line each; without --yes nothing is accepted"))
}

// acceptTools shows and accepts the tools of servers.
func (p *program) acceptTools(ctx context.Context, pool *upstream.Pool, names []string, yes bool) error {
	var servers []string // in their order, once each
	waiting := map[string][]pins.Pending{}
	n := 0
	for _, name := range names {
		server, tool, _ := strings.Cut(name, "/")
		list, err := pool.Pending(ctx, server)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(t pins.Pending) bool {
			return tool != "" && t.Tool != tool || slices.ContainsFunc(waiting[server], func(other pins.Pending) bool { return other.Tool == t.Tool })
		})
		if !slices.Contains(servers, server) {
			servers = append(servers, server)
		}
		waiting[server] = append(waiting[server], list...)
		n += len(list)
	}
	switch {
	case n == 0 && p.json:
		return nil
	case n == 0 && slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "/") }):
		p.print(nil, "none of these waits; without the name of a tool, all tools of a server that wait are shown\n")
		return nil
	case n == 0:
		p.print(nil, "nothing waits: no tool is new or has changed, as far as the gateways with this state directory have seen\n")
		return nil
	}
	for _, server := range servers {
		p.showPending(waiting[server], yes)
	}
	if !yes && (p.json || !p.agrees(texts.Count(n, "tool"))) {
		return nil
	}
	for _, server := range servers {
		missed, err := pool.Accept(ctx, server, waiting[server])
		if err != nil {
			return &failure{exitFailed, fmt.Errorf("accepting tools of %s: %w", server, err), "check the state directory"}
		}
		if len(missed) > 0 {
			return &failure{exitFailed, fmt.Errorf("%s of %s have changed again since, and were not accepted", texts.Count(len(missed), "tool"), server), "look at them again: " + pins.AcceptCommand(server, "")}
		}
	}
	if !p.json {
		p.print(nil, fmt.Sprintf("accepted: %s\n", texts.Count(n, "tool")))
	}
	return nil
}

// agrees asks on the terminal whether to accept.
func (p *program) agrees(what string) bool {
	if !isTerminal(p.stdin) {
		fmt.Fprintln(p.stderr, "nothing was accepted; --yes accepts it")
		return false
	}
	fmt.Fprintf(p.stderr, "accept %s? [y/N] ", what)
	answer, _ := bufio.NewReader(p.stdin).ReadString('\n')
	return slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}

type pendingJSON struct {
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	New      bool            `json:"new"`
	Was      json.RawMessage `json:"was,omitempty"`
	Is       json.RawMessage `json:"is,omitempty"`
	Accepted bool            `json:"accepted"`
}

// showPending shows the tools of one server. Each has its name; if there are many, only the first show what has changed.
func (p *program) showPending(tools []pins.Pending, accepted bool) {
	for i, t := range tools {
		text := fmt.Sprintf("%s: %s\n", texts.Plain(t.Server+"/"+t.Tool, false), map[bool]string{true: "new", false: "changed"}[t.New])
		if i < maxShownTools {
			text += pendingText(t)
		}
		p.print(pendingJSON{t.Server, t.Tool, t.New, t.Was, t.Is, accepted}, text)
	}
}

// pendingText shows the difference between the two definitions of a tool, as foreign text.
func pendingText(t pins.Pending) string {
	if t.Is == nil || t.Was == nil && !t.New {
		return "  (its definition is too long to be kept: mcsh tools show shows the one that is accepted, or without --pin the new one)\n"
	}
	was, is := definitionLines(t.Was), definitionLines(t.Is)
	if bytes.Equal(was, is) {
		return "  (the server lists two tools of this name now, or no longer)\n"
	}
	text := diff.Diff("accepted", was, "now", is)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	lines = lines[min(3, len(lines)):] // the names of the two
	more := len(lines) - maxDiffLines
	if more > 0 {
		lines = append(lines[:maxDiffLines], fmt.Sprintf("(and %d more lines: --json shows all)", more))
	}
	return gateway.Fenced(strings.Join(lines, "\n"))
}

// definitionLines are the members of a definition in lines for a person: no line is long, and none has characters that a terminal
// obeys. A member that is a string is shown as its text.
func definitionLines(definition json.RawMessage) []byte {
	var b bytes.Buffer
	members, _ := exactjson.List(definition) // nothing, if there is none
	for _, m := range members {
		var text string
		if json.Unmarshal(m.Value, &text) != nil {
			var indented bytes.Buffer
			_ = json.Indent(&indented, m.Value, "", "  ") // it is valid JSON
			text = indented.String()
		}
		fmt.Fprintf(&b, "%s:\n", texts.Plain(m.Name, false))
		for line := range strings.Lines(texts.Plain(text, true)) {
			for rest := []rune(strings.TrimSuffix(line, "\n")); ; rest = rest[diffWidth:] {
				fmt.Fprintf(&b, "  %s\n", string(rest[:min(diffWidth, len(rest))]))
				if len(rest) <= diffWidth {
					break
				}
			}
		}
	}
	return b.Bytes()
}
