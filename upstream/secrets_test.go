package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// theSecrets are put into every part of an address that may hold a token.
var theSecrets = []string{"PATHSECRET", "QUERYSECRET", "USERSECRET", "PASSSECRET", "HEADERSECRET"}

// repeat tells all of a request in its answer, as careless servers do.
func repeat(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		words := "Cannot POST " + r.URL.String() + " for " + user + ":" + pass + " with " + r.Header.Get("X-Token") +
			" at http://" + r.Host + r.URL.String()
		w.Header().Set("WWW-Authenticate", "Bearer realm="+r.URL.String())
		w.WriteHeader(status)
		if status != 401 {
			io.WriteString(w, words)
		}
	}
}

// TestSecretsStayHome fails to reach servers in every way there is: nothing of their addresses but scheme and host is
// in a message, and nothing of their headers.
func TestSecretsStayHome(t *testing.T) {
	t.Parallel() // it waits
	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	listen := func(f func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go f(c)
			}
		}()
		return l.Addr().String()
	}
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	junk := func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, "this is neither TLS nor HTTP at all\r\n")
		_ = c.Close()
	}
	hold := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, to+r.URL.String(), http.StatusTemporaryRedirect)
		}
	}
	elsewhere := serve(func(w http.ResponseWriter, r *http.Request) {
		if referer := r.Header.Get("Referer"); referer != "" {
			t.Errorf("the other host got %q", referer)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	for _, c := range []struct{ name, scheme, host, msg string }{
		{"refused", "http", "127.0.0.1:1", "nothing listens"},
		{"no TLS", "https", listen(junk), "tls:"},
		{"no HTTP", "http", listen(junk), ""},
		{"http for https", "https", serve(repeat(200)), "speaks http"},
		{"certificate", "https", strings.TrimPrefix(tlsServer.URL, "https://"), "certificate"},
		{"closed", "http", listen(func(c net.Conn) { _ = c.Close() }), ""},
		{"no such host", "http", "host.invalid", ""},
		{"400", "http", serve(repeat(400)), "400"},
		{"401", "http", serve(repeat(401)), "401"},
		{"404", "http", serve(repeat(404)), "404"},
		{"500", "http", serve(repeat(500)), "500"},
		{"no JSON", "http", serve(repeat(200)), ""},
		{"timeout", "http", serve(hold), "no answer"},
		{"redirected in circles", "http", serve(redirect("")), "redirects"},
		{"redirected elsewhere", "http", serve(redirect("http://" + elsewhere)), "redirects to"},
		{"redirected to nothing", "http", serve(redirect("https://127.0.0.1:1")), ""},
		{"other scheme", "gopher", "127.0.0.1", "scheme"},
		{"no scheme", "", "127.0.0.1", "http://"},
	} {
		for _, sse := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: " SSE"}[sse], func(t *testing.T) {
				t.Parallel()
				address := strings.TrimPrefix(c.scheme+"://", "://") + "USERSECRET:PASSSECRET@" + c.host + "/s/PATHSECRET/mcp?api_key=QUERYSECRET"
				patience := time.Minute
				if c.name == "timeout" {
					patience = time.Second
				}
				p := staticPool(t, upstream.Options{StartTimeout: patience}, upstream.Server{Name: "s", Dial: upstream.HTTP(upstream.Endpoint{
					URL: address, LegacySSE: sse, Headers: http.Header{"X-Token": {"HEADERSECRET"}},
				})})
				_, err := p.Tool(t.Context(), "s", "x")
				if err == nil {
					t.Fatal("it answers")
				}
				if !sse {
					wantError(t, err, stages.ServerUnavailable, c.msg, "")
				}
				wantNoSecrets(t, err)
				for _, l := range p.Catalog(t.Context()) {
					wantNoSecrets(t, l.Err)
				}
			})
		}
	}
}

// TestSecretsOfCalls: what a server says of a failed call has no secrets of its address either.
func TestSecretsOfCalls(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter, r *http.Request, id json.RawMessage){
		"status": func(w http.ResponseWriter, r *http.Request, _ json.RawMessage) { repeat(500)(w, r) },
		"error": func(w http.ResponseWriter, r *http.Request, id json.RawMessage) {
			respond(w, `{"jsonrpc":"2.0","id":`+string(id)+`,"error":{"code":-32603,"message":"bad `+r.URL.String()+" "+r.Header.Get("X-Token")+`"}}`)
		},
		"closed": func(http.ResponseWriter, *http.Request, json.RawMessage) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s := handMade(t, fail)
			p := httpPool(t, upstream.Endpoint{
				URL:     strings.Replace(s.URL, "://", "://USERSECRET:PASSSECRET@", 1) + "/s/PATHSECRET/mcp?api_key=QUERYSECRET",
				Headers: http.Header{"X-Token": {"HEADERSECRET"}},
			})
			_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one"})
			if err == nil {
				t.Fatal("the call succeeded")
			}
			wantNoSecrets(t, err)
		})
	}
}

// wantNoSecrets looks at everything that an error may be printed as.
func wantNoSecrets(t *testing.T, err error) {
	t.Helper()
	texts := []string{err.Error()}
	var e *stages.Error
	if errors.As(err, &e) {
		texts = append(texts, e.Msg, e.Hint)
		if e.Err != nil && !errors.Is(e.Err, context.DeadlineExceeded) {
			texts = append(texts, e.Err.Error())
		}
	}
	for _, text := range texts {
		for _, word := range theSecrets {
			if strings.Contains(text, word) {
				t.Errorf("%q shows %s", text, word)
			}
		}
	}
}
