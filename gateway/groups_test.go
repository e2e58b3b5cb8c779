package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/auth/oidc"
	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/oidctest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// canary is in every name and text of the servers outside the groups dev and solo.
const canary = "canary"

// member is a server whose tools, resources and prompts have its name in them, and some that other servers have too.
func member(name string) *mcptest.Upstream {
	say := func(map[string]any) (string, error) { return "said by " + name, nil }
	list := []mcptest.Tool{
		{Name: "lookup", ReadOnly: true, Do: say, Extra: `"_meta":{"ui":{"resourceUri":"ui://x"},"UI/x":1,"kept":1}`},
		{Name: name + "_tool", ReadOnly: true, Do: say},
		{Name: "link", ReadOnly: true, Raw: func(context.Context, json.RawMessage) (string, error) {
			return `{"content":[{"type":"resource_link","uri":"ui://` + name + `","name":"d","_meta":{"ui":{"resourceUri":"ui://x"},"kept":1}},` +
				`{"type":"resource","resource":{"uri":"doc://shared","text":"x","_meta":{"UI":{"csp":{}},"kept":1}}}],"_meta":{"ui":{},"kept":1}}`, nil
		}},
	}
	if strings.Contains(name, canary) {
		list = append(list, mcptest.Tool{Name: "hidden", ReadOnly: true, Do: say})
	}
	u := mcptest.New(list...)
	read := func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		app := mcp.Meta{"ui": map[string]any{"csp": "of " + name}, "ui/resourceUri": "ui://x", "kept": 1}
		return &mcp.ReadResourceResult{Meta: app, Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: name + " has it", Meta: app}}}, nil
	}
	originals := []string{"doc://shared", "ui://" + name}
	if strings.Contains(name, canary) {
		originals = append(originals, "doc://only")
	}
	for _, uri := range originals {
		u.MCP().AddResource(&mcp.Resource{URI: uri, Name: name, Meta: mcp.Meta{"ui": map[string]any{"prefersBorder": true}, "kept": 1}}, read)
	}
	u.MCP().AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "item://" + name + "/{id}", Name: name}, read)
	u.MCP().AddPrompt(&mcp.Prompt{Name: "review"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: name + " reviews"}}, {Role: "user", Content: &mcp.ResourceLink{URI: "doc://shared", Name: "l"}},
		}}, nil
	})
	return u
}

// memberSource is a source of servers and groups, which a test changes.
type memberSource struct {
	servers []upstream.Server

	mu     sync.Mutex
	groups []upstream.Group
	wrong  error
}

func (s *memberSource) Servers(context.Context) ([]upstream.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers, s.wrong
}

func (s *memberSource) Groups() []upstream.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups
}

func (s *memberSource) Watch(ctx context.Context, changed func()) error {
	<-ctx.Done()
	return nil
}

// regroup changes the groups.
func (s *memberSource) regroup(t *testing.T, pool *upstream.Pool, groups ...upstream.Group) {
	t.Helper()
	s.mu.Lock()
	s.groups = groups
	s.mu.Unlock()
	if c, err := pool.Reload(t.Context()); err != nil || c.Err != nil || !c.Groups {
		t.Fatalf("got %+v, %v", c, err)
	}
}

func allGroups() []upstream.Group {
	return []upstream.Group{
		{Name: "dev", Servers: []string{"alpha", "be*"}},
		{Name: "ops", Servers: []string{canary + "-*"}},
		{Name: "solo", Servers: []string{"alpha"}},
	}
}

// grouped is a gateway with groups of servers, which know what they offer.
type grouped struct {
	source  *memberSource
	pool    *upstream.Pool
	members map[string]*mcptest.Upstream
	kept    *runs.Store
	gateway *gateway.Gateway
	saved   string // the directory of saved pipelines, with [gateway.Options.PipelineTools]
}

func newGrouped(t *testing.T, o gateway.Options) *grouped {
	t.Helper()
	return newGroupedOver(t, o, upstream.Options{})
}

// newGroupedOver is newGrouped with options of its pool.
func newGroupedOver(t *testing.T, o gateway.Options, po upstream.Options) *grouped {
	t.Helper()
	g := &grouped{source: &memberSource{groups: allGroups()}, members: map[string]*mcptest.Upstream{}}
	for _, name := range []string{"alpha", "beta", canary + "-1", canary + "-2"} {
		g.members[name] = member(name)
		g.source.servers = append(g.source.servers, upstream.Server{Name: name, Dial: g.members[name].Dial, Version: "1"})
	}
	g.source.servers = append(g.source.servers, upstream.Server{Name: canary + "-broken", Version: "1", Dial: func(context.Context) (mcp.Transport, error) {
		return nil, errors.New(canary + " is dead")
	}})
	po.Sources, po.Expose = []upstream.Source{g.source}, []string{"*/*"}
	g.pool = mcptest.NewPool(t, po)
	g.pool.Catalog(t.Context())
	awaitOffers(t, g.pool, upstream.Prompts, 4)
	g.kept = runs.New(runs.Options{Dir: t.TempDir(), TTL: time.Hour, Head: 1 << 20, Output: 1 << 20, Total: 1 << 24})
	t.Cleanup(func() { g.kept.Close() })
	box := sharedSandbox(t)
	if o.PipelineTools != "" {
		g.saved = t.TempDir()
		deps := stages.Deps{Tools: g.pool, Commands: box, Schemas: schemas.Stages()}
		o.Pipelines = pipelines.NewSet(pipelines.NewStore(g.saved), deps, g.pool.Generation)
	}
	o.Upstream, o.Sandbox, o.Kept, o.GroupsOf, o.Version = g.pool, ready{box}, g.kept, auth.GroupsOf, "test"
	g.gateway = gateway.New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		g.gateway.Close(ctx)
	})
	return g
}

// A recorder keeps all that comes over HTTP.
type recorder struct {
	token string

	mu  sync.Mutex
	all bytes.Buffer
}

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	if r.token != "" {
		q.Header.Set("Authorization", "Bearer "+r.token)
	}
	w, err := http.DefaultTransport.RoundTrip(q)
	if err == nil {
		w.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(w.Body, r), w.Body}
		for name, values := range w.Header {
			fmt.Fprintln(r, name, values)
		}
	}
	return w, err
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// visit connects a client of an era to an address. The recorder has all that it gets.
func visit(url, token, era string) func(t *testing.T) (*mcp.ClientSession, *recorder, error) {
	return func(t *testing.T) (*mcp.ClientSession, *recorder, error) {
		r := &recorder{token: token}
		session, err := newClient().Connect(t.Context(), &mcp.StreamableClientTransport{
			Endpoint: url, HTTPClient: &http.Client{Transport: r}, MaxRetries: -1, DisableStandaloneSSE: true,
		}, &mcp.ClientSessionOptions{ProtocolVersion: era})
		if err == nil {
			t.Cleanup(func() { session.Close() })
		}
		return session, r, err
	}
}

// servers are the names that a client sees in the list of tools.
func servers(t *testing.T, agent *mcp.ClientSession) string {
	t.Helper()
	var names []string
	for line := range strings.Lines(called(t, agent, "list_all_tools", map[string]any{"detail": "names"})) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			names = append(names, strings.Fields(name)[0])
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// everyone serves a gateway to callers with tokens of a file and of an issuer, and returns their tokens.
func everyone(t *testing.T, g *grouped, withIssuer bool) (url string, callers map[string]string) {
	t.Helper()
	callers = map[string]string{"nobody": ""}
	path := filepath.Join(t.TempDir(), "tokens")
	var data []byte
	for name, groups := range map[string]string{"alice": "dev", "solo": "solo", "ops": "ops", "both": "dev,ops", "root": "*", "none": "", "lost": "gone"} {
		token, entry, err := tokens.New(name, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		entry.Groups, callers[name] = groups, token
		data = tokens.Add(data, entry)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := tokens.Open(path, tokens.Options{})
	if err != nil {
		t.Fatal(err)
	}
	guard := auth.Guard{Verifiers: []auth.Verifier{file}, Open: []string{"/healthz"}}
	if withIssuer {
		issuer := oidctest.New(t)
		i, err := oidc.New(oidc.Options{Issuer: issuer.URL, Audience: "a", Groups: "teams"})
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		guard.Verifiers = append(guard.Verifiers, i)
		for name, teams := range map[string]any{"oidc dev": []string{"dev", "other"}, "oidc ops": "ops", "oidc none": nil, "oidc star": "*"} {
			claims := issuer.Claims(name, "a")
			if teams != nil {
				claims["teams"] = teams
			}
			callers[name] = issuer.Sign("1", claims)
		}
	}
	server := httptest.NewServer(guard.Protect(g.gateway.Handler()))
	t.Cleanup(server.Close)
	return server.URL, callers
}

const (
	devs = "alpha beta resources"
	all  = "alpha beta " + canary + "-1 " + canary + "-2 " + canary + "-broken resources"
	ops  = canary + "-1 " + canary + "-2 " + canary + "-broken resources"
)

// TestGroupsOfCallers: who sees what at which path, in both eras.
func TestGroupsOfCallers(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	url, callers := everyone(t, g, true)
	for _, test := range []struct {
		caller, path string
		want         string // the servers, or what the error has
	}{
		{"alice", "/mcp", devs},
		{"alice", "/mcp/dev", devs},
		{"alice", "/mcp/ops", "Not Found"},
		{"alice", "/mcp/solo", "Not Found"}, // although it may use all of its servers
		{"alice", "/mcp/gone", "Not Found"},
		{"alice", "/mcp/dev/", "Not Found"},
		{"alice", "/mcp/de%76", devs},
		{"alice", "/mcp/dev%2fops", "Not Found"},
		{"solo", "/mcp", "alpha resources"},
		{"solo", "/mcp/solo", "alpha resources"},
		{"both", "/mcp", all},
		{"both", "/mcp/dev", devs},
		{"both", "/mcp/ops", ops},
		{"root", "/mcp", all},
		{"root", "/mcp/solo", "alpha resources"},
		{"root", "/mcp/gone", "Not Found"},
		{"none", "/mcp", ""},
		{"none", "/mcp/dev", "Not Found"},
		{"lost", "/mcp", ""},
		{"lost", "/mcp/gone", "Not Found"},
		{"nobody", "/mcp/dev", "Unauthorized"},
		{"nobody", "/mcp/gone", "Unauthorized"},
		{"oidc dev", "/mcp", devs},
		{"oidc dev", "/mcp/dev", devs},
		{"oidc dev", "/mcp/ops", "Not Found"},
		{"oidc dev", "/mcp/other", "Not Found"},
		{"oidc ops", "/mcp/ops", ops},
		{"oidc none", "/mcp", ""},
		{"oidc star", "/mcp", ""},
	} {
		for _, era := range eras {
			t.Run(test.caller+test.path+" "+era, func(t *testing.T) {
				agent, _, err := visit(url+test.path, callers[test.caller], era)(t)
				if err != nil {
					if !strings.Contains(err.Error(), test.want) || test.want == "" {
						t.Errorf("got %v, want %q", err, test.want)
					}
					return
				}
				if got := servers(t, agent); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		}
	}
}

// TestGroupsWithoutAuthentication: a group is a view, and its sessions belong to its path.
func TestGroupsWithoutAuthentication(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	server := httptest.NewServer(g.gateway.Handler())
	t.Cleanup(server.Close)
	for path, want := range map[string]string{
		"/mcp": all, "/mcp/dev": devs, "/mcp/ops": ops, "/mcp/solo": "alpha resources", "/mcp/gone": "Not Found", "/mcp/..%2fdev": "Not Found",
	} {
		for _, era := range eras {
			agent, _, err := visit(server.URL+path, "", era)(t)
			switch {
			case err != nil && (want != "Not Found" || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: got %v, want %q", path, err, want)
			case err == nil && servers(t, agent) != want:
				t.Errorf("%s: got %q, want %q", path, servers(t, agent), want)
			}
		}
	}
}

// TestClientNamesNoGroup: the header that carries the group inside is not taken from a client.
func TestClientNamesNoGroup(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	url, callers := everyone(t, g, false)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_all_tools","arguments":{"detail":"names"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_all_tools","arguments":{"detail":"names"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"x":1}}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call",
			"Mcp-Name": "list_all_tools", "Authorization": "Bearer " + callers["alice"], "Mcsh-Group": "ops",
		} {
			r.Header.Set(name, value)
		}
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(w.Body)
		w.Body.Close()
		if err != nil || !strings.Contains(string(body), "alpha") || strings.Contains(string(body), canary) {
			t.Errorf("got %s, %v", body, err)
		}
	}
}

// probes are requests whose replies could name a server that the caller may not know of. FOREIGN is the name of one.
var probes = []struct {
	name string
	ask  func(ctx context.Context, agent *mcp.ClientSession, foreign, run string) (any, error)
}{
	{"the tools of clients", func(ctx context.Context, agent *mcp.ClientSession, _, _ string) (any, error) {
		return agent.ListTools(ctx, nil)
	}},
	{"an exposed tool", tool("FOREIGN__lookup", `{}`)},
	{"an exposed tool that is misspelt", tool("FOREIGN__lookupp", `{}`)},
	{"an exposed tool by its original", tool("hidden", `{}`)},
	{"the news of a resource", subscribe("mcsh://servers/FOREIGN/doc://shared")},
	{"the news of an original", subscribe("doc://only")},
	{"all tools", tool("list_all_tools", `{}`)},
	{"a search", tool("list_all_tools", `{"query":"FOREIGN hidden lookup"}`)},
	{"a server", tool("list_all_tools", `{"server":["FOREIGN","FOREIG","alpha"]}`)},
	{"details", tool("get_tool_details", `{"tools":["FOREIGN/lookup","FOREIGN/nothing","alpha/hidden","alpha/lookup","alpha/lookup2"]}`)},
	{"a tool", run(`[{"type":"tool","server":"FOREIGN","name":"lookup"}]`)},
	{"a server that is misspelt", run(`[{"type":"tool","server":"FOREIGNN","name":"lookup"}]`)},
	{"a server that is short of it", run(`[{"type":"tool","server":"FOREIG","name":"lookup"}]`)},
	{"a tool of it by another server", run(`[{"type":"tool","server":"alpha","name":"hidden"}]`)},
	{"both in one name", run(`[{"type":"tool","server":"alpha","name":"FOREIGN/lookup"}]`)},
	{"for each", run(`[{"type":"command","command":"jq","args":["-n","{}"]},{"type":"tool","server":"FOREIGN","name":"lookup","for_each":true}]`)},
	{"the list of resources in a pipeline", run(`[{"type":"tool","server":"resources","name":"list"}]`)},
	{"the list of another", run(`[{"type":"tool","server":"resources","name":"list","args":{"server":"FOREIGN"}}]`)},
	{"an original of several", run(`[{"type":"tool","server":"resources","name":"read","args":{"uri":"doc://shared"}}]`)},
	{"an original of another", run(`[{"type":"tool","server":"resources","name":"read","args":{"uri":"doc://only"}}]`)},
	{"a resource of a named one", run(`[{"type":"tool","server":"resources","name":"read","args":{"uri":"doc://shared","server":"FOREIGN"}}]`)},
	{"over uris", run(`[{"type":"command","command":"jq","args":["-n","{uri: \"mcsh://servers/FOREIGN/doc://shared\"}"]},{"type":"tool","server":"resources","name":"read"}]`)},
	{"an effect", run(`[{"type":"tool","server":"alpha","name":"lookup"},{"type":"tool","server":"FOREIGN","name":"lookup","args":{"x":1}}]`)},
	{"a check", tool("execute_pipeline", `{"mode":"check","pipeline":[{"type":"tool","server":"FOREIGN","name":"lookup"}]}`)},
	{"a run of another group", func(ctx context.Context, agent *mcp.ClientSession, foreign, id string) (any, error) {
		return run(`[{"type":"from","run":"`+id+`"}]`)(ctx, agent, foreign, id)
	}},
	{"an output of another group", func(ctx context.Context, agent *mcp.ClientSession, _, id string) (any, error) {
		return agent.ReadResource(ctx, &mcp.ReadResourceParams{URI: "mcsh://runs/" + id + "/output"})
	}},
	{"resources", func(ctx context.Context, agent *mcp.ClientSession, _, _ string) (any, error) {
		return agent.ListResources(ctx, nil)
	}},
	{"templates", func(ctx context.Context, agent *mcp.ClientSession, _, _ string) (any, error) {
		return agent.ListResourceTemplates(ctx, nil)
	}},
	{"prompts", func(ctx context.Context, agent *mcp.ClientSession, _, _ string) (any, error) {
		return agent.ListPrompts(ctx, nil)
	}},
	{"an original", read("doc://shared")},
	{"another original", read("doc://only")},
	{"one that only a template fits", read("item://FOREIGN/7")},
	{"a resource", read("mcsh://servers/FOREIGN/doc://shared")},
	{"a resource in escapes", read("mcsh://servers/%46OREIGN/doc://shared")},
	{"a prompt", prompt("FOREIGN__review")},
	{"a prompt that is misspelt", prompt("FOREIGNN__review")},
	{"a prompt of several", prompt("review")},
	{"the completion of a prompt", func(ctx context.Context, agent *mcp.ClientSession, foreign, _ string) (any, error) {
		return agent.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: foreign + "__review"}, Argument: mcp.CompleteParamsArgument{Name: "x"}})
	}},
	{"the completion of a template", func(ctx context.Context, agent *mcp.ClientSession, foreign, _ string) (any, error) {
		return agent.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "item://" + foreign + "/{id}"}, Argument: mcp.CompleteParamsArgument{Name: "id"}})
	}},
}

func tool(name, args string) func(context.Context, *mcp.ClientSession, string, string) (any, error) {
	return func(ctx context.Context, agent *mcp.ClientSession, foreign, _ string) (any, error) {
		named := strings.NewReplacer("FOREIGN", foreign)
		return agent.CallTool(ctx, &mcp.CallToolParams{Name: named.Replace(name), Arguments: json.RawMessage(named.Replace(args))})
	}
}

func run(pipeline string) func(context.Context, *mcp.ClientSession, string, string) (any, error) {
	return tool("execute_pipeline", `{"pipeline":`+pipeline+`}`)
}

func read(uri string) func(context.Context, *mcp.ClientSession, string, string) (any, error) {
	return func(ctx context.Context, agent *mcp.ClientSession, foreign, _ string) (any, error) {
		return agent.ReadResource(ctx, &mcp.ReadResourceParams{URI: strings.ReplaceAll(strings.ReplaceAll(uri, "%46OREIGN", "%"+fmt.Sprintf("%x", foreign[0])+foreign[1:]), "FOREIGN", foreign)})
	}
}

func subscribe(uri string) func(context.Context, *mcp.ClientSession, string, string) (any, error) {
	return func(ctx context.Context, agent *mcp.ClientSession, foreign, _ string) (any, error) {
		return nil, agent.Subscribe(ctx, &mcp.SubscribeParams{URI: strings.ReplaceAll(uri, "FOREIGN", foreign)})
	}
}

func prompt(name string) func(context.Context, *mcp.ClientSession, string, string) (any, error) {
	return func(ctx context.Context, agent *mcp.ClientSession, foreign, _ string) (any, error) {
		return agent.GetPrompt(ctx, &mcp.GetPromptParams{Name: strings.ReplaceAll(name, "FOREIGN", foreign)})
	}
}

// probed is the reply to a probe, without what differs between two calls.
func probed(ctx context.Context, agent *mcp.ClientSession, i int, foreign, run string) string {
	res, err := probes[i].ask(ctx, agent, foreign, run)
	if call, ok := res.(*mcp.CallToolResult); ok && err == nil {
		call.Meta = nil
		for _, c := range call.Content {
			if text, ok := c.(*mcp.TextContent); ok && strings.HasPrefix(text.Text, "run r_") {
				text.Text = ""
			}
		}
	}
	text, merr := json.Marshal(res)
	said := strings.ReplaceAll(fmt.Sprintf("%s %v %v", text, err, merr), foreign, "FOREIGN")
	return runIDs.ReplaceAllString(said, "RUN")
}

// TestGroupsHideServers: no reply to a caller has the name of a server outside its groups, and the reply about such a server
// is that about one that is not there. A caller who may see it has other replies, so that the probes can fail.
func TestGroupsHideServers(t *testing.T) {
	t.Parallel()
	g := newGroupedOver(t, gateway.Options{}, upstream.Options{Pin: true})
	url, callers := everyone(t, g, false)
	g.members[canary+"-1"].Add(mcptest.Tool{Name: canary + "_new", Text: "x"})
	root, _, err := visit(url+"/mcp", callers["root"], eras[1])(t)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the new tool is held back", func() bool {
		return strings.Contains(called(t, root, "list_all_tools", map[string]any{}), canary+"_new")
	})
	both, _, err := visit(url+"/mcp/ops", callers["both"], eras[0])(t)
	if err != nil {
		t.Fatal(err)
	}
	_, foreignRun := pipe(t, both, `[{"type":"tool","server":"`+canary+`-1","name":"lookup"}]`)
	if foreignRun == "" {
		t.Fatal("the run is not kept")
	}
	visits, differ := 0, 0
	for v, viewer := range []struct{ caller, path string }{{"alice", "/mcp"}, {"alice", "/mcp/dev"}, {"both", "/mcp/dev"}, {"solo", "/mcp"}, {"root", "/mcp/solo"}, {"none", "/mcp"}} {
		for e, era := range eras {
			if e != v%len(eras) && !parttest.Night() {
				continue
			}
			visits++
			agent, heard, err := visit(url+viewer.path, callers[viewer.caller], era)(t)
			if err != nil {
				t.Fatal(err)
			}
			sees, _, err := visit(url+"/mcp", callers["root"], era)(t)
			if err != nil {
				t.Fatal(err)
			}
			for i, probe := range probes {
				name := fmt.Sprintf("%s%s %s: %s", viewer.caller, viewer.path, era, probe.name)
				hidden := probed(t.Context(), agent, i, canary+"-1", foreignRun)
				if missing := probed(t.Context(), agent, i, "qanary-9", "r_aaaaaaaaaaaaaaaaaaaaaaaaaa"); hidden != missing {
					t.Errorf("%s: about a hidden server\n%s\nand about none\n%s", name, hidden, missing)
				}
				if strings.Contains(strings.ToLower(hidden), canary) {
					t.Errorf("%s: got %s", name, hidden)
				}
				if probed(t.Context(), sees, i, canary+"-1", foreignRun) != hidden {
					differ++
				}
			}
			// What is asked with a name has it in the reply; all else has it nowhere.
			if text := strings.ReplaceAll(heard.text(), canary+"-1", ""); strings.Contains(text, canary) || strings.Contains(text, "dead") {
				t.Errorf("%s%s %s: heard\n%s", viewer.caller, viewer.path, era, text)
			}
		}
	}
	if differ < visits*len(probes)*3/4 {
		t.Errorf("only %d replies are others for a caller who sees all", differ)
	}
}

// TestGroupOnStdio: a gateway that serves one group has nothing else, on any transport.
func TestGroupOnStdio(t *testing.T) {
	for group, want := range map[string]string{"dev": devs, "solo": "alpha resources", "gone": "", "": all} {
		g := newGrouped(t, gateway.Options{Group: group})
		for _, era := range eras {
			server, client := mcp.NewInMemoryTransports()
			if _, err := g.gateway.Server().Connect(t.Context(), server, nil); err != nil {
				t.Fatal(err)
			}
			agent, err := newClient().Connect(t.Context(), client, &mcp.ClientSessionOptions{ProtocolVersion: era})
			if err != nil {
				t.Fatal(err)
			}
			if got := servers(t, agent); got != want {
				t.Errorf("%q: got %q, want %q", group, got, want)
			}
			for i, probe := range probes {
				if hidden := probed(t.Context(), agent, i, canary+"-1", "r_x"); group != "" && strings.Contains(hidden, canary) {
					t.Errorf("%q: %s: got %s", group, probe.name, hidden)
				}
			}
			agent.Close()
		}
		server := httptest.NewServer(g.gateway.Handler())
		for path, there := range map[string]bool{"/mcp": true, "/mcp/dev": group == "dev" || group == "", "/mcp/ops": group == ""} {
			agent, _, err := visit(server.URL+path, "", eras[1])(t)
			switch {
			case (err == nil) != there:
				t.Errorf("%q: %s: got %v", group, path, err)
			case path == "/mcp" && servers(t, agent) != want:
				t.Errorf("%q: %s: got %q", group, path, servers(t, agent))
			}
		}
		server.Close()
	}
}

// TestGroupRuns: what ran in one group is not there in another, with and without authentication.
func TestGroupRuns(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	url, callers := everyone(t, g, false)
	open := httptest.NewServer(g.gateway.Handler())
	t.Cleanup(open.Close)
	for _, test := range []struct{ base, token string }{{url, callers["both"]}, {open.URL, ""}} {
		for _, era := range eras {
			runs := map[string]string{}
			for _, path := range []string{"/mcp", "/mcp/dev", "/mcp/ops"} {
				agent, _, err := visit(test.base+path, test.token, era)(t)
				if err != nil {
					t.Fatal(err)
				}
				_, runs[path] = pipe(t, agent, `[{"type":"command","command":"jq","args":["-n","1"]}]`)
			}
			for from, id := range runs {
				for path := range runs {
					agent, _, err := visit(test.base+path, test.token, era)(t)
					if err != nil {
						t.Fatal(err)
					}
					_, err = agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcsh://runs/" + id + "/output"})
					text, _ := pipe(t, agent, `[{"type":"from","run":"`+id+`"}]`)
					if (err == nil) != (from == path) || strings.Contains(text, "UNKNOWN_RUN") == (from == path) {
						t.Errorf("the run of %s at %s: %v, %q", from, path, err, text)
					}
				}
			}
		}
	}
}

// TestGroupSessions: a session is there only at the path that opened it.
func TestGroupSessions(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	server := httptest.NewServer(g.gateway.Handler())
	t.Cleanup(server.Close)
	const direct = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"list_available_shell_commands","arguments":{}}}`
	for opened, others := range map[string][]string{"/mcp": {"/mcp/dev"}, "/mcp/dev": {"/mcp", "/mcp/ops"}} {
		agent, _, err := visit(server.URL+opened, "", eras[0])(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range append(others, opened) {
			for _, message := range []string{direct, `{"jsonrpc":"2.0","id":8,"method":"tools/list"}`} {
				g := &guarded{url: server.URL + path}
				status, text := g.send(t, http.MethodPost, "", agent.ID(), message)
				if want := map[bool]int{true: 200, false: 404}[path == opened]; status != want {
					t.Errorf("a session of %s at %s: got %d, %s", opened, path, status, text)
				}
			}
		}
	}
}

// TestRegrouped: sessions follow other groups with their next request.
func TestRegrouped(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	url, callers := everyone(t, g, false)
	for _, era := range eras {
		union, _, err := visit(url+"/mcp", callers["alice"], era)(t)
		if err != nil {
			t.Fatal(err)
		}
		group, _, err := visit(url+"/mcp/dev", callers["alice"], era)(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			groups []upstream.Group
			want   string
			there  bool
		}{
			{[]upstream.Group{{Name: "dev", Servers: []string{"beta"}}}, "beta resources", true},
			{[]upstream.Group{{Name: "other", Servers: []string{"*"}}}, "", false},
			{allGroups(), devs, true},
		} {
			g.source.regroup(t, g.pool, test.groups...)
			if got := servers(t, union); got != test.want {
				t.Errorf("%s: got %q, want %q", era, got, test.want)
			}
			if !test.there && era == eras[0] { // its client gives the session up
				_, err := group.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_all_tools"})
				if err == nil {
					t.Errorf("%s: the group is still there", era)
				}
				break
			}
			if test.there {
				if got := servers(t, group); got != test.want {
					t.Errorf("%s: in the group got %q, want %q", era, got, test.want)
				}
			}
		}
		if got := g.pool.Groups(t.Context()); len(got) != 3 {
			g.source.regroup(t, g.pool, allGroups()...)
		}
	}
}

// TestSavedInGroups: in every group, also in one of one server, the saved pipelines that call servers of the group are tools.
func TestSavedInGroups(t *testing.T) {
	g := newGrouped(t, gateway.Options{PipelineTools: "all"})
	for _, name := range []string{"alpha", "beta"} {
		text := fmt.Sprintf(`{"description":"d","pipeline":[{"type":"tool","server":%q,"name":"lookup"}]}`, name)
		if err := os.WriteFile(filepath.Join(g.saved, "of_"+name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(g.gateway.Handler())
	t.Cleanup(server.Close)
	for path, want := range map[string][]string{"/mcp/solo": {"of_alpha"}, "/mcp/dev": {"of_alpha", "of_beta"}} {
		for _, era := range eras {
			agent, _, err := visit(server.URL+path, "", era)(t)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(toolNames(t, agent), func(name string) bool { return !strings.HasPrefix(name, "of_") })
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s %s: got %q, want %q", path, era, got, want)
			}
			result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "of_alpha"})
			if err != nil || result.IsError {
				t.Errorf("%s %s: %v %+v", path, era, err, result)
			}
			if _, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "of_beta"}); (err == nil) != slices.Contains(want, "of_beta") {
				t.Errorf("%s %s: of_beta: %v", path, era, err)
			}
		}
	}
}

// TestGroupOfOne: in a group that names one server, names, URIs and the metadata of apps are those of the server; in any
// other the URIs name the server, and the metadata of apps is taken off.
func TestGroupOfOne(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	server := httptest.NewServer(g.gateway.Handler())
	t.Cleanup(server.Close)
	for path, want := range map[string][]string{
		"/mcp/solo": {
			`doc://shared {"kept":1,"ui":{"prefersBorder":true}}`, `ui://alpha {"kept":1,"ui":{"prefersBorder":true}}`, "item://alpha/{id}", "review",
			`doc://shared {"kept":1,"ui":{"csp":"of alpha"},"ui/resourceUri":"ui://x"} alpha has it {"kept":1,"ui":{"csp":"of alpha"},"ui/resourceUri":"ui://x"}`,
			"alpha reviews doc://shared",
			`ui://alpha {"kept":1,"ui":{"resourceUri":"ui://x"}}`, `doc://shared {"UI":{"csp":{}},"kept":1}`,
			"alpha_tool {}", "link {}", `lookup {"UI/x":1,"kept":1,"ui":{"resourceUri":"ui://x"}}`, `called {"kept":1,"ui":{}}`,
			`ui://alpha {"kept":1,"ui":{"resourceUri":"ui://x"}}`, `doc://shared {"UI":{"csp":{}},"kept":1}`,
		},
		"/mcp/dev": {
			`mcsh://servers/alpha/doc://shared {"kept":1}`, `mcsh://servers/alpha/ui://alpha {"kept":1}`, `mcsh://servers/beta/doc://shared {"kept":1}`,
			`mcsh://servers/beta/ui://beta {"kept":1}`, "mcsh://servers/alpha/item://alpha/{id}", "mcsh://servers/beta/item://beta/{id}", "alpha__review", "beta__review",
			`mcsh://servers/alpha/doc://shared {"kept":1} alpha has it {"kept":1}`,
			"alpha reviews mcsh://servers/alpha/doc://shared",
			`mcsh://servers/alpha/ui://alpha {"kept":1}`, `mcsh://servers/alpha/doc://shared {"kept":1}`,
			"alpha__alpha_tool {}", "alpha__link {}", `alpha__lookup {"kept":1}`, "beta__beta_tool {}", "beta__link {}", `beta__lookup {"kept":1}`, `called {"kept":1}`,
			`mcsh://servers/alpha/ui://alpha {"kept":1}`, `mcsh://servers/alpha/doc://shared {"kept":1}`,
		},
	} {
		for _, era := range eras {
			agent, _, err := visit(server.URL+path, "", era)(t)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, whatAgentGets(t, agent)); d != "" {
				t.Errorf("%s %s: %s", path, era, d)
			}
		}
	}
}

// whatAgentGets lists and uses what servers offer, by the first names in lists.
func whatAgentGets(t *testing.T, agent *mcp.ClientSession) (got []string) {
	t.Helper()
	meta := func(m mcp.Meta) string {
		own := mcp.Meta{}
		for name, value := range m {
			if !strings.HasPrefix(name, "io.modelcontextprotocol/") {
				own[name] = value
			}
		}
		text, err := json.Marshal(own)
		return string(text) + strings.TrimPrefix(fmt.Sprint(err), "<nil>")
	}
	resources, err := agent.ListResources(t.Context(), nil)
	templates, terr := agent.ListResourceTemplates(t.Context(), nil)
	prompts, perr := agent.ListPrompts(t.Context(), nil)
	if err := errors.Join(err, terr, perr); err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.Resources {
		got = append(got, r.URI+" "+meta(r.Meta))
	}
	for _, r := range templates.ResourceTemplates {
		if !strings.HasPrefix(r.URITemplate, "mcsh://runs/") {
			got = append(got, r.URITemplate)
		}
	}
	for _, p := range prompts.Prompts {
		got = append(got, p.Name)
	}
	read, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: resources.Resources[0].URI})
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, strings.Join([]string{read.Contents[0].URI, meta(read.Contents[0].Meta), read.Contents[0].Text, meta(read.Meta)}, " "))
	said, err := agent.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompts.Prompts[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, said.Messages[0].Content.(*mcp.TextContent).Text+" "+said.Messages[1].Content.(*mcp.ResourceLink).URI)
	res, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(`{"pipeline":[{"type":"tool","server":"alpha","name":"link"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	blocks := func(list []mcp.Content) {
		for _, c := range list {
			switch c := c.(type) {
			case *mcp.ResourceLink:
				got = append(got, c.URI+" "+meta(c.Meta))
			case *mcp.EmbeddedResource:
				got = append(got, c.Resource.URI+" "+meta(c.Resource.Meta))
			}
		}
	}
	blocks(res.Content)
	link := ""
	for _, tool := range exposedTo(t, agent) {
		got = append(got, tool.Name+" "+meta(tool.Meta))
		if link == "" && strings.HasSuffix(tool.Name, "link") {
			link = tool.Name
		}
	}
	if res, err = agent.CallTool(t.Context(), &mcp.CallToolParams{Name: link}); err != nil {
		t.Fatal(err)
	}
	got = append(got, "called "+meta(res.Meta))
	blocks(res.Content)
	return got
}

// TestGroupNotices: a client hears of changed lists of its own servers, and not of others.
func TestGroupNotices(t *testing.T) {
	t.Parallel()
	for _, era := range eras {
		for name, tools := range map[string]bool{era: false, era + " tools": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testGroupNotices(t, era, tools)
			})
		}
	}
}

func testGroupNotices(t *testing.T, era string, tools bool) {
	g := newGrouped(t, gateway.Options{})
	server := httptest.NewServer(g.gateway.Handler())
	t.Cleanup(server.Close)
	heard := map[string]chan string{}
	for _, path := range []string{"/mcp/ops", "/mcp/dev"} {
		news := make(chan string, 100)
		heard[path] = news
		o := &mcp.ClientOptions{PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { news <- path }}
		if tools {
			o = &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { news <- path }}
		}
		agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, o).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: server.URL + path}, &mcp.ClientSessionOptions{ProtocolVersion: era})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { agent.Close() })
		called(t, agent, "list_all_tools", map[string]any{})
	}
	add := func(name, prompt string) {
		if tools {
			g.members[name].Add(mcptest.Tool{Name: prompt, Text: "x"})
			return
		}
		g.members[name].MCP().AddPrompt(&mcp.Prompt{Name: prompt}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	}
	wait := func(path string) {
		t.Helper()
		select {
		case <-heard[path]:
		case <-time.After(time.Minute):
			t.Fatalf("no news at %s", path)
		}
	}
	for round := range 3 { // news of the first rounds have come everywhere before the last one has
		add(canary+"-1", fmt.Sprint("first", round))
		wait("/mcp/ops")
	}
	if n := len(heard["/mcp/dev"]); n > 0 {
		t.Errorf("%d news of others at /mcp/dev", n)
	}
	add("beta", "second")
	wait("/mcp/dev")
	if names := promptsOf(t, g, "dev"); !tools && (!slices.Contains(names, "second") || slices.Contains(names, "first0")) {
		t.Errorf("got %q", names)
	}
}

func promptsOf(t *testing.T, g *grouped, group string) (names []string) {
	t.Helper()
	for _, o := range g.pool.Offers(upstream.WithView(t.Context(), g.pool.View(group)), upstream.Prompts) {
		names = append(names, o.Key)
	}
	return names
}

// TestWrongConfigurationInView: a mistake in the configuration, which may name other servers, is not shown to a caller of a
// group.
func TestWrongConfigurationInView(t *testing.T) {
	g := newGrouped(t, gateway.Options{})
	url, callers := everyone(t, g, false)
	g.source.mu.Lock()
	g.source.wrong = errors.New(canary + ".json:7: it is wrong")
	g.source.mu.Unlock()
	if c, err := g.pool.Reload(t.Context()); err != nil || c.Err == nil {
		t.Fatalf("got %+v, %v", c, err)
	}
	for caller, names := range map[string]bool{"root": true, "alice": false, "none": false} {
		agent, heard, err := visit(url+"/mcp", callers[caller], eras[1])(t)
		if err != nil {
			t.Fatal(err)
		}
		text := called(t, agent, "list_all_tools", map[string]any{})
		if !strings.HasPrefix(text, "note: the configuration has changed and is wrong; the one before is in use: ") || strings.Contains(heard.text(), canary) != names {
			t.Errorf("%s: got %s", caller, text)
		}
		if caller == "none" && !strings.Contains(text, "There are no MCP servers for you here") {
			t.Errorf("%s: got %s", caller, text)
		}
	}
}
