package upstream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// A limiter stands before a server and refuses the first calls with some ids, with a 429 that says when to come back.
type limiter struct {
	next http.Handler
	wait time.Duration

	mu      sync.Mutex
	refused map[string]time.Time // by id of the item; guarded by mu
	early   int                  // calls that came back too soon; guarded by mu
}

func (l *limiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Method string
		Params struct{ Arguments struct{ ID json.Number } }
	}
	if r.Method == http.MethodPost && json.Unmarshal([]byte(peek(r)), &call) == nil && call.Method == "tools/call" && l.refuses(call.Params.Arguments.ID) {
		w.Header().Set("Retry-After", fmt.Sprint(l.wait.Seconds()))
		http.Error(w, "slow down", http.StatusTooManyRequests)
		return
	}
	l.next.ServeHTTP(w, r)
}

// refuses reports whether a call is the first one with an id that ends in 13.
func (l *limiter) refuses(id json.Number) bool {
	if !strings.HasSuffix(id.String(), "13") {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since, again := l.refused[id.String()]
	if !again {
		l.refused[id.String()] = time.Now()
	} else if time.Since(since) < l.wait {
		l.early++
	}
	return !again
}

// TestRateLimitedItems: a server behind a rate limit, with items that fail for good. Over real HTTP the order is kept, what
// stands for each item is exact, nobody comes back before the time, and a tool with effects is called once for each item.
func TestRateLimitedItems(t *testing.T) {
	t.Parallel() // it waits
	const wait = 500 * time.Millisecond
	n := parttest.Times(300, 1000)
	for _, tool := range []string{"look", "change"} {
		t.Run(tool, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]int{}
			u := mcptest.New(mcptest.Tool{
				Name: tool, ReadOnly: tool == "look", Destructive: tool == "change",
				Schema: `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`,
				Do: func(args map[string]any) (string, error) {
					id := fmt.Sprint(args["id"])
					mu.Lock()
					seen[id]++
					mu.Unlock()
					if strings.HasSuffix(id, "7") {
						return "", errors.New("record " + id + " is corrupt")
					}
					return `{"id":` + id + `}`, nil
				},
			})
			server := u.HTTP(t, nil)
			l := &limiter{next: server.Config.Handler, wait: wait, refused: map[string]time.Time{}}
			server.Config.Handler = l
			p := staticPool(t, upstream.Options{}, upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{URL: server.URL})})

			attempts := map[string]int{"look": 2, "change": 1}[tool]
			var input, want strings.Builder
			for i := range n {
				fmt.Fprintln(&input, i)
				if i%10 == 7 {
					fmt.Fprintf(&want, `{"item":"%d","error":{"code":"TOOL_ERROR","message":"record %d is corrupt","attempts":%d,"index":%d}}`+"\n", i, i, attempts, i+1)
				} else {
					fmt.Fprintf(&want, `{"item":"%d","result":{"id":%d}}`+"\n", i, i)
				}
			}
			out, report := limited(t, p, `[{"type":"tool","server":"s","name":"`+tool+`","for_each":true,"concurrency":32,"retries":1,"on_error":"collect","with_item":true,"collect":"lines"}]`, input.String())
			if out != want.String() {
				t.Errorf("the output is not what it must be: %.300s", out)
			}
			if got := report.Stages[0]; got.OK != int64(n*9/10) || got.Failed != int64(n/10) || got.Retried != int64(n/100) || got.Retries != int64(n/100+n/10*(attempts-1)) {
				t.Errorf("report: %+v", got)
			}
			if l.early != 0 || len(l.refused) != n/100 {
				t.Errorf("%d calls were refused, want %d; %d came back too soon", len(l.refused), n/100, l.early)
			}
			for id, times := range seen {
				if want := 1 + (attempts-1)*map[bool]int{true: 1}[strings.HasSuffix(id, "7")]; times != want {
					t.Errorf("item %s came to the tool %d times, want %d", id, times, want)
				}
			}
		})
	}
}

func limited(t *testing.T, p *upstream.Pool, pipeline, input string) (string, stages.Report) {
	t.Helper()
	plan, flaws := stages.CompileFed(t.Context(), []byte(pipeline), stages.Deps{Tools: p})
	if flaws != nil {
		t.Fatal(flaws)
	}
	var out strings.Builder
	report, err := plan.Run(t.Context(), strings.NewReader(input), &out, stages.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), report
}
