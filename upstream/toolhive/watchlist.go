package toolhive

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/mcsh-dev/mcsh/upstream"
)

// A teller is the API that a list comes from.
type teller struct {
	host    string // where the proxies of its workloads are
	certain bool   // whose it is, so that secrets may go where it says
}

// A watchlist is which workloads there are, as far as it is believed.
type watchlist struct {
	now   []Workload // sorted by name
	from  teller
	doubt map[string]bool // that were of use and have vanished from one list
}

// take believes a new list, sorted by name, except that a server which worked is not given up for what one list says:
// it has to be gone, or down, in two that follow each other. It reports whether anything has changed, and whether it
// is in doubt about something.
func (l *watchlist) take(list []Workload, from teller) (changed, inDoubt bool) {
	doubt := map[string]bool{}
	next := slices.Clone(list)
	for _, old := range l.now {
		i, there := slices.BinarySearchFunc(next, old, byName)
		if standingOf(old).part != use || there && standingOf(next[i]).part == use || l.doubt[old.Name] {
			continue
		}
		doubt[old.Name] = true
		if there {
			next[i] = old
		} else {
			next = slices.Insert(next, i, old)
		}
	}
	same := func(a, b Workload) bool { return a.Name == b.Name && revision(a) == revision(b) }
	changed = from != l.from && len(l.now) > 0 || !slices.EqualFunc(l.now, next, same)
	l.now, l.from, l.doubt = next, from, doubt
	return changed, len(doubt) > 0
}

// byName orders workloads.
func byName(a, b Workload) int { return cmp.Compare(a.Name, b.Name) }

// revision is what of a workload makes it another server when it changes.
func revision(w Workload) string {
	s := standingOf(w)
	if s.part == use {
		return w.URL + "\n" + w.ProxyMode + "\n" + w.TransportType + "\n" + w.Created
	}
	return w.Status + "\n" + s.why
}

// server makes a server of a workload.
func (o *Options) server(w Workload, from teller) upstream.Server {
	s := upstream.Server{Name: w.Name, Where: "ToolHive", Found: true, Version: fmt.Sprintln(revision(w), from)}
	headers := http.Header{}
	for _, h := range o.Headers {
		if !matches(h.Workload, w.Name) {
			continue
		}
		maps.Copy(headers, h.Header)
		for _, values := range h.Header {
			s.Secrets = append(s.Secrets, values...)
		}
	}
	standing := standingOf(w)
	if standing.part != use {
		s.Dial = upstream.Down(standing.why, standing.hint)
		return s
	}
	if len(headers) > 0 && !from.certain { // whoever answers there would be given them for a name
		s.Dial = upstream.Down("its headers are not sent to a workload of a ToolHive whose owner is not certain", "give the address of ToolHive's API with --toolhive")
		return s
	}
	address, sse, err := addressOf(w, from.host)
	if err != nil {
		s.Dial = upstream.Down(err.Error(), "see thv list; thv restart "+w.Name+" may help")
		return s
	}
	s.Dial = upstream.HTTP(upstream.Endpoint{
		URL: address, Headers: headers, Proxy: o.Proxy, LegacySSE: sse, MaxMessage: o.MaxMessage,
		Where: "ToolHive's workload " + w.Name,
	})
	return s
}

// spread takes a wait up to a fifth shorter or longer, so that many gateways do not ask at the same moment.
func spread(d time.Duration) time.Duration {
	fifth := max(d/5, 1)
	return d - fifth + rand.N(2*fifth)
}

// pause waits, and reports whether the time is over rather than ctx.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
