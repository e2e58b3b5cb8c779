package toolhive

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcsh-dev/mcsh/upstream"
)

// TestList reads lists as ToolHive gives them. Each file of testdata/lists.txtar is an answer; NAME.want beside it has
// a line per server: what becomes of it.
func TestList(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/lists.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	for name, answer := range files {
		if strings.HasSuffix(name, ".want") {
			continue
		}
		if diff := cmp.Diff(files[name+".want"], becomes(answer)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestLongLists: entries that are too long or too many are refused before they are decoded, and reserved names are left out.
func TestLongLists(t *testing.T) {
	labels := strings.Repeat(`"x":"y",`, 10_000)
	for answer, want := range map[string]string{
		`{"workloads":[{"name":"a","labels":{` + labels + `"z":""}},{"name":"b"}]}`: "flaw: workload 1: it has ",
		`{"workloads":[` + strings.Repeat("1,", 1<<20) + `1]}`:                      "it has more than 10000",
		`{"workloads":[{"name":"resources"},{"name":"b"}]}`:                         `flaw: workload 1: its name "resources" is reserved`,
	} {
		var got string
		used := testing.AllocsPerRun(1, func() { got = becomes(answer) })
		if !strings.Contains(got, want) || used > 100_000 {
			t.Errorf("got %.200s with %v allocations, want %q", got, used, want)
		}
	}
}

// becomes says what becomes of the workloads of an answer.
func becomes(answer string) string {
	list, flaws, err := parseList([]byte(answer))
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, w := range list {
		s := statusOf(w)
		switch address, sse, err := addressOf(w, ""); {
		case s.absent:
			fmt.Fprintf(&b, "%s: absent\n", w.Name)
		case s.why != "":
			fmt.Fprintf(&b, "%s: down: %s; %s\n", w.Name, s.why, s.hint)
		case err != nil:
			fmt.Fprintf(&b, "%s: down: %v\n", w.Name, err)
		default:
			order := ""
			if new(Options).entry(w, anAPI).Protocol == upstream.OlderFirst {
				order = " older era first"
			}
			fmt.Fprintf(&b, "%s: %s sse=%t%s\n", w.Name, address, sse, order)
		}
	}
	for _, f := range flaws {
		fmt.Fprintf(&b, "flaw: %s\n", f)
	}
	return b.String()
}

// anAPI is one on another host.
var anAPI = address{base: &url.URL{Scheme: "http", Host: "10.0.0.5:8080"}, given: true}

func TestAddress(t *testing.T) {
	tests := []struct{ name, url, proxy, transport, apiHost, want string }{
		{"streamable", "http://127.0.0.1:41596/mcp", "streamable-http", "stdio", "", "http://127.0.0.1:41596/mcp"},
		{"fragment", "http://127.0.0.1:11713/sse#delta", "sse", "stdio", "", "http://127.0.0.1:11713/sse sse"},
		{"fragment with escapes", "http://127.0.0.1:11713/sse#a%2Fb%23c", "sse", "stdio", "", "http://127.0.0.1:11713/sse sse"},
		{"old, stdio behind SSE", "http://127.0.0.1:1/sse#x", "", "stdio", "", "http://127.0.0.1:1/sse sse"},
		{"old, stdio behind HTTP", "http://127.0.0.1:1/mcp", "", "stdio", "", "http://127.0.0.1:1/mcp"},
		{"old, SSE", "http://127.0.0.1:1/messages", "", "sse", "", "http://127.0.0.1:1/messages sse"},
		{"nothing said", "http://127.0.0.1:1/sse/", "", "", "", "http://127.0.0.1:1/sse/ sse"},
		{"remote without a path", "http://127.0.0.1:16873", "streamable-http", "streamable-http", "", "http://127.0.0.1:16873"},
		{"remote with a path", "http://127.0.0.1:1/v1/mcp?x=127.0.0.1", "streamable-http", "", "10.0.0.5", "http://10.0.0.5:1/v1/mcp?x=127.0.0.1"},
		{"the API elsewhere", "http://127.0.0.1:1/127.0.0.1", "streamable-http", "", "host.docker.internal", "http://host.docker.internal:1/127.0.0.1"},
		{"localhost", "http://localhost:1/mcp", "streamable-http", "", "10.0.0.5", "http://10.0.0.5:1/mcp"},
		{"IPv6 host", "http://[::1]:1/mcp", "streamable-http", "", "fe00::1", "http://[fe00::1]:1/mcp"},
		{"no port", "http://127.0.0.1/mcp", "streamable-http", "", "", "error: ToolHive gives no port for it yet"},
		{"not loopback stays", "http://192.0.2.7:1/mcp", "streamable-http", "", "10.0.0.5", "http://192.0.2.7:1/mcp"},
		{"the API on loopback", "http://127.0.0.1:1/mcp", "streamable-http", "", "::1", "http://127.0.0.1:1/mcp"},
		{"port 0", "http://127.0.0.1:0/mcp", "streamable-http", "", "", "error: ToolHive gives no port for it yet"},
		{"no address", "", "streamable-http", "", "", "error: ToolHive gives no address for it"},
		{"a password", "http://u:p@127.0.0.1:1/mcp", "", "sse", "", "error: the address that ToolHive gives contains a password"},
		{"no HTTP", "file:///etc/passwd", "sse", "", "", "error: the address that ToolHive gives is not an HTTP address"},
		{"no URL", "http://127.0.0.1:x/", "sse", "", "", "error: the address that ToolHive gives cannot be read"},
		{"a new protocol", "http://127.0.0.1:1/ws", "websocket", "", "", `error: its proxy speaks "websocket", and only streamable-http and sse are known here`},
	}
	for _, tt := range tests {
		address, sse, err := addressOf(Workload{URL: tt.url, ProxyMode: tt.proxy, TransportType: tt.transport}, tt.apiHost)
		got := address
		if sse {
			got += " sse"
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestFilter(t *testing.T) {
	w := Workload{Name: "git/hub-1", Group: "tools", Labels: map[string]string{"team": "blue", "x": ""}}
	tests := []struct {
		filter Filter
		want   bool
	}{
		{Filter{}, true},
		{Filter{Groups: []string{"tools"}}, true},
		{Filter{Groups: []string{"other", "to*"}}, true},
		{Filter{Groups: []string{"other"}}, false},
		{Filter{Groups: []string{"!tools"}}, false},
		{Filter{Groups: []string{"!other"}}, true},
		{Filter{Groups: []string{"tools", "!t*"}}, false},
		{Filter{Names: []string{"git*"}}, true},
		{Filter{Names: []string{"git?hub-[0-9]"}}, true},
		{Filter{Names: []string{"hub*"}}, false},
		{Filter{Labels: []string{"team"}}, true},
		{Filter{Labels: []string{"team=b*"}}, true},
		{Filter{Labels: []string{"team=red"}}, false},
		{Filter{Labels: []string{"!team=red"}}, true},
		{Filter{Labels: []string{"!team"}}, false},
		{Filter{Labels: []string{"x="}}, true},
		{Filter{Labels: []string{"y"}}, false},
		{Filter{Groups: []string{"tools"}, Names: []string{"!git*"}}, false},
	}
	for _, tt := range tests {
		if got := tt.filter.match(w); got != tt.want {
			t.Errorf("%+v: got %t", tt.filter, got)
		}
	}
	for _, wrong := range []Options{
		{Filter: Filter{Names: []string{"["}}},
		{Filter: Filter{Groups: []string{"!"}}},
		{Filter: Filter{Labels: []string{""}}},
		{Headers: []Headers{{Workload: "["}}},
		{URL: "ftp://x"},
		{URL: "unix://host/x"},
		{URL: "unix:///a/../b"},
		{URL: "npipe://thv"},
	} {
		if _, err := New(wrong); err == nil {
			t.Errorf("%+v: no error", wrong)
		}
	}
}

// FuzzList: no answer breaks the reader, and what it gives is sorted, unique and has addresses that can be dialled.
func FuzzList(f *testing.F) {
	data, err := os.ReadFile("testdata/lists.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range txtar.Parse(data).Files {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		list, flaws, err := parseList(answer)
		if err != nil && (list != nil || flaws != nil) {
			t.Fatalf("an error and a list: %v", err)
		}
		if !slices.IsSortedFunc(list, func(a, b Workload) int { return strings.Compare(a.Name, b.Name) }) || len(flaws) > maxFlaws {
			t.Fatalf("%d flaws, %q", len(flaws), list)
		}
		o := Options{}
		for i, w := range list {
			if w.Name == "" || i > 0 && w.Name == list[i-1].Name {
				t.Fatalf("name %q", w.Name)
			}
			address, _, err := addressOf(w, "10.0.0.5")
			if err == nil && (strings.Contains(address, "#") || !strings.HasPrefix(address, "http")) {
				t.Fatalf("address %q", address)
			}
			if e := o.entry(w, anAPI); e.Dial == nil || e.Version == "" {
				t.Fatalf("server %+v", e)
			}
		}
	})
}

// FuzzDiscovery: a file that is believed leads to loopback or to a socket.
func FuzzDiscovery(f *testing.F) {
	for _, seed := range []string{
		`{"url":"http://127.0.0.1:18081","pid":14087,"nonce":"ee62"}`, `{"url":"unix:///home/u/thv.sock","nonce":"1"}`,
		`{"url":"http://localhost:1","nonce":"1"}`, `{"url":"http://[::1]:1","nonce":"1"}`, `{"url":"http://127.0.0.1@evil:1","nonce":"1"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseDiscovery(data)
		if err == nil && (p.nonce == "" || p.socket == "" && !isLoopback(p.base.Hostname())) {
			t.Fatalf("%s is believed: %+v", data, p)
		}
		if err == nil && !json.Valid(data) {
			t.Fatal("not JSON")
		}
	})
}

// TestHeadersNeedCertainty: a secret for a workload goes nowhere on the word of a ToolHive that anybody may run.
func TestHeadersNeedCertainty(t *testing.T) {
	o := Options{Headers: []Headers{{Workload: "git*", Header: http.Header{"Authorization": {"Bearer t0k3n"}}}}}
	for _, tt := range []struct {
		name    string
		certain bool
		want    string // of the error, or empty
	}{
		{"github", true, ""},
		{"github", false, "whose owner is not certain"},
		{"other", false, ""},
	} {
		a := address{base: anAPI.base, anyOwner: !tt.certain, given: tt.certain}
		s := o.entry(Workload{Name: tt.name, Status: "running", URL: "http://127.0.0.1:1/mcp"}, a)
		_, err := s.Dial(t.Context())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, certain %t: got %v", tt.name, tt.certain, err)
		}
	}
}

// TestTake: one list that misses a server does not end it, two do.
func TestTake(t *testing.T) {
	up := entry{Server: upstream.Server{Name: "b", Version: "1"}, up: true}
	down := entry{Server: upstream.Server{Name: "b", Version: "down"}}
	other := entry{Server: upstream.Server{Name: "a", Version: "1"}, up: true}
	tests := []struct {
		name  string
		lists [][]entry // after one with up
		want  string    // names and versions, and whether each list was a change
	}{
		{"the same", [][]entry{{up}}, "b 1 false"},
		{"another", [][]entry{{other, up}}, "a 1 b 1 true"},
		{"gone once", [][]entry{{}, {up}}, "b 1 false false"},
		{"gone", [][]entry{{}, {}}, "false true"},
		{"gone once, twice", [][]entry{{}, {up}, {}}, "b 1 false false false"},
		{"down once", [][]entry{{down}, {up}}, "b 1 false false"},
		{"down", [][]entry{{other, down}, {other, down}}, "a 1 b down true true"},
		{"down, then gone", [][]entry{{down}, {}}, "false true"},
	}
	for _, tt := range tests {
		s := &Source{list: []entry{up}}
		var changes []string
		for _, list := range tt.lists {
			changes = append(changes, fmt.Sprint(s.take(slices.Clone(list))))
		}
		var got []string
		for _, e := range s.list {
			got = append(got, e.Name, e.Version)
		}
		if text := strings.Join(append(got, changes...), " "); text != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, text, tt.want)
		}
	}
}
