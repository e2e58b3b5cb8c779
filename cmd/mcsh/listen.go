package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
)

const (
	// headerTimeout bounds how long a client may take to send the head of a request.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection is kept for the next request. Clients drop theirs sooner (those of Go after 90 s),
	// so that none sends one that comes too late.
	idleTimeout = 3 * time.Minute
)

// allowHostVariable names hosts where there is no --allow-host, with commas between them.
const allowHostVariable = "MCSH_ALLOW_HOST"

// listenFlags say where a server listens.
type listenFlags struct {
	address string
	noAuth  bool
	hosts   []string
	auth    authFlags

	contained bool // address is that of this container, of which its runtime decides who reaches it
}

func (l *listenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.address, "listen", "", "serve streamable HTTP on this address, such as 127.0.0.1:8808, instead of stdio")
	cmd.Flags().StringArrayVar(&l.hosts, "allow-host", nil, "name under which clients may reach it, besides addresses and localhost: NAME, *.NAME or * for any (repeatable; $"+allowHostVariable+" with commas)")
	cmd.Flags().BoolVar(&l.noAuth, "no-auth", false, "listen beyond this machine although everybody who reaches the address may call every tool")
}

// listen opens the listeners. An address that others can reach is refused where nobody would be asked who they are. What
// is in a container is reached from inside of it too.
func (l *listenFlags) listen() ([]net.Listener, error) {
	host, _, err := net.SplitHostPort(l.address)
	if err != nil {
		return nil, usageError("give host and port, such as --listen 127.0.0.1:8808", "--listen %q: %w", l.address, err)
	}
	if !l.noAuth && !l.contained && !l.auth.asks() && !isLoopback(host) {
		hint := "use 127.0.0.1, or say --no-auth if something in front asks who callers are"
		if l.auth.flags != nil {
			hint = "say who may call: --tokens FILE (mcsh token new NAME makes one) or --oidc-issuer URL; or use 127.0.0.1, or say --no-auth if something in front asks who callers are"
		}
		return nil, usageError(hint, "--listen %s: others can reach this address, and there is no authentication", l.address)
	}
	first, err := listenOn(l.address)
	if err != nil || !l.contained {
		return []net.Listener{first}, err
	}
	_, port, _ := net.SplitHostPort(first.Addr().String())
	second, err := listenOn(net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	return []net.Listener{first, second}, nil
}

func listenOn(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		owner := "another program"
		if _, port, split := net.SplitHostPort(address); split == nil {
			number, _ := strconv.Atoi(port) // a name is nobody's number
			owner = cmp.Or(portOwner(number), owner)
		}
		err = fmt.Errorf("%s: the port is used by %s", address, owner)
	}
	if err != nil {
		return nil, configError("choose another address, or port 0 for a free one", err)
	}
	return listener, nil
}

// within are names of the machine that containers know, and those of services of a cluster.
var within = [...]string{"host.docker.internal", "gateway.docker.internal", "host.containers.internal", "*.svc", "*.svc.cluster.local"}

// checked lets requests pass that come under a name of the listener.
func (l *listenFlags) checked(p *program, h http.Handler) http.Handler {
	hosts := gateway.Hosts{Names: l.hosts}
	if len(l.hosts) == 0 {
		hosts.Names = strings.FieldsFunc(p.env[allowHostVariable], func(r rune) bool { return r == ',' || r == ' ' })
	}
	hosts.Names = append(slices.Clone(hosts.Names), l.auth.publicHost()...)
	host, _, err := net.SplitHostPort(l.address)
	if hosts.Short = err == nil && !isLoopback(host); hosts.Short {
		hosts.Names = append(hosts.Names, within[:]...)
	}
	return hosts.Check(h)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func endpointOf(addr net.Addr) string { return fmt.Sprintf("http://%s/mcp", addr) }

const greeting = `%[1]s listens on %[2]s
  Claude Code   claude mcp add --transport http mcsh %[2]s
  VS Code       {"servers": {"mcsh": {"type": "http", "url": %[2]q}}}
  others        {"mcpServers": {"mcsh": {"url": %[2]q}}}
`

// greet says where a server listens and how to connect to it.
func (p *program) greet(name, url string) {
	fmt.Fprintf(p.stderr, greeting, name, url) // at once: others speak there too
}

// answerTime is how long answers may take to reach their clients when all calls have ended.
const answerTime = time.Second

// serveHTTP serves until ctx is done. Then no connection is accepted, e.finish gets time to end what runs, and what is
// left is cut off.
func serveHTTP(ctx context.Context, listeners []net.Listener, h http.Handler, e ending) error {
	server := &http.Server{Handler: gateway.Patient(h), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout}
	served := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { served <- server.Serve(l) }()
	}
	var err error
	select {
	case err = <-served: // a listener broke
	case <-ctx.Done():
	}
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	stopped := make(chan struct{})
	go func() { server.Shutdown(waiting); close(stopped) }() // what it cannot end, Close does
	grace, cancel := e.begin()
	defer cancel()
	err = errors.Join(err, e.finish(grace))
	answers := time.AfterFunc(answerTime, giveUp)
	<-stopped
	answers.Stop()
	server.Close()
	return err
}
