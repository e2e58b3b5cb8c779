package durabletest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// An arguments is what the tools of the test take, and an item of the lists that numbers makes.
type arguments struct {
	X    int `json:"x"`
	Ms   int `json:"ms,omitempty"`   // that a call takes
	Size int `json:"size,omitempty"` // bytes of the answer besides
	N    int `json:"n,omitempty"`    // items of a list
}

// An upstream is the MCP server of a test.
type upstream struct {
	*mcptest.Upstream
	url string

	mu     sync.Mutex
	calls  []call                   // guarded by mu
	before func(tool string, x int) // is called within a call; guarded by mu
}

// A call is one that has come to a tool.
type call struct {
	tool string
	x    int
	at   time.Time
}

const anything = `{"type":"object","properties":{"x":{"type":"integer"},"ms":{"type":"integer"},"size":{"type":"integer"}},"required":["x"]}`

func newUpstream(t *testing.T) *upstream {
	u := &upstream{}
	u.Upstream = mcptest.New(
		mcptest.Tool{Name: "numbers", ReadOnly: true, Do: numbers},
		mcptest.Tool{Name: "look", ReadOnly: true, Schema: anything, Raw: u.counted("look")},
		mcptest.Tool{Name: "post", Destructive: true, Schema: anything, Raw: u.counted("post")},
	)
	u.url = u.HTTP(t, nil).URL
	return u
}

// numbers lists the items of a for_each.
func numbers(args map[string]any) (string, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	var a arguments
	if err := json.Unmarshal(text, &a); err != nil {
		return "", err
	}
	list := make([]arguments, a.N)
	for x := range list {
		list[x] = arguments{X: x, Ms: a.Ms, Size: a.Size}
	}
	text, err = json.Marshal(list)
	return string(text), err
}

// counted is a tool whose calls are counted when they come.
func (u *upstream) counted(tool string) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		var a arguments
		if err := json.Unmarshal(args, &a); err != nil {
			return "", err
		}
		u.mu.Lock()
		u.calls = append(u.calls, call{tool, a.X, time.Now()})
		before := u.before
		u.mu.Unlock()
		if before != nil {
			before(tool, a.X)
		}
		if a.Ms > 0 {
			select {
			case <-time.After(time.Duration(a.Ms) * time.Millisecond): // the work of the tool
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		answer, err := json.Marshal(map[string]any{"x": a.X, "ms": a.Ms, "by": tool, "pad": strings.Repeat("p", a.Size)})
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(string(answer))
		return fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"resultType":"complete"}`, text), err
	}
}

// made returns how often a tool was called for each item.
func (u *upstream) made(tool string) map[int]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	times := map[int]int{}
	for _, c := range u.calls {
		if c.tool == tool {
			times[c.x]++
		}
	}
	return times
}

// first returns the first call since a time, zero if there is none.
func (u *upstream) first(since time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.calls {
		if c.at.After(since) {
			return c.at
		}
	}
	return time.Time{}
}

// since counts the calls since a time.
func (u *upstream) since(at time.Time) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.calls {
		if c.at.After(at) {
			n++
		}
	}
	return n
}

func (u *upstream) onCall(do func(tool string, x int)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.before = do
}
