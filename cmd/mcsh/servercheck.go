package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// checkServers reads the configuration, starts every server at the same time, and says what each offers.
func checkServers(ctx context.Context, d *diagnosis) []finding {
	pool, err := d.program.openUpstream(ctx, d.settings)
	if err != nil {
		return wrongConfig(err)
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	names := pool.Servers(ctx)
	found := make([][]finding, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			begun := time.Now()
			l := pool.Catalog(ctx, name)[0]
			found[i] = serverFindings(l, time.Since(begun))
		})
	}
	wg.Wait()
	var all []finding
	for _, f := range found {
		all = append(all, f...)
	}
	if len(names) == 0 {
		all = append(all, finding{Status: statusNote, Text: "there are no servers", Hint: "name some with --config FILE; mcsh import takes those of other clients"})
	}
	if err := pool.Close(); err != nil {
		all = append(all, finding{Status: statusWarning, Text: "closing the servers: " + err.Error()})
	}
	return all
}

// wrongConfig is a finding for each mistake.
func wrongConfig(err error) []finding {
	hint := ""
	if f, ok := errors.AsType[*failure](err); ok {
		hint = f.hint
	}
	var found []finding
	for line := range strings.Lines(err.Error()) {
		found = append(found, finding{Status: statusFailed, Text: strings.TrimSpace(line)})
	}
	found[len(found)-1].Hint = hint
	return found
}

// serverFindings say how one server is.
func serverFindings(l upstream.Listing, took time.Duration) []finding {
	if l.Err != nil {
		f := finding{Status: statusFailed, Text: l.Err.Error()}
		if e, ok := errors.AsType[*stages.Error](l.Err); ok {
			f.Text, f.Hint = e.Msg, e.Hint
		}
		return []finding{f}
	}
	reading := 0
	for _, t := range l.Tools {
		if t.ReadOnly {
			reading++
		}
	}
	text := fmt.Sprintf("%s: %s, %d of them only read", l.Server, countTools(len(l.Tools)), reading)
	if l.Refused > 0 {
		text += fmt.Sprintf("; %d more are not allowed", l.Refused)
	}
	if l.Protocol != "" {
		text += "; protocol " + l.Protocol
	}
	found := []finding{{Status: statusOK, Text: fmt.Sprintf("%s; %.1f s", text, took.Seconds())}}
	if l.Status == upstream.StatusDegraded {
		found[0].Status = statusWarning
	}
	if l.Note != "" {
		found = append(found, finding{Status: statusNote, Text: l.Server + ": " + l.Note})
	}
	return found
}

func countTools(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}
