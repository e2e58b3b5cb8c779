package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway"
)

// from is a connection with an address at its other end, whose answers can be read.
type from struct {
	net.Conn
	address string
	said    strings.Builder
}

func (f *from) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 1}
}

func (f *from) Write(p []byte) (int, error) { return f.said.Write(p) }

// TestConnections: one address has so many connections and all have so many, and those that end make room.
func TestConnections(t *testing.T) {
	c := newConnections(8, 2, gateway.Proxies{netip.MustParsePrefix("198.51.100.0/24")})
	var opened []*from
	for i, test := range []struct {
		address, refused string
		closes           int // a connection before it that ends first, from 1
	}{
		{"192.0.2.1", "", 0},
		{"192.0.2.1", "", 0},
		{"192.0.2.1", "limit address-connections", 0},
		{"::ffff:192.0.2.1", "limit address-connections", 0},
		{"192.0.2.1", "", 1},
		{"2001:db8::1", "", 0},
		{"2001:db8::2", "", 0},
		{"2001:db8::3:4", "limit address-connections", 0},
		{"198.51.100.7", "", 0},
		{"198.51.100.7", "", 0},
		{"198.51.100.7", "", 0},
		{"127.0.0.1", "", 0},
		{"127.0.0.1", "limit connections", 0},
		{"192.0.2.9", "limit connections", 3}, // that one was refused
		{"127.0.0.1", "", 6},
	} {
		if test.closes > 0 {
			c.follow(opened[test.closes-1], http.StateClosed)
		}
		ours, theirs := net.Pipe()
		defer ours.Close()
		conn := &from{Conn: theirs, address: test.address}
		opened = append(opened, conn)
		c.follow(conn, http.StateNew)
		said := conn.said.String()
		if (said != "") != (test.refused != "") || !strings.Contains(said, test.refused) || said != "" && !strings.HasPrefix(said, "HTTP/1.1 503 ") {
			t.Errorf("connection %d, from %s: %q", i+1, test.address, said)
		}
	}
}

// TestServeConnections: a server refuses a connection too many, and takes the next one when the first has ended.
func TestServeConnections(t *testing.T) {
	ours, dial := served(t)
	healthy := func(conn net.Conn) string {
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		got, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	second, err := io.ReadAll(dial())
	if err != nil || !strings.Contains(string(second), "503 Service Unavailable") {
		t.Errorf("the second connection: %q, %v", second, err)
	}
	if got := healthy(ours); !strings.Contains(got, "200 OK") {
		t.Errorf("the first connection: %q", got)
	}
	for {
		if got := healthy(dial()); strings.Contains(got, "200 OK") {
			return
		} // the server has not seen yet that the first one has ended
	}
}

// TestLongHead: a request whose head has a megabyte is refused.
func TestLongHead(t *testing.T) {
	ours, _ := served(t)
	go fmt.Fprintf(ours, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: %s\r\n\r\n", strings.Repeat("x", 1<<20)) // it is not taken
	if got, err := io.ReadAll(ours); !strings.Contains(string(got), "431 Request Header Fields Too Large") {
		t.Errorf("got %q, %v", got, err)
	}
}
