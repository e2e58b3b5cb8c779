package mux

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/yamux"
)

// A frozen is a connection whose other end can be made to stand still: what is written to it is taken, and nothing comes.
type frozen struct {
	net.Conn
	still chan struct{}
}

func (f frozen) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	select {
	case <-f.still:
		_, err = io.Copy(io.Discard, f.Conn) // until it is closed
		return 0, err
	default:
		return n, err
	}
}

// TestFrozen: whichever end stands still, both give it up after a while, with all streams, and not before.
func TestFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // one for all: timers are shared between connections
		for name, freeze := range map[string]func(gateway, host chan struct{}){
			"none":    func(_, _ chan struct{}) {},
			"host":    func(_, host chan struct{}) { close(host) },
			"gateway": func(gateway, _ chan struct{}) { close(gateway) },
		} {
			testFrozen(t, name, freeze)
		}
	})
}

func testFrozen(t *testing.T, name string, freeze func(gateway, host chan struct{})) {
	a, b := net.Pipe()
	gatewayStill, hostStill := make(chan struct{}), make(chan struct{})
	gateway, err := Gateway(frozen{a, gatewayStill})
	if err != nil {
		t.Fatal(err)
	}
	defer gateway.Close()
	host, err := Host(frozen{b, hostStill})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	go func() {
		if s, err := host.AcceptStream(); err == nil {
			_, _ = io.Copy(s, s)
		}
	}()
	s, err := gateway.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * Silence)
	if _, err := s.Write([]byte("x")); err != nil {
		t.Errorf("%s: a stream that was silent: %v", name, err)
	}
	if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	freeze(gatewayStill, hostStill)
	time.Sleep(3*Silence + time.Second)
	for end, session := range map[string]*yamux.Session{"gateway": gateway, "host": host} {
		if given := session.IsClosed(); given != (name != "none") {
			t.Errorf("%s stands still: the %s has given up: %v", name, end, given)
		}
	}
}
