package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/internal/sockets"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream/browser"
)

// baseHeader tells the console of a gateway where it is for the browser. Only the control socket reads it.
const baseHeader = "X-Mcsh-Console-Base"

// gatewaysPath begins the paths of the gateways on the server of mcsh console.
const gatewaysPath = "/g/"

// consoleCommandFlags are those of mcsh console.
type consoleCommandFlags struct {
	gatewayFlags
	listen string
	noOpen bool
}

func (p *program) consoleCommand() *cobra.Command {
	var c consoleCommandFlags
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Open the console of your running gateways in a browser",
		Long: `Open the console: pages on which you see the servers, tools and runs of your running gateways, also of those that MCP
clients have started. The command serves them on a port of this machine until it is interrupted. The address that it prints
opens one browser, once: other users of this machine cannot use the port.

If no gateway of yours runs, it starts one for the configuration at hand, which ends with the command.`,
		Example: "  mcsh console\n  mcsh console --gateway k3v9x2m4qa\n  mcsh console --config mcp.json --no-open",
		Args:    gatewayByFlag,
	}
	return command(cmd, func(ctx context.Context, _ []string) error { return p.console(ctx, &c) }, c.addSources, c.gatewayFlags.add, func(cmd *cobra.Command) {
		cmd.Flags().StringVar(&c.listen, "listen", "127.0.0.1:0", "address of this machine on which the pages are served; port 0: a free one")
		cmd.Flags().Lookup("gateway").Usage = "one gateway of this machine: its id (default: all of this user)"
		cmd.Flags().BoolVar(&c.noOpen, "no-open", false, "open no browser, only print the address")
	})
}

func (p *program) console(ctx context.Context, c *consoleCommandFlags) error {
	host, _, err := net.SplitHostPort(c.listen)
	if err != nil || !isLoopback(host) {
		return usageError("such as --listen 127.0.0.1:8809", "--listen %q is no address with a port of this machine alone", c.listen)
	}
	if strings.Contains(c.gateway, "://") {
		return usageError("open its own address in a browser", "mcsh console shows the gateways of this machine")
	}
	clients, err := c.find(ctx, p)
	if err != nil {
		return err
	}
	listener, err := listenOn(c.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	front, err := p.newConsoleFront(c)
	if err != nil {
		return err
	}
	front.at, _ = netip.ParseAddrPort(listener.Addr().String()) // that of a TCP listener
	address := fmt.Sprintf("http://%s/?once=%s", front.at, front.once)
	show := func() error { return p.showConsole(address, c.noOpen) }
	serve := func(ctx context.Context) error { return front.serve(ctx, listener) }
	if len(clients) > 0 {
		return serveDuring(ctx, show, serve)
	}
	return p.consoleWithGateway(ctx, c, show, serve)
}

// consoleWithGateway serves a gateway of its own beside the pages, which are shown when it is there.
func (p *program) consoleWithGateway(ctx context.Context, c *consoleCommandFlags, show func() error, serve func(context.Context) error) error {
	fmt.Fprintln(p.stderr, "no gateway of yours runs: one is started for the configuration at hand, and ends with this command")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := func() error {
		for ctx.Err() == nil {
			if found, err := c.find(ctx, p); err != nil || len(found) > 0 {
				return errors.Join(err, show())
			}
			_ = pausing.For(ctx, gatewayPause)
		}
		return nil
	}
	own := func(ctx context.Context) error { return p.serveForConsole(ctx, c) }
	return serveDuring(ctx, begin, func(ctx context.Context) error {
		return serveDuring(ctx, func() error { defer cancel(); return own(ctx) }, serve)
	})
}

// gatewayPause is the time between two looks for a gateway that starts.
const gatewayPause = 50 * time.Millisecond

// serveForConsole serves a gateway until ctx is done. It has no client and no port: its only user is the one who can reach its control socket.
func (p *program) serveForConsole(ctx context.Context, c *consoleCommandFlags) error {
	in, end := io.Pipe()
	defer context.AfterFunc(ctx, func() { _ = end.Close() })()
	own := &program{stdin: in, stdout: newStream(io.Discard, p.env), stderr: p.stderr, env: maps.Clone(p.env)}
	own.text = plain{own.stdout}
	defer own.closeStores()
	delete(own.env, transportVariable) // it is for gateways with clients
	serve := own.serveCommand()
	var args []string
	c.flags.Visit(func(given *pflag.Flag) {
		if given.Name == "listen" || serve.Flags().Lookup(given.Name) == nil {
			return
		}
		values := []string{given.Value.String()}
		if list, ok := given.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+given.Name+"="+value)
		}
	})
	serve.SetArgs(args)
	serve.SilenceUsage, serve.SilenceErrors = true, true
	return serve.ExecuteContext(ctx)
}

// showConsole opens the address in a browser, and prints it.
func (p *program) showConsole(address string, noOpen bool) error {
	opener, missing := browser.Find(runtime.GOOS, p.env)
	if noOpen || missing != nil {
		fmt.Fprintf(p.stderr, "open this address in a browser; it works once:\n")
		_, err := fmt.Fprintln(p.stdout.w, address)
		return err
	}
	fmt.Fprintln(p.stderr, "the console opens in your browser; Ctrl-C ends it")
	failed := func(err error) {
		fmt.Fprintf(p.stderr, "no browser was opened (%v); open this address, which works once:\n  %s\n", err, address)
	}
	if err := opener.Open(address, failed); err != nil {
		failed(err)
	}
	return nil
}

// A consoleFront serves the consoles of the gateways of one user to one browser.
type consoleFront struct {
	find    func(ctx context.Context) (map[string]*control.Client, error)
	chooser *ui.Chooser

	at      netip.AddrPort // of its listener
	opens   bool           // the address is an argument of a browser, which other users of this machine may read
	base    string         // of its paths, random: browsers send cookies to all ports of a host, but only below their paths
	session string         // of the browser that has come with once
	mu      sync.Mutex
	once    string // of the address; empty: it was used; guarded by mu
}

func (p *program) newConsoleFront(c *consoleCommandFlags) (f *consoleFront, err error) {
	f = &consoleFront{opens: !c.noOpen, base: "/" + rand.Text() + "/", session: rand.Text(), once: rand.Text()}
	f.find = func(ctx context.Context) (map[string]*control.Client, error) {
		clients, err := c.find(ctx, p)
		if c.gateway != "" && err != nil {
			return nil, nil // it has ended
		}
		return clients, err
	}
	f.chooser, err = ui.NewChooser(f.base, f.choices)
	return f, err
}

func (f *consoleFront) serve(ctx context.Context, listener net.Listener) error {
	connections := newConnections(maxConsoleConnections, maxConsoleConnections, nil)
	end := shutdown{forced: ctx, stop: func(context.Context) error { return nil }}
	return serveHTTP(ctx, []net.Listener{listener}, connections, gateway.Hosts{}.Check(f), end)
}

// maxConsoleConnections bounds the connections of mcsh console.
const maxConsoleConnections = 256

// ServeHTTP implements [http.Handler].
func (f *consoleFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const name = "mcsh-console"
	if given := r.URL.Query().Get("once"); given != "" && r.Method == http.MethodGet && r.URL.Path == "/" && f.ours(r, sockets.TCP) && f.enter(given) {
		http.SetCookie(w, &http.Cookie{Name: name, Value: f.session, Path: f.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, f.first(r.Context()), http.StatusSeeOther)
		return
	}
	c, err := r.Cookie(name)
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(f.session)) != 1 || !strings.HasPrefix(r.URL.Path, f.base) {
		f.chooser.Closed(w, r)
		return
	}
	http.StripPrefix(strings.TrimSuffix(f.base, "/"), http.HandlerFunc(f.inside)).ServeHTTP(w, r)
}

// ours reports whether a program of this user or of root has sent a request, as far as the system shows it.
func (f *consoleFront) ours(r *http.Request, list func() []sockets.Socket) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if !f.opens || err != nil {
		return !f.opens
	}
	return !slices.ContainsFunc(list(), func(s sockets.Socket) bool {
		return s.Local == from && s.Remote == f.at && s.User != os.Getuid() && s.User != 0
	})
}

// inside answers the browser that may come in. The path is that below the base.
func (f *consoleFront) inside(w http.ResponseWriter, r *http.Request) {
	if id, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, gatewaysPath), "/"); ok && strings.HasPrefix(r.URL.Path, gatewaysPath) {
		f.forward(w, r, id, rest)
		return
	}
	f.chooser.ServeHTTP(w, r)
}

// enter reports whether a word opens the console, for the first time.
func (f *consoleFront) enter(word string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.once == "" || subtle.ConstantTimeCompare([]byte(word), []byte(f.once)) != 1 {
		return false
	}
	f.once = ""
	return true
}

// first returns the path of the first page: that of the only gateway, or the list.
func (f *consoleFront) first(ctx context.Context) string {
	clients, _ := f.find(ctx) // the list says what is wrong
	for id := range clients {
		if len(clients) == 1 {
			return f.base + gatewaysPath[1:] + id + "/"
		}
	}
	return f.base
}

var errNoConsole = errors.New("the gateway has no console")

// forward passes a request to the control socket of a gateway.
func (f *consoleFront) forward(w http.ResponseWriter, r *http.Request, id, rest string) {
	clients, err := f.find(r.Context())
	client := clients[id]
	if err != nil || client == nil {
		f.chooser.Show(w, r, http.StatusNotFound, "This gateway has ended.")
		return
	}
	base := gatewaysPath + id + "/"
	proxy := &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) {
			escaped := strings.TrimPrefix(pr.In.URL.EscapedPath(), base)
			pr.Out.URL = &url.URL{Scheme: "http", Host: "control", Path: control.PagesPath + rest, RawPath: control.PagesPath + escaped, RawQuery: pr.In.URL.RawQuery}
			pr.Out.Host = pr.In.Host // the origin of forms is compared with it
			pr.Out.Header.Del("Cookie")
			pr.Out.Header.Set(baseHeader, f.base+base[1:])
		},
		Transport:     client.Transport(),
		FlushInterval: -1, // events
		ModifyResponse: func(answer *http.Response) error {
			if answer.StatusCode == http.StatusNotFound && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") { // it is the API's
				return errNoConsole
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, errNoConsole) {
				f.chooser.Show(w, r, http.StatusNotFound, "This gateway has no console: it was started with --no-console or $"+consoleVariable+"=off. Start it again without that.")
				return
			}
			f.chooser.Show(w, r, http.StatusBadGateway, "The gateway does not answer. It may have ended.")
		},
		ErrorLog: log.New(io.Discard, "", 0), // the page says it
	}
	proxy.ServeHTTP(w, r)
}

// choices lists the gateways.
func (f *consoleFront) choices(ctx context.Context) []ui.Choice {
	clients, _ := f.find(ctx)
	answers, errs := askAll(clients, func(_ string, c *control.Client) (row ui.Choice, err error) {
		if row.Gateway, err = c.Gateway(ctx); err != nil {
			return row, err
		}
		servers, err1 := c.Servers(ctx)
		running, err2 := c.Live(ctx)
		row.Servers, row.Runs = len(servers), len(running)
		return row, errors.Join(err1, err2)
	})
	var list []ui.Choice
	for id := range clients {
		row, ok := answers[id]
		if !ok {
			row = ui.Choice{Gateway: control.Gateway{ID: id}, Err: errs[id].Error()}
		}
		row.Path = gatewaysPath[1:] + id + "/"
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b ui.Choice) int { return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID)) })
	return list
}
