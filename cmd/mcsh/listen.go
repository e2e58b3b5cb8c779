package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// grace is how long requests may go on after SIGTERM.
const grace = 10 * time.Second

// headerTimeout bounds how long a client may take to send the head of a request.
const headerTimeout = 10 * time.Second

// listenFlags say where a server listens.
type listenFlags struct {
	address string
	noAuth  bool
}

func (l *listenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.address, "listen", "", "serve streamable HTTP on this address, such as 127.0.0.1:8808, instead of stdio")
	cmd.Flags().BoolVar(&l.noAuth, "no-auth", false, "listen beyond this machine although everybody who reaches the address may call every tool")
}

// listen opens the listener. An address that others can reach is refused: nobody would be asked who they are.
func (l *listenFlags) listen() (net.Listener, error) {
	host, _, err := net.SplitHostPort(l.address)
	if err != nil {
		return nil, usageError("give host and port, such as --listen 127.0.0.1:8808", "--listen %q: %w", l.address, err)
	}
	if !l.noAuth && !isLoopback(host) {
		return nil, usageError("use 127.0.0.1, or say --no-auth if something in front asks who callers are",
			"--listen %s: others can reach this address, and there is no authentication", l.address)
	}
	listener, err := net.Listen("tcp", l.address)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("--listen %s: the port is used by another program", l.address)
	}
	if err != nil {
		return nil, configError("choose another address, or port 0 for a free one", err)
	}
	return listener, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func endpointOf(addr net.Addr) string { return fmt.Sprintf("http://%s/mcp", addr) }

// greet says where a server listens and how to connect to it.
func (p *program) greet(name, url string) {
	fmt.Fprintf(p.stderr, "%s listens on %s\n", name, url)
	fmt.Fprintf(p.stderr, "  Claude Code   claude mcp add --transport http mcsh %s\n", url)
	fmt.Fprintf(p.stderr, "  VS Code       {\"servers\": {\"mcsh\": {\"type\": \"http\", \"url\": %q}}}\n", url)
	fmt.Fprintf(p.stderr, "  others        {\"mcpServers\": {\"mcsh\": {\"url\": %q}}}\n", url)
}

// serveHTTP serves until ctx is done. Then no connection is accepted, finish gets time to end what runs, and what is
// left is cut off.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler, finish func(context.Context) error) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case err = <-served: // the listener broke
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	stopped := make(chan struct{})
	go func() { server.Shutdown(ending); close(stopped) }() // what it cannot end, Close does
	err = errors.Join(err, finish(ending))
	server.Close()
	<-stopped
	return err
}
