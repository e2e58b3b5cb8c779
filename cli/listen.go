package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/ui"
)

const (
	// headerTimeout bounds the time to send the header of a request.
	headerTimeout = 10 * time.Second
	// headerBytes bounds the header of a request; a session keeps its last one.
	headerBytes = 32 << 10
	// idleTimeout is how long an idle connection stays open. Clients close theirs sooner (Go after 90 s), so no request
	// meets a closing connection.
	idleTimeout = 3 * time.Minute
)

// allowHostVariable replaces --allow-host: hosts separated by commas.
const allowHostVariable = "MCSH_ALLOW_HOST"

// listenFlags configure the listener of a server.
type listenFlags struct {
	address string
	noAuth  bool
	hosts   []string
	proxies []string // networks
	trusted gateway.Proxies
	auth    authFlags

	runtime   bool // a runtime such as ToolHive set the address and runs a proxy in front
	contained bool // the address is local to this container, so the runtime decides who can reach it
}

func (l *listenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.address, "listen", "",
		"serve streamable HTTP on this address, such as 127.0.0.1:8808, instead of stdio")
	cmd.Flags().StringArrayVar(&l.hosts, "allow-host", nil,
		"name under which clients may reach it, besides addresses and localhost: "+
			"NAME, *.NAME or * for any (repeatable; $"+allowHostVariable+" with commas)")
	cmd.Flags().StringArrayVar(&l.proxies, "trusted-proxy", nil, "network or address of proxies "+
		"whose X-Forwarded-For or Forwarded header names the client, such as 10.0.0.0/8 (repeatable)")
	cmd.Flags().BoolVar(&l.noAuth, "no-auth", false,
		"listen beyond this machine without authentication: everyone who reaches the address may call every tool")
	l.auth.add(cmd)
}

// resolve checks the flags, and takes values from variables for flags that are not given.
func (l *listenFlags) resolve(p *program) (err error) {
	if l.trusted, err = gateway.ParseProxies(l.proxies); err != nil {
		return usageError("give a network such as 10.0.0.0/8, or an address", "--trusted-proxy: %w", err)
	}
	if l.address == "" && (l.noAuth || len(l.hosts)+len(l.proxies) > 0) {
		return usageError("add --listen, or leave them out",
			"--no-auth, --allow-host and --trusted-proxy are for HTTP, and this serves standard input")
	}
	if len(l.hosts) == 0 {
		l.hosts = strings.FieldsFunc(p.env[allowHostVariable], func(r rune) bool { return r == ',' || r == ' ' })
	}
	return l.auth.resolve(p, l)
}

// authenticate is the hint for a server that needs to know its callers.
const authenticate = "say who may call: --tokens FILE (mcsh token new NAME makes one) or --oidc-issuer URL"

// listen opens the listeners; nil: there is no address. It refuses an address that others can reach without authentication.
// In a container it also listens on the loopback, for processes inside.
func (l *listenFlags) listen() ([]net.Listener, error) {
	if l.address == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(l.address)
	if err != nil {
		return nil, usageError("give host and port, such as --listen 127.0.0.1:8808", "--listen %q: %w", l.address, err)
	}
	if !l.noAuth && !l.contained && !l.auth.enabled() && !isLoopback(host) {
		return nil, usageError(authenticate+"; or use 127.0.0.1, or use --no-auth if a proxy in front authenticates callers",
			"--listen %s: others can reach this address, and there is no authentication", l.address)
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
		_, port, _ := net.SplitHostPort(address) // it is valid, since it is in use
		number, _ := strconv.Atoi(port)          // 0 for a name
		err = fmt.Errorf("%s: the port is used by %s", address, cmp.Or(portOwner(number), "another program"))
	}
	if err != nil {
		return nil, configError("choose another address, or port 0 for a free one", err)
	}
	return listener, nil
}

// checkHosts refuses requests for a host that is not the listener's.
func (l *listenFlags) checkHosts(h http.Handler) http.Handler {
	hosts := gateway.Hosts{Names: slices.Concat(l.hosts, l.auth.hosts)}
	host, _, err := net.SplitHostPort(l.address)
	if hosts.Short = err == nil && !isLoopback(host); hosts.Short {
		// The names of this machine for containers, and of services in a cluster.
		hosts.Names = append(hosts.Names, "host.docker.internal", "gateway.docker.internal", "host.containers.internal",
			"*.svc", "*.svc.cluster.local")
	}
	return hosts.Check(h)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func endpointOf(addr net.Addr) string { return fmt.Sprintf("http://%s/mcp", addr) }

const greeting = `%[1]s listens on %[2]s
  Claude Code   claude mcp add --transport http %[3]s %[2]s
  VS Code       {"servers": {%[3]q: {"type": "http", "url": %[2]q}}}
  others        {"mcpServers": {%[3]q: {"url": %[2]q}}}
`

// tokenGreeting is for callers with tokens. Clients take theirs from a variable, each in its own syntax.
const tokenGreeting = `%[1]s listens on %[2]s
  Claude Code   claude mcp add --transport http %[3]s %[2]s --header "Authorization: Bearer $MCSH_TOKEN"
  VS Code       {"servers": {%[3]q: {"type": "http", "url": %[2]q, "headers": {"Authorization": "Bearer ${env:MCSH_TOKEN}"}}}}
  others        {"mcpServers": {%[3]q: {"url": %[2]q, "headers": {"Authorization": "Bearer ${MCSH_TOKEN}"}}}}
  tokens        a client takes its own from the variable MCSH_TOKEN; mcsh token new NAME makes one
`

// runtimeGreeting is for a gateway that a runtime started: clients do not connect to its own address.
const runtimeGreeting = `%[1]s listens on %[2]s
  ToolHive      that is for its proxy; clients connect to the URL that thv list shows
`

// An endpoint is what a command serves over HTTP.
type endpoint struct {
	name    string // of the command
	handler http.Handler
	endUser func(id string)                 // ends the calls and sessions of an identity without access
	guarded func(*auth.Guard)               // receives the guard, if callers authenticate; may be nil
	pages   http.Handler                    // of sign-ins, outside of authentication; nil: none
	control http.Handler                    // the API for other machines, which authenticates by itself; nil: none
	console *ui.Console                     // nil: none
	around  func(http.Handler) http.Handler // sees all requests, refused ones too; may be nil

	listeners   []net.Listener
	connections *connections
	log         *zap.Logger
}

// serve serves an endpoint to the callers that the flags allow.
func (l *listenFlags) serve(ctx context.Context, p *program, e endpoint, end shutdown) error {
	following, stop := context.WithCancel(ctx)
	guard, wait, err := l.auth.guard(following, e.log, e.endUser)
	defer wait()
	defer stop()
	if err != nil {
		return err
	}
	if guard != nil {
		if e.guarded != nil {
			e.guarded(guard)
		}
		e.handler = guard.Protect(e.handler)
	}
	text, address := greeting, e.listeners[0].Addr()
	switch {
	case l.runtime:
		text = runtimeGreeting
	case l.auth.tokens != "":
		text = tokenGreeting
	}
	if e.console != nil {
		text += fmt.Sprintf("  console       http://%s/\n", address)
	}
	_, server, _ := strings.Cut(e.name, "mcsh server ")
	fmt.Fprintf(p.stderr, text, e.name, endpointOf(address), cmp.Or(server, e.name)) // in one write: others write to stderr too
	if warning := l.auth.plaintextWarning(address); warning != "" && !l.contained && (guard != nil || e.control != nil) {
		e.log.Warn(warning)
	}
	handler := l.checkHosts(l.withPages(e.pages, withControl(e.control, l.withConsole(e.console, guard, e.handler))))
	if e.around != nil {
		handler = e.around(handler)
	}
	return serveHTTP(ctx, e.listeners, e.connections, handler, end)
}

// answerTime is how long the last answers may take to reach their clients.
const answerTime = time.Second

// serveHTTP serves until ctx is done. Then it accepts no connections, calls e.stop with the grace, and closes the
// remaining connections.
func serveHTTP(ctx context.Context, listeners []net.Listener, c *connections, h http.Handler, e shutdown) error {
	server := &http.Server{
		Handler: gateway.WithDeadlines(e.moving(h)), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: headerBytes, ConnState: c.follow,
	}
	served := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { served <- server.Serve(l) }()
	}
	var err error
	select {
	case err = <-served: // a listener failed
	case <-ctx.Done():
	}
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	stopped := make(chan struct{})
	go func() { server.Shutdown(waiting); close(stopped) }() // Close ends the rest
	grace, cancel := e.begin()
	defer cancel()
	err = errors.Join(err, e.stop(grace))
	answers := time.AfterFunc(answerTime, giveUp)
	<-stopped
	answers.Stop()
	server.Close()
	return err
}

// Default limits of open connections.
const (
	defaultConnections        = 10_000
	defaultAddressConnections = 512
)

// refuseWait bounds the write of a refusal, which fits into the buffer of a new connection.
const refuseWait = 100 * time.Millisecond

// connections bounds the open connections of a server, in all and per address. The bound per address does not apply to
// this machine and to trusted proxies.
type connections struct {
	all, address int
	proxies      gateway.Proxies

	mu sync.Mutex
	of map[net.Conn]string // the address of each open connection, guarded by mu
	by map[string]int      // connections per address, guarded by mu
}

func newConnections(all, address int, proxies gateway.Proxies) *connections {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		all = min(all, int(min(files.Cur, 1<<30)/2)) // the other half is for servers, workers and kept outputs
	}
	return &connections{all: all, address: address, proxies: proxies, of: map[net.Conn]string{}, by: map[string]int{}}
}

// follow is an [http.Server.ConnState] hook.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if why := c.open(conn); why != "" {
			refuse(conn, why)
		}
	case http.StateClosed, http.StateHijacked:
		c.close(conn)
	}
}

// open counts a connection, or returns the reason to refuse it.
func (c *connections) open(conn net.Conn) string {
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // the zero address for an invalid one
	peer := at.Addr().Unmap().WithZone("")
	many := peer.IsLoopback() || slices.ContainsFunc(c.proxies, func(network netip.Prefix) bool { return network.Contains(peer) })
	from := gateway.NetworkOf(peer)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.of) >= c.all:
		return fmt.Sprintf("there are %d connections already (limit connections)", len(c.of))
	case !many && c.by[from] >= c.address:
		return fmt.Sprintf("your address has %d connections already (limit address-connections)", c.by[from])
	}
	c.of[conn] = from
	c.by[from]++
	return ""
}

// close stops counting a connection, if open counted it.
func (c *connections) close(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, counted := c.of[conn]
	if !counted {
		return
	}
	delete(c.of, conn)
	if c.by[from]--; c.by[from] == 0 {
		delete(c.by, from)
	}
}

// refuse answers a new connection before its first request and closes it.
func refuse(conn net.Conn, why string) {
	_ = conn.SetWriteDeadline(time.Now().Add(refuseWait)) // the write reports a failure
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n"+
		"Connection: close\r\nContent-Length: %d\r\n\r\n%s\n", len(why)+1, why)
	_ = conn.Close()
}

// Variables by which runtimes of MCP servers, such as ToolHive, set the transport. Flags override them.
const (
	transportVariable = "MCP_TRANSPORT"
	portVariable      = "MCP_PORT"
	hostVariable      = "MCP_HOST"
)

// defaultPort serves a runtime that names no port.
const defaultPort = "8808"

// fromRuntime takes the address from the variables of a runtime if --listen is not given. In a container with its own
// network it is the container's address, because the runtime decides who reaches that; elsewhere it is the loopback.
func (l *listenFlags) fromRuntime(p *program) error {
	if l.address != "" {
		return nil
	}
	switch transport := p.env[transportVariable]; transport {
	case "", "stdio":
		return nil
	case "streamable-http", "http":
	default:
		return configError("start it with streamable-http",
			fmt.Errorf("%s=%s: that is not served", transportVariable, texts.Fit(transport, 40)))
	}
	port := cmp.Or(p.env[portVariable], defaultPort)
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return configError("give a number below 65536", fmt.Errorf("%s=%s is not a port", portVariable, texts.Fit(port, 40)))
	}
	l.runtime = true
	host := p.env[hostVariable]
	own, inside := containerAddress()
	switch ip, err := netip.ParseAddr(host); {
	case inside && (host == "" || isLoopback(host) || err == nil && (ip.IsUnspecified() || ip == own)):
		l.address, l.contained = net.JoinHostPort(own.String(), port), true
	case host == "":
		l.address = net.JoinHostPort("127.0.0.1", port)
	default:
		l.address = net.JoinHostPort(host, port)
	}
	return nil
}

// containerAddress returns the address of this container, if it has its own network.
func containerAddress() (netip.Addr, bool) {
	name, _ := os.Hostname()              // an unknown name stands in no hosts file
	hosts, _ := os.ReadFile("/etc/hosts") // nothing, if it cannot be read
	list, _ := net.InterfaceAddrs()
	return addressInHosts(name, hosts, convert(list, func(a net.Addr) netip.Addr {
		prefix, _ := netip.ParsePrefix(a.String()) // an invalid one is no address of a container
		return prefix.Addr()
	}))
}

// containerName matches the default host name of a docker or podman container with its own network.
var containerName = lazy.Regexp(`^[0-9a-f]{12}$`)

// podHosts begins the hosts file of a pod with its own network.
var podHosts = []byte("# Kubernetes-managed hosts file.\n")

// addressInHosts finds the address of a container in its hosts file. The address must belong to an interface.
func addressInHosts(name string, hosts []byte, local []netip.Addr) (netip.Addr, bool) {
	if !containerName().MatchString(name) && !bytes.HasPrefix(hosts, podHosts) {
		return netip.Addr{}, false
	}
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 || !slices.Contains(fields[1:], name) {
			continue
		}
		ip, err := netip.ParseAddr(fields[0])
		if err == nil && !ip.IsLoopback() && !ip.IsUnspecified() && slices.Contains(local, ip) {
			return ip, true
		}
	}
	return netip.Addr{}, false
}
