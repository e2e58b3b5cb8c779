package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
)

// path is where browsers are redirected to.
const path = "/callback"

// Bounds of the requests of browsers.
const (
	maxHeader   = 128 << 10 // bytes: a code may be long
	maxConns    = 16        // at once, on each address
	requestWait = 10 * time.Second
	writeWait   = 2 * time.Minute // a page may wait for the issuer
	closeWait   = 2 * time.Second // for a page that is being sent
)

// page is the answer to the browser.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>mcsh</title>
<p>mcsh has the answer. You can close this tab; the terminal says whether you are signed in.</p>
</html>
`

// A Listener waits on the loopback interface for a redirected browser.
type Listener struct {
	URI string // that the browser is redirected to

	listeners []net.Listener
}

// Listen listens on a port of this machine; 0: any. A fixed port is one that somebody has registered as http://localhost:PORT/callback,
// as most clients do. The caller calls Wait or Close.
func Listen(port int) (*Listener, error) {
	first, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	l := &Listener{URI: "http://" + first.Addr().String() + path, listeners: []net.Listener{first}}
	if port == 0 {
		return l, nil
	}
	l.URI = fmt.Sprintf("http://localhost:%d%s", port, path)
	second, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(port))) // which localhost may mean
	switch {
	case err == nil:
		l.listeners = append(l.listeners, second)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errors.Join(err, first.Close())
	} // otherwise this machine has no IPv6
	return l, nil
}

// Close closes a listener that nobody waits for.
func (l *Listener) Close() error {
	var errs []error
	for _, one := range l.listeners {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// Wait serves browsers until one comes with the right redirected address, and returns that address. It answers every other request with 404.
// It returns the cause of ctx if that ends before. Wait is called once, and closes the listener.
func (l *Listener) Wait(ctx context.Context, right func(address string) bool) (string, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	answered := make(chan string, 1)
	err := l.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		address := l.URI + "?" + r.URL.RawQuery
		if r.Method != http.MethodGet || r.URL.Path != path || !right(address) {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		io.WriteString(w, page)
		select {
		case answered <- address:
			stop(errAnswered)
		default: // the browser has come twice
		}
	}))
	if !errors.Is(err, errAnswered) {
		return "", err
	}
	return <-answered, nil
}

// errAnswered ends the wait for the browser.
var errAnswered = errors.New("the browser has come")

// Serve serves browsers until ctx ends, and returns its cause. It is called once, instead of Wait, and closes the listener.
func (l *Listener) Serve(ctx context.Context, h http.Handler) error {
	server := &http.Server{Handler: h, ReadTimeout: requestWait, WriteTimeout: writeWait, MaxHeaderBytes: maxHeader}
	server.SetKeepAlivesEnabled(false)
	serving := errgroup.Group{}
	for _, one := range l.listeners {
		serving.Go(func() error { return server.Serve(netutil.LimitListener(one, maxConns)) })
	}
	<-ctx.Done()
	err := context.Cause(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	if server.Shutdown(closing) != nil {
		server.Close()
	}
	if failed := serving.Wait(); !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
