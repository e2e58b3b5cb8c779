// Package mux carries many byte streams over the one connection between a gateway and a container of workers, each
// with credit of its own, so that a slow one stops no other. The gateway opens a stream for every worker that it wants;
// the host at the other end opens one only to say why the container should serve no further run.
package mux

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/yamux"
)

// Silence is how long an end may be unreachable before the other gives it up. Answers to pings do not wait for data,
// but a busy engine between the two may hold everything back for a while.
const Silence = time.Minute

const (
	window  = 1 << 20 // bytes of one stream that may be on their way
	backlog = 16      // streams that are opened and not yet accepted
)

// Gateway makes the gateway's end of a connection, and closes conn with it. It pings the container: one that an engine has
// frozen in the middle of a run ends the run then, not the run's own time.
func Gateway(conn io.ReadWriteCloser) (*yamux.Session, error) {
	s, err := yamux.Client(join(conn), config())
	if err != nil {
		return nil, fmt.Errorf("sharing the connection to a container: %w", err)
	}
	return s, nil
}

// Host makes the container's end. It pings the gateway, so that a container ends whose gateway has vanished without a
// sign: one on another machine, or behind an engine that was restarted.
func Host(conn io.ReadWriteCloser) (*yamux.Session, error) {
	s, err := yamux.Server(join(buffered{bufio.NewReaderSize(conn, readBuffer), conn}), config())
	if err != nil {
		return nil, fmt.Errorf("sharing the connection to the gateway: %w", err)
	}
	return s, nil
}

// readBuffer is more than a pipe gives at a time. The buffer of yamux is small, so that each frame would take a read more.
const readBuffer = 128 << 10

type buffered struct {
	io.Reader
	io.WriteCloser
}

func config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.AcceptBacklog = backlog
	c.EnableKeepAlive = true
	c.KeepAliveInterval = Silence
	c.ConnectionWriteTimeout = Silence
	c.MaxStreamWindowSize = window
	c.StreamOpenTimeout = Silence
	c.LogOutput = io.Discard // what ends a connection shows in its streams
	return c
}
