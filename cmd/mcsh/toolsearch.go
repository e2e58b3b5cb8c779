package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream"
)

// bestTools is how many tools a search prints where nobody says.
const bestTools = 10

func (p *program) toolsSearchCommand() *cobra.Command {
	var s settings
	var limit int
	cmd := &cobra.Command{
		Use:     "search WORDS...",
		Short:   "Find tools by what they do, the best first",
		Example: "  mcsh tools search open orders",
		Args:    cobra.MinimumNArgs(1),
		RunE: work(func(ctx context.Context, args []string) error {
			if limit < 1 {
				return usageError("leave it out for the best ten", "--limit %d is not above zero", limit)
			}
			return p.withTools(ctx, s, func(ctx context.Context, pool *upstream.Pool) error {
				return p.searchTools(ctx, pool, strings.Join(args, " "), limit)
			})
		}),
	}
	s.addSources(cmd)
	cmd.Flags().IntVar(&limit, "limit", bestTools, "how many to print at most")
	p.addJSON(cmd, "print one JSON object per tool, a line each")
	return cmd
}

// searchTools prints the tools that fit. Servers that do not answer are told: what is looked for may be theirs.
func (p *program) searchTools(ctx context.Context, pool *upstream.Pool, query string, limit int) error {
	waiting, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	listings := pool.Catalog(waiting)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	found := gateway.Search(listings, query)
	for _, t := range found[:min(limit, len(found))] {
		if err := p.printTool(t.Server, t.Tool); err != nil {
			return err
		}
	}
	var failed error
	for _, l := range listings {
		if l.Status != upstream.StatusReady && l.Status != upstream.StatusDegraded {
			if failed != nil {
				fmt.Fprint(p.stderr, lines(failed.Error(), ""))
			}
			failed = listingError(l)
		}
	}
	switch {
	case failed != nil:
		return failed
	case len(found) == 0:
		return &failure{exitFailed, fmt.Errorf("no tool fits %q", query), "mcsh tools ls lists all of them"}
	case len(found) > limit:
		fmt.Fprintf(p.stderr, "note: %d of %d tools that fit; --limit prints more\n", limit, len(found))
	}
	return nil
}
