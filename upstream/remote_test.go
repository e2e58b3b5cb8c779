package upstream_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// TestEitherTransport: where nobody said which transport a server has, streamable HTTP is tried first and the older one
// where that is unknown, which is remembered.
func TestEitherTransport(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	var posts, streams atomic.Int32
	handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s.MCP() }, nil)
	old := s.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.RawQuery == "":
			posts.Add(1)
			http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
			return
		case r.Method == http.MethodGet:
			streams.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	p := httpPool(t, upstream.Endpoint{URL: old.URL, Either: true})
	if got := call(t, p, "s", "hi"); got != "hi" {
		t.Errorf("got %q", got)
	}
	before := posts.Load()
	old.CloseClientConnections()
	eventually(t, "it answers again", func() bool {
		res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "hi"})
		return err == nil && string(res.Data) == "hi"
	})
	if before == 0 || posts.Load() != before || streams.Load() < 2 {
		t.Errorf("%d and then %d posts, %d streams; want the second session to begin with a stream", before, posts.Load(), streams.Load())
	}
	web := s.HTTP(t, nil)
	if got := call(t, httpPool(t, upstream.Endpoint{URL: web.URL, Either: true}), "s", "hi"); got != "hi" {
		t.Errorf("streamable: got %q", got)
	}
}

// TestTLS: a certificate of nobody known is refused, and accepted where the configuration names who signed it, or says
// that any signer will do; a server that asks who we are gets an answer.
func TestTLS(t *testing.T) {
	s := mcptest.New(mcptest.Tool{Name: "hi", Text: "hi"})
	web := httptest.NewUnstartedServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.MCP() }, nil))
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	web.StartTLS()
	t.Cleanup(web.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	write(t, ca, "CERTIFICATE", web.Certificate().Raw)
	cert, key := ownCertificate(t, dir)
	for _, c := range []struct {
		name string
		tls  remote.TLS
		msg  string
	}{
		{"unknown", remote.TLS{Cert: cert, Key: key}, "the certificate of 127.0.0.1"},
		{"known", remote.TLS{CA: ca, Cert: cert, Key: key}, ""},
		{"insecure", remote.TLS{Insecure: true, Cert: cert, Key: key}, ""},
		{"anonymous", remote.TLS{CA: ca}, "tls: "},
		{"no file", remote.TLS{CA: filepath.Join(dir, "none")}, "no such file"},
		{"no certificate", remote.TLS{CA: key}, "there is no certificate in"},
		{"half", remote.TLS{Cert: cert}, "needs its key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := httpPool(t, upstream.Endpoint{URL: web.URL, TLS: c.tls})
			res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "hi"})
			if c.msg != "" {
				wantError(t, err, stages.ServerUnavailable, c.msg, "")
			} else if err != nil || string(res.Data) != "hi" {
				t.Errorf("got %q, %v", res.Data, err)
			}
		})
	}
}

func write(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ownCertificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, "CERTIFICATE", der)
	write(t, key, "PRIVATE KEY", raw)
	return cert, key
}

// TestSignIn signs in with client credentials, at the configured authorization server and at no other that the server
// may name. However many calls are refused at once, there is one sign-in.
func TestSignIn(t *testing.T) {
	for _, honest := range []bool{true, false} {
		t.Run(fmt.Sprintf("honest %v", honest), func(t *testing.T) {
			var tokens atomic.Int32
			var leaked atomic.Bool
			issuer := authorizationServer(t, &tokens)
			evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				leaked.Store(leaked.Load() || strings.Contains(string(body)+fmt.Sprint(r.Header), "hush-hush"))
				respond(w, "{}")
			}))
			t.Cleanup(evil.Close)
			s := handMade(t, nil)
			inner := s.Config.Handler
			s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.Contains(r.URL.Path, "oauth-protected-resource"):
					named := map[bool]string{true: issuer, false: evil.URL}[honest]
					respond(w, `{"resource":"`+s.URL+`/mcp","authorization_servers":["`+named+`"]}`)
				case r.Header.Get("Authorization") != "Bearer good":
					w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`)
					w.WriteHeader(http.StatusUnauthorized)
				default:
					inner.ServeHTTP(w, r)
				}
			})
			p := httpPool(t, upstream.Endpoint{URL: s.URL + "/mcp", OAuth: &remote.OAuth{Issuer: issuer, ClientID: "me", ClientSecret: "hush-hush"}})
			if !honest {
				_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
				wantError(t, err, stages.ServerUnavailable, "not the configured authorization server", "oauth")
				if leaked.Load() {
					t.Error("the secret went to another host")
				}
				return
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if got := call(t, p, "s", "one"); got != "hand made" {
						t.Errorf("got %q", got)
					}
				})
			}
			wg.Wait()
			if n := tokens.Load(); n != 1 {
				t.Errorf("%d sign-ins, want 1", n)
			}
		})
	}
}

func authorizationServer(t *testing.T, tokens *atomic.Int32) string {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, `{"issuer":"`+s.URL+`","token_endpoint":"`+s.URL+`/token","authorization_endpoint":"`+s.URL+`/a",
			"response_types_supported":["code"],"code_challenge_methods_supported":["S256"],
			"token_endpoint_auth_methods_supported":["client_secret_post"]}`)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_secret") != "hush-hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		tokens.Add(1)
		respond(w, `{"access_token":"good","token_type":"Bearer","expires_in":3600}`)
	})
	return s.URL
}

// recorder is a stateless server of the newer era that keeps what it was asked.
type recorder struct {
	mu      sync.Mutex
	bodies  []string
	headers []http.Header
}

func (r *recorder) last() (string, http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[len(r.bodies)-1], r.headers[len(r.headers)-1]
}

// TestWhatServersGet: the trace is passed on, servers of the newer era get our name in every request, and
// arguments that are wanted as headers are there too.
func TestWhatServersGet(t *testing.T) {
	s := mcptest.New(mcptest.Tool{
		Name: "get", ReadOnly: true, Text: "x",
		Schema: `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}`,
	})
	for name, o := range map[string]*mcp.StreamableHTTPOptions{"old": {}, "new": {Stateless: true}} {
		t.Run(name, func(t *testing.T) {
			var seen recorder
			handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.MCP() }, o)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte(`"tools/call"`)) {
					seen.mu.Lock()
					seen.bodies, seen.headers = append(seen.bodies, string(body)), append(seen.headers, r.Header.Clone())
					seen.mu.Unlock()
				}
				handler.ServeHTTP(w, r)
			}))
			t.Cleanup(web.Close)
			p := httpPool(t, upstream.Endpoint{URL: web.URL})
			_, err := p.CallTool(t.Context(), stages.Call{
				Server: "s", Name: "get", Args: json.RawMessage(`{"region":"Zürich","n":7}`),
				Trace: stages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: `a="b"`},
			})
			if err != nil {
				t.Fatal(err)
			}
			body, header := seen.last()
			var request struct {
				Params struct {
					Meta map[string]any `json:"_meta"`
				}
			}
			if err := json.Unmarshal([]byte(body), &request); err != nil {
				t.Fatal(err)
			}
			meta := request.Params.Meta
			if meta["traceparent"] != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" || meta["tracestate"] != `a="b"` {
				t.Errorf("the trace is not passed on: %s", body)
			}
			isNew := name == "new"
			if _, got := meta[mcp.MetaKeyProtocolVersion]; got != isNew {
				t.Errorf("got %s, with a version %v, want %v", body, got, isNew)
			}
			got := fmt.Sprint(header.Get("Mcp-Method"), header.Get("Mcp-Name"), header.Get("Mcp-Param-Region"), header.Get("Mcp-Param-N"))
			if want := map[bool]string{true: "tools/callget=?base64?WsO8cmljaA==?=7"}[isNew]; got != want {
				t.Errorf("got the headers %q, want %q", got, want)
			}
		})
	}
}

// TestBrokenStreamIsTakenUp: an answer whose stream breaks is asked for again where the server numbers its events.
func TestBrokenStreamIsTakenUp(t *testing.T) {
	var calls, resumed atomic.Int32
	s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		calls.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %s\ndata: \n\n", id)
	})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("Last-Event-ID"); r.Method == http.MethodGet && id != "" {
			resumed.Add(1)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, legacyAnswers["tools/call"])
			return
		}
		inner.ServeHTTP(w, r)
	})
	if got := call(t, httpPool(t, upstream.Endpoint{URL: s.URL}), "s", "one"); got != "hand made" || calls.Load() != 1 || resumed.Load() != 1 {
		t.Errorf("got %q after %d calls, taken up %d times", got, calls.Load(), resumed.Load())
	}
}

// TestSignInIsAskedForOnce: a refused client gets that error, and not that of another handshake.
func TestSignInIsAskedForOnce(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); r.Header.Get("Mcp-Protocol-Version") == "" {
			http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Missing MCP-Protocol-Version header"}}`, http.StatusBadRequest)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	_, err := httpPool(t, upstream.Endpoint{URL: s.URL}).CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
	wantError(t, err, stages.ServerUnavailable, "401 Unauthorized", "Authorization")
	if n := asked.Load(); n > 2 { // the SDK asks twice for a session
		t.Errorf("the server was asked %d times", n)
	}
}

// TestStreamThatEndsOnPurpose: a server may end the stream of an answer as often as it likes, and says how long to wait.
func TestStreamThatEndsOnPurpose(t *testing.T) {
	const parts, retry = 9, 30 * time.Millisecond
	var began atomic.Int64
	var resumed atomic.Int32
	s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %s-0\nretry: %d\ndata: \n\n", id, retry.Milliseconds())
		began.Store(time.Now().UnixNano())
	})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, n, ok := strings.Cut(r.Header.Get("Last-Event-ID"), "-")
		if !ok {
			inner.ServeHTTP(w, r)
			return
		}
		part := resumed.Add(1)
		if n != strconv.Itoa(int(part-1)) {
			t.Errorf("taken up at %s after %d parts", n, part-1)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: %s-%d\ndata: \n\n", id, part)
		if part == parts {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, legacyAnswers["tools/call"])
		}
	})
	if got := call(t, httpPool(t, upstream.Endpoint{URL: s.URL}), "s", "one"); got != "hand made" || resumed.Load() != parts {
		t.Errorf("got %q, taken up %d times", got, resumed.Load())
	}
	if d := time.Duration(time.Now().UnixNano() - began.Load()); d < parts*retry {
		t.Errorf("%d parts took %v, less than the server wants", parts, d)
	}
}

// TestServersAskBack: a server that asks something within its answer learns that we are there, or that we do not do that.
func TestServersAskBack(t *testing.T) {
	var mu sync.Mutex
	var answers []string
	s := handMade(t, func(w http.ResponseWriter, _ *http.Request, id json.RawMessage) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"roots/list\"}\n\n")
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, legacyAnswers["tools/call"])
	})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body := peek(r); strings.Contains(body, `"id":"`) {
			mu.Lock()
			answers = append(answers, body)
			mu.Unlock()
			w.WriteHeader(http.StatusAccepted)
			return
		}
		inner.ServeHTTP(w, r)
	})
	if got := call(t, httpPool(t, upstream.Endpoint{URL: s.URL}), "s", "one"); got != "hand made" {
		t.Errorf("got %q", got)
	}
	eventually(t, "the server has its answers", func() bool {
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(answers, " ")
		return strings.Contains(all, `"id":"p","result":{}`) && strings.Contains(all, `"id":"r","error":{"code":-32601`)
	})
}
