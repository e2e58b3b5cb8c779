package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
)

// groupVariable replaces --group.
const groupVariable = "MCSH_GROUP"

// A groupFlag names the only group of servers that a gateway serves.
type groupFlag struct {
	name  string // empty: all servers
	flags *pflag.FlagSet
}

func (g *groupFlag) add(cmd *cobra.Command) {
	g.flags = cmd.Flags()
	g.flags.StringVar(&g.name, "group", "", "serve only this group of servers of the configuration (default: all servers; $"+groupVariable+")")
}

// resolve takes the name from the variable if the flag is not given. A value that is set but empty is an error: it must not
// serve all servers.
func (g *groupFlag) resolve(p *program) error {
	given, from := g.flags.Changed("group"), "--group"
	if value, set := p.env[groupVariable]; set && !given {
		g.name, given, from = value, true, "$"+groupVariable
	}
	if given && strings.TrimSpace(g.name) == "" {
		return usageError("give it a value, or leave it out", "%s is empty", from)
	}
	return nil
}

// check refuses a group that is not there, and warns of servers in groups that are not there.
func (g *groupFlag) check(ctx context.Context, pool *upstream.Pool, log *zap.Logger) error {
	for _, note := range pool.GroupNotes(ctx) {
		log.Warn(note)
	}
	names := convert(pool.Groups(ctx), func(g upstream.Group) string { return g.Name })
	if g.name == "" || slices.Contains(names, g.name) {
		return nil
	}
	there := `write {"groups": {"NAME": ["SERVER"]}} into the configuration`
	if len(names) > 0 {
		there = "the configuration has " + strings.Join(names, ", ")
	}
	return configError(there, fmt.Errorf("--group %s: there is no such group of servers", texts.Quote(g.name)))
}

// describeGroups adds a finding for each group.
func (d *diagnosis) describeGroups(ctx context.Context, pool *upstream.Pool) {
	for _, g := range pool.Groups(ctx) {
		names := pool.Servers(upstream.WithView(ctx, pool.View(g.Name)))
		d.add(statusOK, "", "the group %s, at /mcp/%s, has %s", g.Name, g.Name, cmp.Or(strings.Join(names, ", "), "no server at present"))
	}
	for _, note := range pool.GroupNotes(ctx) {
		d.add(statusWarning, "", "%s", note)
	}
}
