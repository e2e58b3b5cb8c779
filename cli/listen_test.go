package cli

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
	"github.com/mcsh-dev/mcsh/internal/mcptest"
)

// connected is a connection to a gateway that listens, which ends with the test. It is called in a bubble of time.
func connected(t *testing.T) net.Conn {
	t.Helper()
	ours, _ := served(t)
	return ours
}

// served is a connection to a gateway that takes one from each address, and makes more.
func served(t *testing.T) (ours net.Conn, dial func() net.Conn) {
	t.Helper()
	g := gateway.New(gateway.Options{})
	listener := mcptest.NewPipes()
	ctx, end := context.WithCancel(t.Context())
	served := make(chan error, 1)
	l := &listenFlags{address: "127.0.0.1:8808"}
	go func() {
		served <- serveHTTP(ctx, []net.Listener{listener}, newConnections(2, 1, nil), l.checkHosts(g.Handler()), shutdown{forced: t.Context(), stop: g.Close})
	}()
	ours = listener.Dial(t)
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ours, func() net.Conn { return listener.Dial(t) }
}

// A connection that has been idle for long is answered like a new one, also with a refusal.
func TestOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := connected(t)
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
	})
}

// A client that sends no complete request holds a connection only for a while, even if it is refused before its body is read.
func TestHeldConnection(t *testing.T) {
	const head = "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 100000\r\n\r\n"
	for _, test := range []struct {
		name, sent string
		drips      bool // and then a byte now and then
		want       string
	}{
		{"nothing", "", false, ""},
		{"half a head", "POST /mcp HTTP/1.1\r\n", true, ""},
		{"an answer is enough", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", false, "200 OK"},
		{"no body", fmt.Sprintf(head, "localhost"), false, "400 Bad Request"},
		{"a body byte by byte", fmt.Sprintf(head, "localhost"), true, "400 Bad Request"},
		{"no body, refused", fmt.Sprintf(head, "evil.example"), false, "403 Forbidden"},
		{"a body byte by byte, refused", fmt.Sprintf(head, "evil.example"), true, "403 Forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, begun := connected(t), time.Now()
				ours.SetDeadline(begun.Add(time.Hour))
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, err := io.WriteString(ours, test.sent)
					for ; err == nil && test.drips; time.Sleep(5 * time.Second) {
						_, err = io.WriteString(ours, " ")
					}
				}()
				got, err := io.ReadAll(ours)
				took := time.Since(begun)
				<-sent
				if err != nil || took > 5*time.Minute || !strings.Contains(string(got), test.want) {
					t.Errorf("after %v: got %q, %v", took, got, err)
				}
			})
		})
	}
}
