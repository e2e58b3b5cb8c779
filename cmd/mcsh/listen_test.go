package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/gateway"
)

// onePipe is a listener with one connection, in memory.
type onePipe struct {
	conn   chan net.Conn
	closed chan struct{}
}

func (l onePipe) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l onePipe) Close() error { close(l.closed); return nil }

func (l onePipe) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A connection that has been idle for long is answered like a new one, also with a refusal.
func TestOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateway.New(gateway.Options{})
		listener := onePipe{make(chan net.Conn, 1), make(chan struct{})}
		ours, theirs := net.Pipe()
		listener.conn <- theirs
		ctx, end := context.WithCancel(t.Context())
		served := make(chan error, 1)
		l := &listenFlags{address: "127.0.0.1:8808"}
		go func() {
			served <- serveHTTP(ctx, []net.Listener{listener}, l.checked(&program{}, g.Handler()), ending{finish: g.Close})
		}()
		answers := bufio.NewReader(ours)
		for _, ask := range []struct {
			host   string
			status int
		}{{"localhost", http.StatusOK}, {"evil.example", http.StatusForbidden}, {"localhost", http.StatusOK}, {"evil.example", http.StatusForbidden}} {
			fmt.Fprintf(ours, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", ask.host)
			resp, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatalf("%s: %v", ask.host, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != ask.status || ask.status == http.StatusForbidden && !strings.Contains(string(body), "--allow-host") {
				t.Errorf("%s: got %s %q, %v", ask.host, resp.Status, body, err)
			}
			time.Sleep(time.Minute)
		}
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
		ours.Close()
	})
}
