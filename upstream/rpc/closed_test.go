package rpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// request makes a request on a new connection over wire, and ends the connection with end when it has been sent, or before
// where end says so.
func request(t *testing.T, transport *rpc.Transport, before, after func(*rpc.Transport)) *rpc.Failure {
	t.Helper()
	conn, err := transport.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := conn.Read(t.Context())
		read <- err
	}()
	before(transport)
	_, f := transport.Request(t.Context(), &rpc.Request{Method: "tools/call", BeforeSend: func() bool {
		go after(transport)
		return true
	}})
	transport.Abort()
	if err := <-read; err == nil || errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the session's read ended with %v", err)
	}
	return f
}

// TestClosed: a request on a connection that is closed before or after it was sent fails with ErrClosed, and never with
// io.ErrClosedPipe, which means something else to those who have pipes of their own.
func TestClosed(t *testing.T) {
	nothing := func(*rpc.Transport) {}
	abort := (*rpc.Transport).Abort
	memory := func() (near net.Conn) {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		go io.Copy(io.Discard, far)
		return near
	}
	over := func(c net.Conn, o rpc.LineOptions) *rpc.Transport {
		o.Close = c.Close
		return &rpc.Transport{Open: func(context.Context) (rpc.Wire, error) { return rpc.NewLine(c, c, o), nil }}
	}
	gone := make(chan struct{})
	close(gone)
	pipe := memory()
	for name, tt := range map[string]struct {
		transport     *rpc.Transport
		before, after func(*rpc.Transport)
		sent          bool
	}{
		"closed before":       {over(memory(), rpc.LineOptions{}), abort, nothing, false},
		"closed in flight":    {over(memory(), rpc.LineOptions{}), nothing, abort, true},
		"the other side ends": {over(memory(), rpc.LineOptions{Ended: gone}), nothing, nothing, false},
		"the pipe is closed":  {over(pipe, rpc.LineOptions{}), func(*rpc.Transport) { pipe.Close() }, nothing, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := request(t, tt.transport, tt.before, tt.after)
			if f == nil || errors.Is(f, io.ErrClosedPipe) || !tt.sent && f.Sent {
				t.Fatalf("got %+v", f)
			}
			if !errors.Is(f, rpc.ErrClosed) && !errors.Is(f, io.EOF) {
				t.Errorf("got %v", f.Err)
			}
		})
	}
}
