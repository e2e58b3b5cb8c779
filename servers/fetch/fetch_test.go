package fetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/mcsh-dev/mcsh/servers/fetch"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

func connect(t testing.TB, o fetch.Options) *servertest.Client {
	t.Helper()
	server, err := fetch.New(o)
	return servertest.Connect(t, server, err)
}

// serve answers every path with the handler of its name.
func serve(t testing.TB, pages map[string]http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	for path, page := range pages {
		mux.Handle(path, page)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// page answers with a type and a body.
func page(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		io.WriteString(w, body)
	}
}

// args writes arguments, of which BASE stands for a server's.
func args(base, text string) string { return strings.ReplaceAll(text, "BASE", base) }

const png = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"

func TestBodies(t *testing.T) {
	const jsonText = "[\n  {\"id\": 9007199254740993, \"x\": \"\\u00e9<&>\", \"n\": 1.0}\n]\n"
	const article = `<html><head><title>T</title><script>evil()</script></head><body><h1>Hi</h1><p>See <a href="/a?b=1">this</a> and <b>that</b>.</p><ul><li>one</li></ul></body></html>`
	const converted = "# Hi\n\nSee [this](BASE/a?b=1) and **that**.\n\n- one"
	base := serve(t, map[string]http.HandlerFunc{
		"/json":       page("application/json", jsonText),
		"/problem":    page("application/vnd.api+json; charset=utf-8", `{"a":1}`),
		"/bomjson":    page("application/json", "\ufeff[1]"),
		"/badjson":    page("application/json", "[\"\xff\xfe\"]"),
		"/utf16json":  page("application/json; charset=utf-16le", "[\x001\x00]\x00"),
		"/html":       page("text/html; charset=utf-8", article),
		"/sniffed":    page("", article),
		"/text":       page("text/plain; charset=utf-8", "plain <b>é</b>\n"),
		"/untyped":    page("", "just text"),
		"/csv":        page("text/csv", "a,b\r\n1,2\r\n"),
		"/xml":        page("application/atom+xml", "<feed/>"),
		"/source":     page("application/octet-stream", "package x\n"),
		"/strange":    page("text/plain; charset=klingon", "ok é"),
		"/latin":      page("text/plain; charset=iso-8859-1", "caf\xe9"),
		"/undeclared": page("text/plain", "caf\xe9 \x80"),
		"/sjis":       page("text/html; charset=Shift_JIS", "<p>\x93\xfa\x96\x7b</p>"),
		"/meta":       page("text/html", "<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>"),
		"/lateutf8":   page("text/html", "<p>"+strings.Repeat("x", 2000)+"é</p>"),
		"/utf16":      page("text/plain", "\xff\xfeh\x00i\x00"),
		"/malformed":  page("text/html;;;=", "<p>x</p>"),
		"/empty":      page("text/plain", ""),
		"/none":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"/zip":        page("application/zip", "PK\x03\x04\x00\x00"),
		"/fakepng":    page("image/png", "\x00\x01"),
	})
	c := connect(t, fetch.Options{AllowPrivate: true})
	for _, tt := range []struct{ args, want string }{
		{`{"url":"BASE/json"}`, jsonText},
		{`{"url":"BASE/json","as":"raw"}`, jsonText},
		{`{"url":"BASE/problem"}`, `{"a":1}`},
		{`{"url":"BASE/bomjson"}`, `[1]`},
		{`{"url":"BASE/badjson"}`, "[\"\ufffd\ufffd\"]"},
		{`{"url":"BASE/utf16json"}`, `[1]`},
		{`{"url":"BASE/html"}`, converted},
		{`{"url":"BASE/html","as":"raw"}`, article},
		{`{"url":"BASE/sniffed"}`, converted},
		{`{"url":"BASE/text"}`, "plain <b>é</b>\n"},
		{`{"url":"BASE/text","as":"markdown"}`, "plain **é**"},
		{`{"url":"BASE/untyped"}`, "just text"},
		{`{"url":"BASE/csv"}`, "a,b\r\n1,2\r\n"},
		{`{"url":"BASE/xml"}`, "<feed/>"},
		{`{"url":"BASE/source"}`, "package x\n"},
		{`{"url":"BASE/strange"}`, "ok é"},
		{`{"url":"BASE/latin"}`, "café"},
		{`{"url":"BASE/undeclared"}`, "café €"},
		{`{"url":"BASE/sjis"}`, "日本"},
		{`{"url":"BASE/meta"}`, "Привет"},
		{`{"url":"BASE/lateutf8"}`, strings.Repeat("x", 2000) + "é"},
		{`{"url":"BASE/utf16"}`, "hi"},
		{`{"url":"BASE/malformed"}`, "x"},
		{`{"url":"BASE/empty"}`, ""},
		{`{"url":"BASE/none"}`, ""},
		{`{"url":" BASE/json#part ","max_bytes":1000}`, jsonText},

		{`{"url":"BASE/zip"}`, "!BadContent: the body is binary: 6 bytes of application/zip; only text, JSON, HTML and images are returned"},
		{`{"url":"BASE/fakepng"}`, "!BadContent: the body is binary: 2 bytes of image/png; only text, JSON, HTML and images are returned"},
		{`{"url":"BASE/missing"}`, "!HttpStatus: 404 Not Found from GET BASE/missing\n404 page not found"},
		{`{"url":"BASE/json","max_bytes":5}`, "!LimitExceeded: the body may have 5 bytes and has 59 bytes; ask for less, or for up to 67108864 with max_bytes"},
		{`{"url":"BASE/json","max_bytes":0}`, "!InvalidArgument: max_bytes is 0, want 1 to 67108864"},
		{`{"url":"BASE/json","max_bytes":99999999999}`, "!InvalidArgument: max_bytes is 99999999999, want 1 to 67108864"},
		{`{"url":"BASE/json","as":"pdf"}`, `!InvalidArgument: as is "pdf", want one of auto, raw, markdown`},
		{`{"url":"BASE/json","method":"POST"}`, `!InvalidArgument: unknown argument "method"; known: url, headers, max_bytes, as`},
	} {
		want, fails := strings.CutPrefix(args(base, tt.want), "!")
		if r := c.Call(t, "fetch", args(base, tt.args)); r.Text != want || r.Error != fails {
			t.Errorf("%s:\n got %q (error %v)\nwant %q", tt.args, r.Text, r.Error, want)
		}
	}
}

func TestMeta(t *testing.T) {
	base := serve(t, map[string]http.HandlerFunc{
		"/a": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/b?x=1", http.StatusFound) },
		"/b": page("text/plain; charset=latin1", "\xe9"),
		"/busy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, strings.Repeat("busy ", 1000), http.StatusTooManyRequests)
		},
		"/image": page("image/png", png),
	})
	c := connect(t, fetch.Options{AllowPrivate: true})
	for path, want := range map[string]map[string]any{
		"/a":     {"url": base + "/b?x=1", "status": 200.0, "content_type": "text/plain; charset=latin1", "charset": "windows-1252", "bytes": 1.0},
		"/busy":  {"url": base + "/busy", "status": 429.0, "content_type": "text/plain; charset=utf-8", "bytes": 5001.0, "retry_after": "7"},
		"/image": {"url": base + "/image", "status": 200.0, "content_type": "image/png", "bytes": float64(len(png))},
	} {
		r := c.Call(t, "fetch", args(base, `{"url":"BASE`+path+`"}`))
		if diff := cmp.Diff(want, r.Meta["mcsh/http"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	r := c.Call(t, "fetch", args(base, `{"url":"BASE/busy"}`))
	if !strings.HasPrefix(r.Text, "HttpStatus: 429 Too Many Requests from GET "+base+"/busy (retry-after: 7)\nbusy busy") || len(r.Text) > 2200 {
		t.Errorf("got %.200q, %d bytes", r.Text, len(r.Text))
	}
	image := c.Call(t, "fetch", args(base, `{"url":"BASE/image"}`))
	block, ok := image.Content[0].(*mcp.ImageContent)
	if !ok || block.MIMEType != "image/png" || string(block.Data) != png {
		t.Errorf("got %+v", image.Content)
	}
}

// TestUsers is the pipeline that documentation shows first: the URLs in one answer are the arguments of the next calls.
func TestUsers(t *testing.T) {
	var base string
	mux := http.NewServeMux()
	mux.HandleFunc("/users", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"profile_url": "%s/users/1"}, {"profile_url": "%s/users/2"}]`, base, base)
	})
	mux.HandleFunc("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":"user %s","active":true}`, r.PathValue("id"))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	base = s.URL
	c := connect(t, fetch.Options{AllowHosts: []string{"127.0.0.1"}})
	var users []struct {
		URL string `json:"profile_url"`
	}
	if err := json.Unmarshal([]byte(c.Call(t, "fetch", `{"url":"`+base+`/users"}`).Text), &users); err != nil {
		t.Fatal(err)
	}
	for i, u := range users {
		got := c.Call(t, "fetch", `{"url":"`+u.URL+`"}`).Text
		if want := fmt.Sprintf(`{"name":"user %d","active":true}`, i+1); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if len(users) != 2 {
		t.Errorf("got %d users, want 2", len(users))
	}
}

func TestRequest(t *testing.T) {
	base := serve(t, map[string]http.HandlerFunc{
		"/echo": func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Answer", "42")
			json.NewEncoder(w).Encode([]string{r.Method, r.Header.Get("Content-Type"), string(body), r.Header.Get("X-Key"), r.Header.Get("User-Agent")})
		},
	})
	c := connect(t, fetch.Options{AllowPrivate: true})
	const agent = `"mcsh-fetch (+https://github.com/mcsh-dev/mcsh)"]` + "\n"
	for _, tt := range []struct{ args, want string }{
		{`{"method":"GET","url":"BASE/echo"}`, `["GET","","","",` + agent},
		{`{"method":"POST","url":"BASE/echo","body":"hello"}`, `["POST","text/plain; charset=utf-8","hello","",` + agent},
		{`{"method":"POST","url":"BASE/echo","body":"{\"a\": 1}"}`, `["POST","application/json","{\"a\": 1}","",` + agent},
		{`{"method":"PUT","url":"BASE/echo","body":{"id": 9007199254740993}}`, `["PUT","application/json","{\"id\":9007199254740993}","",` + agent},
		{`{"method":"PATCH","url":"BASE/echo","body":[1],"headers":{"content-type":"application/x","x-key":"k"}}`, `["PATCH","application/x","[1]","k",` + agent},
		{`{"method":"DELETE","url":"BASE/echo"}`, `["DELETE","","","",` + agent},
		{`{"method":"POST","url":"BASE/echo","headers":{"User-Agent":"me"}}`, `["POST","","","","me"]` + "\n"},

		{`{"url":"BASE/echo"}`, `!InvalidArgument: argument "method" is missing`},
		{`{"method":"get","url":"BASE/echo"}`, `!InvalidArgument: method is "get", want one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS`},
		{`{"method":"CONNECT","url":"BASE/echo"}`, `!InvalidArgument: method is "CONNECT", want one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS`},
		{`{"method":"GET","url":"BASE/echo","body":"x"}`, `!InvalidArgument: a GET request has no body; use POST, or put it into the URL's query`},
		{`{"method":"POST","url":"BASE/echo","body":7}`, `!InvalidArgument: body is 7, want a string, an object or an array; send other JSON values as a string`},
		{`{"method":"POST","url":"BASE/echo","headers":{"Host":"x"}}`, `!InvalidArgument: the header Host cannot be set: it follows from the URL; leave it out`},
		{`{"method":"POST","url":"BASE/echo","headers":{"transfer-encoding":"x"}}`, `!InvalidArgument: the header Transfer-Encoding cannot be set: it belongs to the connection; leave it out`},
		{`{"method":"POST","url":"BASE/echo","headers":{"accept-encoding":"br"}}`, `!InvalidArgument: the header Accept-Encoding cannot be set: compression is handled here; leave it out`},
		{`{"method":"POST","url":"BASE/echo","headers":{"X-A":"a\r\nX-B: b"}}`, `!InvalidArgument: the value of the header X-A contains control characters`},
		{`{"method":"POST","url":"BASE/echo","headers":{"X A":"a"}}`, `!InvalidArgument: "X A" is not a header name`},
		{`{"method":"POST","url":"BASE/echo","headers":{"":"a"}}`, `!InvalidArgument: "" is not a header name`},
		{`{"method":"POST","url":"BASE/echo","headers":{"x-a":"a","X-A":"b"}}`, `!InvalidArgument: the header X-A is given twice`},
		{`{"method":"POST","url":"BASE/echo","headers":{"X-A":1}}`, `!InvalidArgument: argument "headers": want an object whose values are each a string, got {"X-A":1}`},
		{`{"method":"POST","url":"BASE/echo","headers":{"X-A":"` + strings.Repeat("x", 40_000) + `"}}`, `!InvalidArgument: the headers have more than 32768 bytes`},
	} {
		want, fails := strings.CutPrefix(args(base, tt.want), "!")
		if r := c.Call(t, "request", args(base, tt.args)); r.Text != want || r.Error != fails {
			t.Errorf("%.200s:\n got %s (error %v)\nwant %s", tt.args, r.Text, r.Error, want)
		}
	}
	var head struct {
		Status  int
		Headers map[string]string
	}
	r := c.Call(t, "request", args(base, `{"method":"HEAD","url":"BASE/echo"}`))
	if err := json.Unmarshal([]byte(r.Text), &head); err != nil || head.Status != 200 || head.Headers["x-answer"] != "42" {
		t.Errorf("HEAD: got %s, %v", r.Text, err)
	}
}

func TestURLs(t *testing.T) {
	c := connect(t, fetch.Options{AllowPrivate: true})
	for _, tt := range []struct{ url, want string }{
		{"", `InvalidArgument: "" is not an http or https URL; the URL must begin with "http://" or "https://"`},
		{"example.com", `InvalidArgument: "example.com" is not an http or https URL; the URL must begin with "http://" or "https://"`},
		{"file:///etc/passwd", `InvalidArgument: "file:///etc/passwd" is not an http or https URL; the URL must begin with "http://" or "https://"`},
		{"gopher://x/", `InvalidArgument: "gopher://x/" is not an http or https URL; the URL must begin with "http://" or "https://"`},
		{"http://", `InvalidArgument: the URL "http:" names no host; give one such as "https://example.com/path"`},
		{"http:///x", `InvalidArgument: the URL "http:///x" names no host; give one such as "https://example.com/path"`},
		{"http:x", `InvalidArgument: the URL "http:x" names no host; give one such as "https://example.com/path"`},
		{"http://u:hunter2@h/", `InvalidArgument: the URL "http://u:xxxxx@h/" contains a user name or password; send credentials in an Authorization header`},
		{"http://u:hunter2@h:bad/", `InvalidArgument: the URL cannot be parsed; give one such as "https://example.com/path?q=x"`},
		{"http://h/" + strings.Repeat("x", 9000), `InvalidArgument: the URL has 9009 bytes, at most 8192 are possible`},
		{"http://127.0.0.1:99999/", `NetworkError: requesting from "127.0.0.1:99999": dial tcp: address 99999: invalid port`},
	} {
		text, _ := json.Marshal(map[string]string{"url": tt.url})
		if r := c.Call(t, "fetch", string(text)); r.Text != tt.want || !r.Error {
			t.Errorf("%.100q:\n got %s\nwant %s", tt.url, r.Text, tt.want)
		}
	}
}

// counted is a server on the loopback interface that nobody should reach.
func counted(t testing.TB) (port string, calls *atomic.Int32) {
	calls = new(atomic.Int32)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			calls.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port, calls
}

func TestPrivateAddressesAreRefused(t *testing.T) {
	port, calls := counted(t)
	c := connect(t, fetch.Options{})
	for _, host := range []string{
		"127.0.0.1", "localhost", "LOCALHOST", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]",
		"[64:ff9b::7f00:1]", "10.1.2.3", "169.254.169.254", "[fe80::1%25lo]",
	} {
		r := c.Call(t, "fetch", `{"url":"http://`+host+`:`+port+`/"}`)
		if !r.Error || !strings.HasPrefix(r.Text, "AddressRefused: ") || !strings.HasSuffix(r.Text, "only public addresses are, unless the operator allows the host") {
			t.Errorf("%s: got %s", host, r.Text)
		}
	}
	// Spellings that some resolvers take for 127.0.0.1: whatever this one does, nothing may be reached.
	for _, host := range []string{"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1."} {
		if r := c.Call(t, "fetch", `{"url":"http://`+host+`:`+port+`/"}`); !r.Error {
			t.Errorf("%s: got %s", host, r.Text)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the private server was reached %d times", n)
	}
}

func TestRedirects(t *testing.T) {
	port, calls := counted(t)
	var other *httptest.Server
	seen := make(chan http.Header, 1)
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		io.WriteString(w, r.Method)
	}))
	defer other.Close()
	to := func(status int, url string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", url)
			w.WriteHeader(status)
		}
	}
	base := serve(t, map[string]http.HandlerFunc{
		"/private":  to(302, "http://localhost:"+port+"/"),
		"/private6": to(307, "http://[::1]:"+port+"/"),
		"/file":     to(301, "file:///etc/passwd"),
		"/userinfo": to(302, "http://user:hunter2@127.0.0.1/"),
		"/loop":     to(302, "/loop"),
		"/hop/{n}": func(w http.ResponseWriter, r *http.Request) {
			n := 0
			fmt.Sscan(r.PathValue("n"), &n)
			if n > 0 {
				http.Redirect(w, r, fmt.Sprintf("/hop/%d", n-1), http.StatusFound)
			}
			io.WriteString(w, "end")
		},
		"/same":   to(302, "/headers"),
		"/cross":  to(302, other.URL+"/x"),
		"/cross7": to(307, other.URL+"/x"),
		"/headers": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, r.Header.Get("X-Api-Key")+r.Header.Get("Authorization")+r.Header.Get("Referer"))
		},
	})
	c := connect(t, fetch.Options{AllowHosts: []string{"127.0.0.1"}})
	const hint = `; only public addresses are, unless the operator allows the host`
	for _, tt := range []struct{ path, want string }{
		{"/private", `!AddressRefused: "localhost:` + port + `" is not reached: its address is a loopback one` + hint},
		{"/private6", `!AddressRefused: "[::1]:` + port + `" is not reached: its address is a loopback one` + hint},
		{"/file", `!InvalidArgument: "file:///etc/passwd" is not an http or https URL; the URL must begin with "http://" or "https://"`},
		{"/userinfo", `!InvalidArgument: the URL "http://user:xxxxx@127.0.0.1/" contains a user name or password; send credentials in an Authorization header`},
		{"/loop", `!LimitExceeded: there are more than 10 redirects, the last one to "BASE/loop"`},
		{"/hop/10", "end"},
		{"/hop/11", `!LimitExceeded: there are more than 10 redirects, the last one to "BASE/hop/0"`},
		{"/same", "secretBearer t"},
	} {
		want, fails := strings.CutPrefix(args(base, tt.want), "!")
		r := c.Call(t, "fetch", args(base, `{"url":"BASE`+tt.path+`","headers":{"X-Api-Key":"secret","Authorization":"Bearer t"}}`))
		if r.Text != want || r.Error != fails {
			t.Errorf("%s:\n got %s\nwant %s", tt.path, r.Text, want)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the private server was reached %d times", n)
	}
	for path, method := range map[string]string{"/cross": "GET", "/cross7": "POST"} {
		r := c.Call(t, "request", args(base, `{"method":"POST","url":"BASE`+path+`?token=1","body":"x","headers":{"X-Api-Key":"secret","Authorization":"Bearer t","Cookie":"c"}}`))
		got := <-seen
		for _, name := range []string{"X-Api-Key", "Authorization", "Cookie", "Referer"} {
			if got.Get(name) != "" {
				t.Errorf("%s: the header %s went to another server", path, name)
			}
		}
		if r.Text != method {
			t.Errorf("%s: arrived as %s, want %s", path, r.Text, method)
		}
	}
}

// resolver is a DNS server in this process that gives each name of zone its addresses, one answer after the other.
func resolver(t testing.TB, zone map[string][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := answer(buf[:n], zone, asked); reply != nil {
				conn.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: (&dialTo{conn.LocalAddr().String()}).dial}
}

func answer(query []byte, zone map[string][]string, asked map[string]int) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	addrs, ok := zone[name]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET}
	if len(addrs) > 0 {
		addr := net.ParseIP(addrs[asked[name]%len(addrs)])
		if a4 := addr.To4(); a4 != nil && q.Type == dnsmessage.TypeA {
			asked[name]++
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: [4]byte(a4)}})
		} else if a4 == nil && q.Type == dnsmessage.TypeAAAA {
			asked[name]++
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(addr)}})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// TestNames has names that resolve to addresses inside, at once or after a while: what counts is the address that is
// connected to.
func TestNames(t *testing.T) {
	port, calls := counted(t)
	dns := resolver(t, map[string][]string{
		"inside.test":  {"127.0.0.1"},
		"inside6.test": {"::1"},
		"meta.test":    {"169.254.169.254"},
		"rebind.test":  {"240.0.0.1", "127.0.0.1"},
	})
	c := connect(t, fetch.Options{Resolver: dns})
	for _, name := range []string{"inside.test", "inside6.test", "meta.test", "rebind.test", "rebind.test", "rebind.test", "INSIDE.test."} {
		r := c.Call(t, "fetch", `{"url":"http://`+name+`:`+port+`/"}`)
		if !r.Error || !strings.HasPrefix(r.Text, "AddressRefused: ") {
			t.Errorf("%s: got %s", name, r.Text)
		}
	}
	if r := c.Call(t, "fetch", `{"url":"http://nowhere.test/"}`); !r.Error || !strings.Contains(r.Text, "no such host") {
		t.Errorf("an unknown name: got %s", r.Text)
	}
	if n := calls.Load(); n != 0 {
		t.Fatalf("the private server was reached %d times", n)
	}
	allowed := connect(t, fetch.Options{Resolver: dns, AllowHosts: []string{"inside.*"}})
	if r := allowed.Call(t, "fetch", `{"url":"http://inside.test:`+port+`/"}`); r.Error {
		t.Errorf("an allowed host: %s", r.Text)
	}
	if r := allowed.Call(t, "fetch", `{"url":"http://127.0.0.1:`+port+`/"}`); !r.Error {
		t.Error("the address of an allowed host was reached without its name")
	}
}

func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	port, calls := counted(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:"+port)
	}
	dns := resolver(t, map[string][]string{"site.test": {"127.0.0.1"}})
	base := serve(t, map[string]http.HandlerFunc{"/": page("text/plain", "direct")})
	c := connect(t, fetch.Options{Resolver: dns, AllowPrivate: true})
	url := strings.Replace(base, "127.0.0.1", "site.test", 1)
	if r := c.Call(t, "fetch", `{"url":"`+url+`"}`); r.Text != "direct" || calls.Load() != 0 {
		t.Errorf("got %s, %d calls of the proxy", r.Text, calls.Load())
	}
}

func TestLimits(t *testing.T) {
	defer servertest.CheckGoroutines(t)()
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	zip.Write(make([]byte, 50<<20))
	zip.Close()
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		w.Write(bomb.Bytes())
	})
	mux.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		z := gzip.NewWriter(w)
		io.WriteString(z, "small")
		z.Close()
	})
	mux.HandleFunc("/brotli", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		io.WriteString(w, "x")
	})
	wait := func(r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}
	mux.HandleFunc("/slowbody", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		wait(r)
	})
	mux.HandleFunc("/slowstart", func(_ http.ResponseWriter, r *http.Request) { wait(r) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "short")
	})
	mux.HandleFunc("/headers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 300<<10))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	defer close(release)

	c := connect(t, fetch.Options{AllowPrivate: true, MaxBytes: 1 << 20, Timeout: time.Minute})
	const hint = "; ask for less, or for up to 67108864 with max_bytes"
	for _, tt := range []struct{ args, want string }{
		{`{"url":"BASE/endless"}`, "LimitExceeded: the body may have 1048576 bytes and has more" + hint},
		{`{"url":"BASE/endless","max_bytes":67108864}`, "LimitExceeded: the body may have 67108864 bytes and has more; ask for less: a page, a filter, or a Range header"},
		{`{"url":"BASE/bomb"}`, "LimitExceeded: the body may have 1048576 bytes and has more" + hint},
		{`{"url":"BASE/small"}`, "small"},
		{`{"url":"BASE/brotli"}`, `BadContent: the server sent the content encoding "br" without being asked to`},
		{`{"url":"BASE/cut"}`, "NetworkError: requesting from the server: reading the body: unexpected EOF"},
		{`{"url":"BASE/headers"}`, `NetworkError: requesting from "HOST": net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 262144 bytes; aborted`},
	} {
		want := strings.ReplaceAll(tt.want, "HOST", strings.TrimPrefix(s.URL, "http://"))
		if r := c.Call(t, "fetch", args(s.URL, tt.args)); r.Text != want {
			t.Errorf("%s:\n got %.300s\nwant %s", tt.args, r.Text, want)
		}
	}
	quick := connect(t, fetch.Options{AllowPrivate: true, Timeout: 50 * time.Millisecond})
	for _, path := range []string{"/slowbody", "/slowstart"} {
		r := quick.Call(t, "fetch", args(s.URL, `{"url":"BASE`+path+`"}`))
		if !r.Error || !strings.HasPrefix(r.Text, "Timeout: no complete answer from ") {
			t.Errorf("%s: got %s", path, r.Text)
		}
	}
	c.Session.Close()
	quick.Session.Close()
}

func TestOptions(t *testing.T) {
	for _, o := range []fetch.Options{{MaxBytes: -1}, {MaxBytes: 65 << 20}, {Timeout: -1}, {Timeout: time.Hour}, {AllowHosts: []string{"["}}} {
		if _, err := fetch.New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	c := connect(t, fetch.Options{})
	if a := c.Tools["fetch"].Annotations; !a.ReadOnlyHint || !*a.OpenWorldHint {
		t.Errorf("fetch: %+v", a)
	}
	if a := c.Tools["request"].Annotations; a.ReadOnlyHint || !*a.DestructiveHint {
		t.Errorf("request: %+v", a)
	}
}

// dialTo dials one DNS server, whichever is asked for.
type dialTo struct{ addr string }

func (d *dialTo) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "udp", d.addr)
}
