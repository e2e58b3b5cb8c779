// Package demo is an MCP server over a small invented shop, which depends only on the seed: orders and customers to
// query, lists with pages, tools that are slow or fail, a picture, and notes to write. It is for first steps and tests,
// and keeps everything in memory.
package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

// Options are the settings of the server. The zero value answers at once.
type Options struct {
	Latency time.Duration `json:"latency" usage:"every call takes at least this long, such as 20ms; at most a minute"`
	Seed    int64         `json:"seed" usage:"of the data and of the failures"`
}

const longestWait = time.Minute

const instructions = `A made-up shop: 200 orders of 40 customers, the same at every start. ` +
	`list_orders and get_customer are the data; get_page, slow, flaky and picture show how a gateway deals with such tools; ` +
	`add_note writes to a list in memory.`

// New makes the server. Servers share nothing.
func New(o Options) (*tool.Opened, error) {
	if o.Latency < 0 || o.Latency > longestWait {
		return nil, fmt.Errorf("option latency is %v, want 0 to %v", o.Latency, longestWait)
	}
	seed := uint64(o.Seed)
	s := &server{
		shop:   newShop(rand.New(rand.NewPCG(seed, 1))),
		seed:   seed,
		chance: rand.New(rand.NewPCG(seed, 2)),
	}
	shop := tool.Server{
		Name: "demo", Title: "A made-up shop", Instructions: instructions,
		Tools: append(s.shop.tools(), s.slow(), s.flaky(), s.picture(), s.notes.add(), s.notes.list()),
	}
	if o.Latency > 0 {
		shop.Before = func(ctx context.Context) error { return pausing.For(ctx, o.Latency) }
	}
	return tool.Open(shop)
}
