package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/servers/demo"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

func connect(t testing.TB, o demo.Options) *servertest.Client {
	t.Helper()
	server, err := demo.New(o)
	return servertest.Connect(t, server, err)
}

type order struct {
	ID         json.Number `json:"id"`
	CustomerID string      `json:"customer_id"`
	Status     string      `json:"status"`
	Total      float64     `json:"total"`
	Items      []struct {
		Quantity int     `json:"quantity"`
		Price    float64 `json:"price"`
	} `json:"items"`
}

func orders(t testing.TB, c *servertest.Client, args string) (list []order, matching int) {
	t.Helper()
	var v struct {
		Orders   []order `json:"orders"`
		Matching int     `json:"matching"`
	}
	if err := json.Unmarshal([]byte(c.Call(t, "list_orders", args).Text), &v); err != nil {
		t.Fatal(err)
	}
	return v.Orders, v.Matching
}

func TestOrders(t *testing.T) {
	c := connect(t, demo.Options{})
	all, matching := orders(t, c, `{}`)
	if len(all) != 200 || matching != 200 {
		t.Fatalf("%d orders, %d matching, want 200", len(all), matching)
	}
	ids, large, byStatus := map[json.Number]bool{}, 0, map[string]int{}
	for _, o := range all {
		if ids[o.ID] {
			t.Errorf("id %s is there twice", o.ID)
		}
		ids[o.ID] = true
		byStatus[o.Status]++
		if f, err := o.ID.Float64(); err == nil && f > 1<<53 {
			large++
			if n, _ := o.ID.Int64(); int64(f) == n {
				t.Errorf("a float64 can hold the id %s", o.ID)
			}
		}
		cents := 0.0
		for _, i := range o.Items {
			cents += float64(i.Quantity) * i.Price
		}
		if d := cents - o.Total; d > 0.001 || d < -0.001 {
			t.Errorf("order %s: total %v, its items cost %v", o.ID, o.Total, cents)
		}
		if r := c.Call(t, "get_customer", `{"id":"`+o.CustomerID+`"}`); r.Error {
			t.Errorf("order %s: %s", o.ID, r.Text)
		}
	}
	if large != 20 {
		t.Errorf("%d ids above 2^53, want 20", large)
	}
	for status, n := range byStatus {
		some, matching := orders(t, c, `{"status":"`+status+`","limit":3}`)
		if len(some) != 3 || matching != n || some[0].Status != status {
			t.Errorf("status %s: %d orders, %d matching, want 3 and %d", status, len(some), matching, n)
		}
	}
	if len(byStatus) != 4 {
		t.Errorf("statuses %v, want 4", byStatus)
	}
}

func TestSeeds(t *testing.T) {
	text := func(o demo.Options) string { return connect(t, o).Call(t, "list_orders", `{}`).Text }
	zero := text(demo.Options{})
	if again := text(demo.Options{}); again != zero {
		t.Error("two servers with the same seed differ")
	}
	if other := text(demo.Options{Seed: 7}); other == zero {
		t.Error("two servers with different seeds are equal")
	}
}

func TestPages(t *testing.T) {
	c := connect(t, demo.Options{})
	var ids []json.Number
	next := 1
	for pages := 1; ; pages++ {
		var page struct {
			Items []order `json:"items"`
			Next  *int    `json:"next_page"`
		}
		args, _ := json.Marshal(map[string]int{"n": next})
		if err := json.Unmarshal([]byte(c.Call(t, "get_page", string(args)).Text), &page); err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Items {
			ids = append(ids, o.ID)
		}
		if page.Next == nil {
			if pages != 10 {
				t.Errorf("%d pages, want 10", pages)
			}
			break
		}
		next = *page.Next
	}
	all, _ := orders(t, c, `{}`)
	var want []json.Number
	for _, o := range all {
		want = append(want, o.ID)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCalls(t *testing.T) {
	c := connect(t, demo.Options{})
	for _, tt := range []struct{ tool, args, want string }{
		{"get_customer", `{"id":"c-001"}`, `{"id":"c-001","name":"Ada Okafor","email":"customer1@example.com","region":"north","active":false}`},
		{"get_page", `{"n":11}`, `{"page":11,"items":[],"next_page":null}`},
		{"slow", `{"ms":1}`, `{"waited_ms":1}`},
		{"flaky", `{"p":0}`, `{"ok":true}`},
		{"list_notes", `{}`, `{"notes":[]}`},
		{"add_note", `{"text":"<a> & b"}`, `{"id":1,"text":"<a> & b"}`},
		{"add_note", `{"text":"é"}`, `{"id":2,"text":"é"}`},
		{"list_notes", `null`, `{"notes":[{"id":1,"text":"<a> & b"},{"id":2,"text":"é"}]}`},

		{"get_customer", `{"id":"c-041"}`, `!NotFound: no customer has the id "c-041"; ids go from c-001 to c-040`},
		{"get_customer", `{}`, `!InvalidArgument: argument "id" is missing`},
		{"list_orders", `{"status":"lost"}`, `!InvalidArgument: status is "lost", want one of ["open" "paid" "shipped" "cancelled"]`},
		{"list_orders", `{"limit":0}`, `!InvalidArgument: limit is 0, want 1 to 200`},
		{"list_orders", `{"limits":1}`, `!InvalidArgument: unknown argument "limits", did you mean "limit"; known: status, limit`},
		{"get_page", `{"n":0}`, `!InvalidArgument: n is 0, want at least 1`},
		{"get_page", `{"n":1.5}`, `!InvalidArgument: argument "n": want an integer, got 1.5`},
		{"slow", `{"ms":60001}`, `!InvalidArgument: ms is 60001, want 0 to 60000`},
		{"flaky", `{"p":1}`, `!Unavailable: 503 service unavailable (with probability 1); call again`},
		{"flaky", `{"p":2}`, `!InvalidArgument: p is 2, want 0 to 1`},
		{"add_note", `{"text":""}`, `!InvalidArgument: text has 0 bytes, want 1 to 4096`},
		{"picture", `{"size":3}`, `!InvalidArgument: unknown argument "size"; there are none`},
	} {
		want, fails := strings.CutPrefix(tt.want, "!")
		if r := c.Call(t, tt.tool, tt.args); r.Text != want || r.Error != fails {
			t.Errorf("%s %s:\n got %s (error %v)\nwant %s", tt.tool, tt.args, r.Text, r.Error, want)
		}
	}
}

func TestFlaky(t *testing.T) {
	outcomes := func(o demo.Options, args func(i int) string) string {
		c := connect(t, o)
		var b strings.Builder
		for i := range 200 {
			b.WriteString(map[bool]string{true: "x", false: "."}[c.Call(t, "flaky", args(i)).Error])
		}
		return b.String()
	}
	same := func(int) string { return `{"p":0.3,"seed":5}` }
	seeds := func(i int) string { b, _ := json.Marshal(map[string]any{"p": 0.3, "seed": i}); return string(b) }
	drawn := func(int) string { return `{"p":0.3}` }
	if got := outcomes(demo.Options{}, same); strings.Trim(got, "x") != "" && strings.Trim(got, ".") != "" {
		t.Errorf("one seed, several outcomes: %s", got)
	}
	for _, args := range []func(int) string{seeds, drawn} {
		got := outcomes(demo.Options{}, args)
		if n := strings.Count(got, "x"); n < 30 || n > 90 {
			t.Errorf("%d of 200 calls failed, want about 60", n)
		}
		if again := outcomes(demo.Options{}, args); again != got {
			t.Errorf("not the same again:\n%s\n%s", got, again)
		}
		if other := outcomes(demo.Options{Seed: 9}, args); other == got {
			t.Errorf("the same with another seed of the server")
		}
	}
}

func TestSlowIsCancelled(t *testing.T) {
	defer servertest.CheckGoroutines(t)()
	c := connect(t, demo.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := c.Session.CallTool(ctx, &mcp.CallToolParams{Name: "slow", Arguments: json.RawMessage(`{"ms":60000}`)})
	if err == nil || time.Since(start) > 30*time.Second {
		t.Errorf("error %v after %v", err, time.Since(start))
	}
	c.Session.Close() // waits for the handler
}

func TestLatency(t *testing.T) {
	const latency = 30 * time.Millisecond
	c := connect(t, demo.Options{Latency: latency})
	start := time.Now()
	if r := c.Call(t, "get_page", `{"n":1}`); r.Error || time.Since(start) < latency {
		t.Errorf("answered after %v: %.100s", time.Since(start), r.Text)
	}
	for _, bad := range []time.Duration{-1, time.Hour} {
		if _, err := demo.New(demo.Options{Latency: bad}); err == nil {
			t.Errorf("a latency of %v was accepted", bad)
		}
	}
}

func TestPicture(t *testing.T) {
	r := connect(t, demo.Options{}).Call(t, "picture", `{}`)
	block, ok := r.Content[0].(*mcp.ImageContent)
	if !ok || block.MIMEType != "image/png" || len(r.Content) != 1 {
		t.Fatalf("got %+v", r.Content)
	}
	img, err := png.Decode(bytes.NewReader(block.Data))
	if err != nil || img.Bounds().Dx() != 64 {
		t.Errorf("got %v, %v", img.Bounds(), err)
	}
}

func TestNotesAreBounded(t *testing.T) {
	c := connect(t, demo.Options{})
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 125 {
				c.Call(t, "add_note", `{"text":"x"}`)
			}
		})
	}
	calls.Wait()
	want := "LimitExceeded: there are 1000 notes, no more are kept; start the server again"
	if r := c.Call(t, "add_note", `{"text":"x"}`); r.Text != want || !r.Error {
		t.Errorf("got %s, want %s", r.Text, want)
	}
}

func TestEffects(t *testing.T) {
	for name, tool := range connect(t, demo.Options{}).Tools {
		a := tool.Annotations
		if writes := name == "add_note"; a.ReadOnlyHint == writes || *a.OpenWorldHint || writes && *a.DestructiveHint {
			t.Errorf("%s: annotations %+v", name, a)
		}
	}
}
