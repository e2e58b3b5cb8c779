package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

// counted is a server that counts its sessions and the requests for its list.
func counted(u *mcptest.Upstream) (starts, lists *atomic.Int32) {
	starts, lists = new(atomic.Int32), new(atomic.Int32)
	u.MCP().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch method {
			case "initialize", "server/discover":
				starts.Add(1)
			case "tools/list":
				lists.Add(1)
			}
			return next(ctx, method, req)
		}
	})
	return starts, lists
}

func exposedNames(p *upstream.Pool) (names []string) {
	tools, _ := p.Exposed()
	for _, t := range tools {
		names = append(names, t.Server+"/"+t.Name)
	}
	return names
}

// TestExposedStarts: a server of exposed tools is asked for its list only where that is not known, and other servers are not.
func TestExposedStarts(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		want int32 // starts of the exposed server
	}{{"unknown", 1}, {"kept", 0}} {
		t.Run(test.name, func(t *testing.T) {
			saved, err := state.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			one, other := mcptest.New(mcptest.Tool{Name: "a"}, mcptest.Tool{Name: "b"}), mcptest.New(mcptest.Tool{Name: "a"})
			starts, _ := counted(one)
			others, _ := counted(other)
			p := mcptest.NewPool(t, upstream.Options{
				State: saved, Expose: []string{"one/a"}, Sources: []upstream.Source{upstream.Static{{Name: "one", Dial: one.Dial}, {Name: "other", Dial: other.Dial}}},
			})
			p.OnTools(func() {})
			p.AwaitExposed(t.Context(), true)
			if got := exposedNames(p); !slices.Equal(got, []string{"one/a"}) {
				t.Errorf("%q are exposed", got)
			}
			if starts.Load() != test.want || others.Load() != 0 {
				t.Errorf("%d starts, and %d of the other server", starts.Load(), others.Load())
			}
		})
	}
}

// TestExposedFollow: a change of a list is read and reported soon, and a server that reports changes all the time is not asked
// all the time.
func TestExposedFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mcptest.New(mcptest.Tool{Name: "a", Text: "x"})
		_, lists := counted(s)
		p := upstream.NewPool(upstream.Options{Expose: []string{"*/*"}, Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: s.Dial}}}, ListTTL: 24 * time.Hour})
		defer p.Close()
		var news atomic.Int32
		p.OnTools(func() { news.Add(1) })
		p.AwaitExposed(t.Context(), true)
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "a"}); err != nil {
			t.Fatal(err)
		}
		_, before := p.Exposed()
		s.Add(mcptest.Tool{Name: "b"})
		time.Sleep(time.Second)
		synctest.Wait()
		if got := exposedNames(p); !slices.Equal(got, []string{"s/a", "s/b"}) || news.Load() != 2 || p.Generation() == before {
			t.Fatalf("%q are exposed, %d reports", got, news.Load())
		}
		first := lists.Load()
		for i := range 600 {
			s.Add(mcptest.Tool{Name: "b", Description: fmt.Sprint(i)})
			time.Sleep(100 * time.Millisecond)
		}
		if got := lists.Load() - first; got < 3 || got > 50 {
			t.Errorf("it was asked for its list %d times in a minute", got)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		tools, _ := p.Exposed()
		if got := tools[1].Details(t.Context()).Description; got != "599" {
			t.Errorf("the last list has the description %q", got)
		}
	})
}

// TestExposeWithoutTool: a pattern that is for one server and fits no tool of it is in its note.
func TestExposeWithoutTool(t *testing.T) {
	p := mcptest.NewPool(t, upstream.Options{
		Expose:  []string{"s/a", "s/nope", "s/no*", "*/x", "t/y"},
		Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: mcptest.New(mcptest.Tool{Name: "a"}).Dial}}},
	})
	const want = `the pattern "nope" of --expose matches no tool; the pattern "no*" of --expose matches no tool`
	if got := p.Catalog(t.Context(), "s")[0].Note; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOverrides: agents use the operator's name of a tool, and patterns the server's.
func TestOverrides(t *testing.T) {
	name := func(s string) toollist.Override { return toollist.Override{Name: &s} }
	s := mcptest.New()
	for _, tool := range []string{"a", "b", "c", "d"} {
		s.Add(mcptest.Tool{Name: tool, Text: tool})
	}
	p := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{upstream.Static{{
		Name: "s", Dial: s.Dial, Deny: []string{"d", "new"},
		Overrides: map[string]toollist.Override{"a": name("new"), "b": name("c"), "d": name("open")},
	}}}})
	for tool, want := range map[string]string{
		"new": "a", "c": "c", "a": string(stages.UnknownTool), "b": string(stages.UnknownTool), "open": string(stages.Denied), "d": string(stages.UnknownTool),
	} {
		got := ""
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: tool})
		if e, ok := errors.AsType[*stages.Error](err); ok {
			got = string(e.Code)
		} else if err == nil {
			got = string(res.Data)
		}
		if got != want {
			t.Errorf("%s: got %s (%v), want %s", tool, got, err, want)
		}
	}
}

// TestWholeIsBounded: a whole result counts as any other in limits and memory, and a broken one is refused.
func TestWholeIsBounded(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "say", Raw: func(_ context.Context, args json.RawMessage) (string, error) {
		var a struct{ Size, Blocks int }
		if err := json.Unmarshal(args, &a); err != nil {
			return "", err
		}
		return `{"content":[{"type":"text","text":"` + strings.Repeat("x", a.Size) + `"}` + strings.Repeat(",{}", a.Blocks) + `]}`, nil
	}})
	p := mcptest.NewPool(t, upstream.Options{ResultMax: 1 << 20, Sources: []upstream.Source{upstream.Static{{Name: "s", Dial: s.Dial}}}})
	for args, want := range map[string]stages.Code{
		`{"size":10}`: "", `{"size":1000000}`: "", `{"size":1100000}`: stages.LimitExceeded, `{"size":9000000}`: stages.LimitExceeded, `{"blocks":100001}`: stages.LimitExceeded,
	} {
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "say", Args: json.RawMessage(args), Whole: true})
		e, _ := errors.AsType[*stages.Error](err)
		if want == "" && (err != nil || !strings.HasPrefix(string(res.Data), `{"content":[{`)) || want != "" && (e == nil || e.Code != want || res.Data != nil) {
			t.Errorf("%s: got %.80s, %v", args, res.Data, err)
		}
		res.Memory.Close()
	}
}
