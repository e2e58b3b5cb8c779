package mcptest

import (
	"net"
	"sync"
	"testing"
)

// Pipes is a listener of connections in memory that hold nothing: what is written waits for its reader. In a bubble of
// synctest their deadlines, and those of a server that listens to them, keep the time of the bubble.
type Pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    func()
}

// NewPipes makes a listener.
func NewPipes() *Pipes {
	p := &Pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	return p
}

// Dial makes a connection that [Pipes.Accept] takes, closed at the end of the test.
func (p *Pipes) Dial(t testing.TB) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	select {
	case p.accepted <- theirs:
	case <-p.closed:
		t.Fatal("the listener is closed")
	}
	return ours
}

// Accept implements [net.Listener].
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *Pipes) Close() error { p.close(); return nil }

// Addr implements [net.Listener].
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }
