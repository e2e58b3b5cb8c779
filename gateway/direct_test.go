package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// post is a request as a client sends it.
type post struct {
	header map[string]string
	host   string
	body   string
}

func (p post) request(ctx context.Context) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(p.body))
	for name, value := range p.header {
		r.Header.Set(name, value)
	}
	if p.host != "" {
		r.Host = p.host
		r = r.WithContext(context.WithValue(ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
	}
	return r
}

// with is p with other headers. An empty value takes one away.
func (p post) with(more ...string) post {
	p.header = maps.Clone(p.header)
	for i := 0; i < len(more); i += 2 {
		p.header[more[i]] = more[i+1]
		if more[i+1] == "" {
			delete(p.header, more[i])
		}
	}
	return p
}

// replace is p with a change of its body.
func (p post) replace(old, text string) post {
	if !strings.Contains(p.body, old) {
		panic("the call has no " + old)
	}
	p.body = strings.Replace(p.body, old, text, 1)
	return p
}

// An exchanged is what a client gets.
type exchanged struct {
	Code    int
	Header  http.Header
	Text    string // if it is no message
	Message any
	direct  bool
}

func exchange(t testing.TB, h http.Handler, r *http.Request) (e exchanged) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	e = exchanged{Code: w.Code, Header: w.Header(), Text: w.Body.String()}
	e.direct = e.Header.Get("Content-Length") != "" || e.Header.Get("Connection") == "" && w.Flushed
	kind := e.Header.Get("Content-Type")
	for _, name := range []string{"Content-Length", "Connection", "Content-Type", "X-Accel-Buffering"} { // of how it is written
		e.Header.Del(name)
	}
	text := e.Text
	if kind == "text/event-stream" {
		events := strings.Split(strings.TrimSpace(text), "\n\n")
		for i, event := range events {
			text = strings.TrimPrefix(event, "event: message\ndata: ")
			if i < len(events)-1 && !strings.HasPrefix(text, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"`) {
				t.Errorf("got %q before the answer", text)
			}
		}
	} else if kind != "application/json" {
		return e
	}
	if err := json.Unmarshal([]byte(text), &e.Message); err != nil {
		t.Fatalf("%v in %q", err, w.Body)
	}
	e.Text = ""
	forget(e.Message)
	return e
}

// forget takes the times and the names of requests out of reports.
func forget(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			forget(member)
			if _, ok := member.(float64); ok && strings.HasSuffix(name, "ms") {
				delete(v, name)
			}
			if text, ok := member.(string); ok && name == "request" && len(text) == len("q_")+12 {
				delete(v, name)
			}
		}
	case []any:
		for _, element := range v {
			forget(element)
		}
	}
}

// reads makes a request for a resource of a call.
func reads(uri string) func(post) post {
	return func(p post) post {
		p = p.replace(`"tools/call"`, `"resources/read"`).replace(sayParams, `"uri":"`+uri+`"`)
		if p.header["Mcp-Method"] != "" {
			p = p.with("Mcp-Method", "resources/read", "Mcp-Name", uri)
		}
		return p
	}
}

// exposes makes a call of a server's tool by its own name of a call.
func exposes(tool string) func(post) post {
	return func(p post) post {
		return p.replace(sayParams, `"name":"shop__`+tool+`","arguments":{}`).asked("shop__" + tool)
	}
}

// bothWays is a gateway, and a session in it.
type bothWays struct {
	*Gateway
	session string
}

// groupedStatic has servers in groups.
type groupedStatic struct {
	upstream.Static
	groups []upstream.Group
}

func (s groupedStatic) Groups() []upstream.Group { return s.groups }

// newBothWays serves only the first of some groups, if there are any.
func newBothWays(t testing.TB, groups ...upstream.Group) *bothWays {
	t.Helper()
	shop := mcptest.New(
		mcptest.Tool{Name: "say", ReadOnly: true, Text: "a <b> & \"c\" \u2028 \\ é 日本 \x01"},
		mcptest.Tool{Name: "fail", ReadOnly: true, Do: func(map[string]any) (string, error) { return "", fmt.Errorf("no") }},
		mcptest.Tool{Name: "picture", ReadOnly: true, Raw: func(context.Context, json.RawMessage) (string, error) {
			return `{"content":[{"type":"text","text":"a dot","annotations":{"audience":["user"]}},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}]}`, nil
		}},
	)
	shop.MCP().AddResource(&mcp.Resource{URI: "doc://x", Name: "x"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Meta: mcp.Meta{"a": 1}, Contents: []*mcp.ResourceContents{{URI: "doc://x", Text: "a <b> & \u2028 \x01 é", Meta: mcp.Meta{"b": 2}}}}, nil
	})
	servers := upstream.Static{{Name: "shop", Dial: shop.Dial, Expose: []string{"*"}}, {Name: "bank", Dial: shop.Dial, Expose: []string{"*"}}}
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{groupedStatic{servers, groups}}})
	o := Options{Upstream: pool, Version: "test"}
	if groups != nil {
		o.Group = groups[0].Name
	}
	g := New(o)
	pool.AwaitExposed(t.Context(), true)
	t.Cleanup(func() { g.Close(context.Background()) })
	b := &bothWays{Gateway: g}
	b.session = b.initialize(t, "2025-11-25")
	return b
}

// initialize makes a session.
func (b *bothWays) initialize(t testing.TB, version string) string {
	t.Helper()
	w := httptest.NewRecorder()
	b.serveMCP(w, post{header: plain, body: fmt.Sprintf(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version,
	)}.request(t.Context()))
	if w.Code != http.StatusOK {
		t.Fatal(w.Code, w.Body)
	}
	return w.Header().Get(sessionHeader)
}

var plain = map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

const (
	sayParams  = `"name":"execute_pipeline","arguments":{"pipeline":[{"type":"tool","server":"shop","name":"say"}]}`
	sayCall    = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + sayParams + `}}`
	modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
		`{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true},"sampling":{}}},`
)

// calls are the same call in each era.
func (b *bothWays) calls() map[string]post {
	legacy := post{header: plain, body: sayCall}.with(sessionHeader, b.session, versionHeader, "2025-11-25")
	modern := post{header: plain, body: sayCall}.with(versionHeader, statelessEra, "Mcp-Method", "tools/call", "Mcp-Name", "execute_pipeline")
	return map[string]post{"legacy": legacy, "modern": modern.replace(`"params":{`, `"params":{`+modernMeta)}
}

// changes are calls in either era, and whether they are answered beside the SDK.
var changes = []struct {
	name   string
	change func(p post) post
	direct bool
}{
	{"a call", func(p post) post { return p }, true},
	{"another tool", func(p post) post {
		return p.replace(`"name":"execute_pipeline"`, `"name":"list_available_shell_commands"`).replace(`"pipeline":[{"type":"tool","server":"shop","name":"say"}]`, "").asked("list_available_shell_commands")
	}, true},
	{"no arguments", func(p post) post {
		return p.replace(`"name":"execute_pipeline"`, `"name":"list_available_shell_commands"`).replace(`,"arguments":{"pipeline":[{"type":"tool","server":"shop","name":"say"}]}`, "").asked("list_available_shell_commands")
	}, true},
	{"a tool that fails", func(p post) post { return p.replace(`"say"`, `"fail"`) }, true},
	{"a picture", func(p post) post { return p.replace(`"say"`, `"picture"`) }, true},
	{"a resource", reads("mcsh://servers/shop/doc://x"), true},
	{"a resource that is missing", reads("mcsh://servers/shop/doc://y"), true},
	{"a resource of nobody", reads("mcsh://servers/nobody/doc://x"), true},
	{"a resource by its original", reads("doc://x"), false},
	{"a resource with escapes", reads("mcsh://servers/shop/doc://\\u0078"), false},
	{"a resource beyond ASCII", reads("mcsh://servers/shop/doc://é"), false},
	{"a resource with arguments", func(p post) post {
		return reads("mcsh://servers/shop/doc://x")(p).replace(`"uri"`, `"arguments":{},"uri"`)
	}, false},
	{"mistakes", func(p post) post { return p.replace(`"type":"tool"`, `"type":"toll"`) }, true},
	{"arguments null", func(p post) post {
		return p.replace(`{"pipeline":[{"type":"tool","server":"shop","name":"say"}]}`, "null")
	}, true},
	{"arguments array", func(p post) post {
		return p.replace(`{"pipeline":[{"type":"tool","server":"shop","name":"say"}]}`, "[]")
	}, false},
	{"white space", func(p post) post { return p.replace(`"id":7,`, "\r\n \"id\" : 7\t,").replace(`"2.0"`, ` "2.0" `) }, true},
	{"id 0", func(p post) post { return p.replace(`"id":7`, `"id":0`) }, true},
	{"id below 0", func(p post) post { return p.replace(`"id":7`, `"id":-12`) }, true},
	{"id 2^53", func(p post) post { return p.replace(`"id":7`, `"id":9007199254740992`) }, true},
	{"id text", func(p post) post { return p.replace(`"id":7`, `"id":"a <7>"`) }, true},
	{"an exposed tool", exposes("say"), true},
	{"an exposed tool with blocks", exposes("picture"), true},
	{"an exposed tool that fails", exposes("fail"), true},
	{"an exposed tool, not known", exposes("nothing"), true},
	{"an exposed tool in escapes", exposes("s\\u0061y"), false},
	{"an exposed tool with more", func(p post) post {
		return exposes("say")(p).replace(`"arguments"`, `"requestState":"x","arguments"`)
	}, true},
	{"id empty", func(p post) post { return p.replace(`"id":7`, `"id":""`) }, true},
	{"id beyond 2^53", func(p post) post { return p.replace(`"id":7`, `"id":9007199254740993`) }, true},
	{"id below -2^53", func(p post) post { return p.replace(`"id":7`, `"id":-9007199254740995`) }, true},
	{"id with escapes", func(p post) post { return p.replace(`"id":7`, `"id":"\u0041"`) }, false},
	{"id with quotes", func(p post) post { return p.replace(`"id":7`, `"id":"\"a\""`) }, false},
	{"id beyond ASCII", func(p post) post { return p.replace(`"id":7`, `"id":"é"`) }, false},
	{"id 7.0", func(p post) post { return p.replace(`"id":7`, `"id":7.0`) }, false},
	{"id -0", func(p post) post { return p.replace(`"id":7`, `"id":-0`) }, false},
	{"id 1e2", func(p post) post { return p.replace(`"id":7`, `"id":1e2`) }, false},
	{"id null", func(p post) post { return p.replace(`"id":7`, `"id":null`) }, false},
	{"id an object", func(p post) post { return p.replace(`"id":7`, `"id":{}`) }, false},
	{"no id", func(p post) post { return p.replace(`"id":7,`, ``) }, false},
	{"id twice", func(p post) post { return p.replace(`"id":7`, `"id":7,"id":8`) }, false},
	{"name twice", func(p post) post {
		return p.replace(`"name":"execute_pipeline"`, `"name":"x","name":"execute_pipeline"`)
	}, false},
	{"member unknown", func(p post) post { return p.replace(`"id":7`, `"id":7,"x":1`) }, false},
	{"a result too", func(p post) post { return p.replace(`"id":7`, `"id":7,"result":{}`) }, false},
	{"parameter unknown", func(p post) post { return p.replace(`"name":"execute_pipeline"`, `"x":1,"name":"execute_pipeline"`) }, false},
	{"state of a request", func(p post) post {
		return p.replace(`"name":"execute_pipeline"`, `"requestState":"x","name":"execute_pipeline"`)
	}, true},
	{"answers", func(p post) post {
		return p.replace(`"name":"execute_pipeline"`, `"requestState":"x","inputResponses":{"q1":{"action":"decline"}},"name":"execute_pipeline"`)
	}, true},
	{"answers of no kind", func(p post) post {
		return p.replace(`"name":"execute_pipeline"`, `"requestState":"x","inputResponses":{"q1":{"x":1}},"name":"execute_pipeline"`)
	}, false},
	{"answers without a state", func(p post) post {
		return p.replace(`"name":"execute_pipeline"`, `"inputResponses":{"q1":{"action":"decline"}},"name":"execute_pipeline"`)
	}, true},
	{"version 1.0", func(p post) post { return p.replace(`"2.0"`, `"1.0"`) }, false},
	{"no version", func(p post) post { return p.replace(`"jsonrpc":"2.0",`, ``) }, false},
	{"method escaped", func(p post) post { return p.replace(`"tools/call"`, `"tools\/call"`) }, false},
	{"method in capitals", func(p post) post { return p.replace(`"method"`, `"Method"`) }, false},
	{"method of others", func(p post) post { return p.replace(`tools/call`, `tools/cell`).with("Mcp-Method", "tools/cell") }, false},
	{"params null", func(p post) post { return p.replace(p.params(), `null`) }, false},
	{"params an array", func(p post) post { return p.replace(p.params(), `[]`) }, false},
	{"no params", func(p post) post { return p.replace(`,"params":`+p.params(), ``) }, false},
	{"tool unknown", func(p post) post { return p.replace(`"name":"execute_pipeline"`, `"name":"exec"`).asked("exec") }, true},
	{"name a number", func(p post) post { return p.replace(`"name":"execute_pipeline"`, `"name":5`) }, false},
	{"no name", func(p post) post { return p.replace(`"name":"execute_pipeline",`, ``) }, false},
	{"a batch", func(p post) post { p.body = "[" + p.body + "]"; return p }, false},
	{"more behind it", func(p post) post { p.body += "x"; return p }, false},
	{"two messages", func(p post) post { p.body += p.body; return p }, false},
	{"half a message", func(p post) post { p.body = p.body[:len(p.body)/2]; return p }, false},
	{"no body", func(p post) post { p.body = ""; return p }, false},
	{"a number", func(p post) post { p.body = "5"; return p }, false},
	{"too deep", func(p post) post {
		return p.replace(`"arguments":{`, `"arguments":{"a":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+",")
	}, false},
	{"deep", func(p post) post {
		return p.replace(`"arguments":{`, `"arguments":{"a":`+strings.Repeat("[", 800)+strings.Repeat("]", 800)+",")
	}, true},
	{"large", func(p post) post {
		return p.replace(`"arguments":{`, `"arguments":{"a":"`+strings.Repeat("x", DefaultBody-1000)+`",`)
	}, true},
	{"not UTF-8", func(p post) post { return p.replace(`"say"`, "\"s\xff\"") }, true},
	{"no content type", func(p post) post { return p.with("Content-Type", "") }, false},
	{"content type text", func(p post) post { return p.with("Content-Type", "text/plain") }, false},
	{"content type with charset", func(p post) post { return p.with("Content-Type", "application/json; charset=utf-8") }, false},
	{"accept nothing", func(p post) post { return p.with("Accept", "") }, false},
	{"accept JSON", func(p post) post { return p.with("Accept", "application/json") }, false},
	{"accept events", func(p post) post { return p.with("Accept", "text/event-stream") }, false},
	{"accept everything", func(p post) post { return p.with("Accept", "*/*") }, true},
	{"accept in another order", func(p post) post { return p.with("Accept", "text/event-stream,application/json") }, true},
	{"accept with weights", func(p post) post { return p.with("Accept", "application/json;q=0.5, text/event-stream") }, false},
	{"a last event", func(p post) post { return p.with("Last-Event-ID", "x") }, false},
	{"another host", func(p post) post { p.host = "evil.example"; return p }, false},
	{"this host", func(p post) post { p.host = "localhost:1"; return p }, true},
	{"version of the past", func(p post) post { return p.with(versionHeader, "2024-01-01") }, false},
	{"version of the future", func(p post) post { return p.with(versionHeader, "2099-01-01") }, false},
	{"no session", func(p post) post { return p.with(sessionHeader, "") }, false},
	{"session unknown", func(p post) post { return p.with(sessionHeader, "x") }, false},
}

// asked is p with another tool's name in the header.
func (p post) asked(name string) post {
	if p.header["Mcp-Name"] == "" {
		return p
	}
	return p.with("Mcp-Name", name)
}

// params are those in the body.
func (p post) params() string {
	_, rest, _ := strings.Cut(p.body, `"params":`)
	return strings.TrimSuffix(rest, "}")
}

// TestDirectSame sends everything both ways, beside the SDK and through it.
func TestDirectSame(t *testing.T) {
	t.Parallel()
	b := newBothWays(t)
	for era, call := range b.calls() {
		for _, tt := range changes {
			if tt.name == "large" && era == "modern" && !parttest.Night() {
				continue
			}
			t.Run(era+" "+tt.name, func(t *testing.T) {
				direct := tt.direct
				if tt.name == "no session" {
					direct = era == "modern" // it never had one
				}
				b.same(t, tt.change(call), direct)
			})
		}
	}
}

// TestDirectSameInGroup: both ways have the same servers, and the same names in a group of one.
func TestDirectSameInGroup(t *testing.T) {
	for group, servers := range map[string][]string{"one": {"shop"}, "pattern": {"sh*"}} {
		b := newBothWays(t, upstream.Group{Name: group, Servers: servers})
		for era, call := range b.calls() {
			for name, tt := range map[string]struct {
				post   post
				direct bool
				found  bool
			}{
				"an exposed tool":                 {exposes("say")(call), true, group == "pattern"},
				"the exposed tool of another":     {exposes("say")(call).replace(`shop__`, `bank__`).asked("bank__say"), true, false},
				"a name of the server":            {exposes("say")(call).replace(`shop__`, ``).asked("say"), true, group == "one"},
				"a resource":                      {reads("mcsh://servers/shop/doc://x")(call), true, true},
				"an original":                     {reads("doc://x")(call), false, true},
				"a resource of another":           {reads("mcsh://servers/bank/doc://x")(call), true, false},
				"a tool of another in a pipeline": {call.replace(`"shop"`, `"bank"`), true, true},
			} {
				t.Run(group+" "+era+" "+name, func(t *testing.T) {
					b.same(t, tt.post, tt.direct)
					e := exchange(t, http.HandlerFunc(b.serveMCP), tt.post.request(t.Context()))
					if m, _ := e.Message.(map[string]any); (m["result"] != nil) != tt.found {
						t.Errorf("got %v", e.Message)
					}
				})
			}
		}
	}
}

// same sends p both ways and compares what comes back.
func (b *bothWays) same(t *testing.T, p post, direct bool) {
	t.Helper()
	got := exchange(t, http.HandlerFunc(b.serveMCP), p.request(t.Context()))
	want := exchange(t, b.sdk(p.request(t.Context())), p.request(t.Context()))
	if got.direct != direct {
		t.Errorf("answered beside the SDK: %v, want %v", got.direct, direct)
	}
	if said, ok := want.Message.(map[string]any); ok && direct {
		if id, ok := said["id"].(float64); ok && math.Abs(id) > 1<<53 {
			said["id"] = got.Message.(map[string]any)["id"] // the SDK rounds it: see TestDirectExactID
		}
	}
	for _, e := range []*exchanged{&got, &want} {
		e.Header.Del(sessionHeader) // a new session has another id each time
	}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "direct" }, cmp.Ignore())); diff != "" {
		t.Errorf("the SDK and we differ (-SDK +we):\n%s", diff)
	}
}

// TestRefusedDelete: a DELETE that the SDK refuses leaves no session of the SDK without one of the gateway, which has its
// timeout and its slot. A refused host name ends nothing.
func TestRefusedDelete(t *testing.T) {
	b := newBothWays(t)
	open := func() (n int) {
		for range b.server.Sessions() {
			n++
		}
		return n
	}
	remove := func(host string) int {
		r := post{header: plain, host: host}.with(sessionHeader, b.session).request(t.Context())
		r.Method = http.MethodDelete
		return exchange(t, http.HandlerFunc(b.serveMCP), r).Code
	}
	if code := remove("evil.example"); code != http.StatusForbidden || b.sessions.find(b.session) == nil {
		t.Errorf("by a refused host name: got %d, and the session is gone", code)
	}
	if e := exchange(t, http.HandlerFunc(b.serveMCP), b.calls()["legacy"].request(t.Context())); e.Code != http.StatusOK || e.Message == nil {
		t.Errorf("a call after it: got %+v", e)
	}
	b.legacy = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	code := remove("")
	for begun := time.Now(); open() > 0 && time.Since(begun) < time.Minute; {
		time.Sleep(time.Millisecond)
	}
	if n := open(); code != http.StatusForbidden || n != 0 || b.sessions.find(b.session) != nil {
		t.Errorf("by the SDK: got %d, and %d of its sessions are open", code, n)
	}
}

// TestDirectExactID: an answer has the id of its call, byte for byte, also where a reader of JSON that has numbers as
// floating point would round it.
func TestDirectExactID(t *testing.T) {
	b := newBothWays(t)
	for _, id := range []string{"9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", `"a <7> & 'b'"`} {
		for era, call := range b.calls() {
			w := httptest.NewRecorder()
			b.serveMCP(w, call.replace(`"id":7`, `"id":`+id).request(t.Context()))
			if !strings.HasPrefix(w.Body.String(), `{"jsonrpc":"2.0","id":`+id+`,"result":`) {
				t.Errorf("%s %s: got %.100s", era, id, w.Body)
			}
		}
	}
}

// TestRoundedID: an id that the SDK would round is refused, byte for byte, also where a call of another kind has it: no client
// waits for an answer under another id. Its own answers reach it.
func TestRoundedID(t *testing.T) {
	b := newBothWays(t)
	for _, id := range []string{"9007199254740993", "-9007199254740993", "9223372036854775807", "18446744073709551615", "9007199254740993.0", "1e999", "7.5"} {
		for era, call := range b.calls() {
			p := call.replace(`"id":7`, `"id":`+id).replace(`"tools/call"`, `"tools/list"`)
			if era == "modern" {
				p = p.with("Mcp-Method", "tools/list")
			}
			w := httptest.NewRecorder()
			b.serveMCP(w, p.request(t.Context()))
			want := `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"` + RoundedID + `"}}`
			if strings.TrimSpace(w.Body.String()) != want || w.Code != http.StatusBadRequest {
				t.Errorf("%s %s: got %d %.300s, want %s", era, id, w.Code, w.Body, want)
			}
		}
	}
	for _, id := range []string{"7", "9007199254740992", "9007199254740994", "-9223372036854775808", "7.0", "1e3", `"9007199254740993"`, "null", "{}", ""} {
		if RoundsID(json.RawMessage(id)) {
			t.Errorf("%s is refused", id)
		}
	}
}

// TestDirectSameMeta is about what only one era knows.
func TestDirectSameMeta(t *testing.T) {
	b := newBothWays(t)
	legacy, modern := b.calls()["legacy"], b.calls()["modern"]
	meta := func(text string) post { return legacy.replace(`"params":{`, `"params":{"_meta":`+text+`,`) }
	late := legacy.with(sessionHeader, b.initialize(t, "2026-07-28"))
	for name, tt := range map[string]struct {
		post   post
		direct bool
	}{
		"legacy, no version":                      {legacy.with(versionHeader, ""), true},
		"legacy, another version":                 {legacy.with(versionHeader, "2025-03-26"), true},
		"legacy, version of the other":            {legacy.with(versionHeader, statelessEra), false},
		"legacy, asked for the other":             {late, true},
		"legacy, _meta":                           {meta(`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","x":[1e5,{}]}`), true},
		"legacy, _meta null":                      {meta(`null`), false},
		"legacy, _meta a number":                  {meta(`5`), false},
		"legacy, _meta with a huge number":        {meta(`{"x":1e999}`), false},
		"legacy, progress":                        {meta(`{"progressToken":1}`), true},
		"legacy, progress with an odd token":      {meta(`{"progressToken":{"x":[]}}`), true},
		"legacy, progress null":                   {meta(`{"progressToken":null}`), true},
		"legacy, call of the other":               {modern.with(sessionHeader, b.session, versionHeader, "2025-11-25"), false},
		"legacy, call of the other, no header":    {modern.with(sessionHeader, b.session, versionHeader, ""), false},
		"modern, progress":                        {modern.replace(`"_meta":{`, `"_meta":{"progressToken":"x",`), true},
		"modern, no _meta":                        {modern.replace(modernMeta, ""), false},
		"modern, other version in _meta":          {modern.replace(`Version":"2026-07-28"`, `Version":"2025-11-25"`), false},
		"modern, version a number":                {modern.replace(`Version":"2026-07-28"`, `Version":5`), false},
		"modern, no capabilities":                 {modern.replace(`clientCapabilities`, `x`), false},
		"modern, capabilities null":               {modern.replace(`{"roots":{"listChanged":true},"sampling":{}}`, `null`), false},
		"modern, capabilities an array":           {modern.replace(`{"roots":{"listChanged":true},"sampling":{}}`, `[]`), false},
		"modern, roots a number":                  {modern.replace(`{"listChanged":true}`, `5`), false},
		"modern, sampling a number":               {modern.replace(`"sampling":{}`, `"sampling":5`), false},
		"modern, capabilities empty":              {modern.replace(`{"roots":{"listChanged":true},"sampling":{}}`, `{}`), true},
		"modern, capabilities unknown":            {modern.replace(`{"roots":{"listChanged":true},"sampling":{}}`, `{"x":5}`), true},
		"modern, no client":                       {modern.replace(`clientInfo`, `x`), true},
		"modern, client null":                     {modern.replace(`{"name":"t","version":"1"}`, `null`), false},
		"modern, client a string":                 {modern.replace(`{"name":"t","version":"1"}`, `"t"`), false},
		"modern, client's name a number":          {modern.replace(`{"name":"t","version":"1"}`, `{"name":5}`), false},
		"modern, client with everything":          {modern.replace(`{"name":"t","version":"1"}`, `{"name":"é","icons":[{"src":"x","sizes":["a"]}],"x":1}`), true},
		"modern, no Mcp-Method":                   {modern.with("Mcp-Method", ""), false},
		"modern, another Mcp-Method":              {modern.with("Mcp-Method", "tools/list"), false},
		"modern, no Mcp-Name":                     {modern.with("Mcp-Name", ""), false},
		"modern, another Mcp-Name":                {modern.with("Mcp-Name", "list_all_tools"), false},
		"modern, header of a parameter":           {modern.with("Mcp-Param-Region", "x"), true},
		"modern, hops":                            {modern.replace(`"_meta":{`, `"_meta":{"dev.mcsh/gateway-hops":99,`), true},
		"modern, within a session of the other":   {modern.with(sessionHeader, b.session), false},
		"legacy, hops no number":                  {meta(`{"dev.mcsh/gateway-hops":"x"}`), true},
		"legacy, capitals that the SDK overlooks": {legacy.replace(`"arguments"`, `"Arguments"`), false},
	} {
		t.Run(name, func(t *testing.T) { b.same(t, tt.post, tt.direct) })
	}
}

// FuzzDirect sends what is answered beside the SDK through the SDK too.
func FuzzDirect(f *testing.F) {
	b := newBothWays(f)
	calls := b.calls()
	for _, tt := range changes {
		for _, call := range calls {
			if p := tt.change(call); len(p.body) < 1<<14 {
				f.Add([]byte(p.body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c := b.readCall(body)
		if c == nil {
			return // it goes to the SDK
		}
		p := calls["legacy"]
		if c.stateless {
			p = calls["modern"].with("Mcp-Name", c.params.Name, "Mcp-Method", c.method)
		}
		p.body = string(body)
		b.same(t, p, true)
	})
}

// TestToolsWithoutHeaders: the SDK compares the headers of parameters with a call, and we do not, because no tool has any.
func TestToolsWithoutHeaders(t *testing.T) {
	for _, tool := range New(Options{}).tools() {
		if bytes.Contains(tool.schema, []byte("x-mcp-header")) {
			t.Errorf("%s has parameters in headers", tool.name)
		}
	}
}

// TestDirectPanic: a panic ends in an answer.
func TestDirectPanic(t *testing.T) {
	b := newBothWays(t)
	b.handlers["list_all_tools"] = func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("a secret") }
	p := b.calls()["legacy"].replace(`"name":"execute_pipeline"`, `"name":"list_all_tools"`)
	got := exchange(t, http.HandlerFunc(b.serveMCP), p.request(t.Context()))
	if diff := cmp.Diff(map[string]any{"code": -32603.0, "message": "internal error"}, got.Message.(map[string]any)["error"]); diff != "" {
		t.Error(diff)
	}
}
