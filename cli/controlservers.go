package cli

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// controlledServers are the servers of a gateway, for programs that control it.
type controlledServers struct {
	pool    *upstream.Pool
	metrics *observe.Metrics
	log     *zap.Logger
}

var _ control.Servers = controlledServers{}

// ShowServers implements [control.Servers].
func (s controlledServers) ShowServers(ctx context.Context, v control.Viewer, server string) ([]control.ServerDetail, error) {
	list := []control.ServerDetail{}
	for _, l := range looks(ctx, s.pool, s.metrics) {
		if server == "" || server == l.Server {
			list = append(list, l.detail(v))
		}
	}
	if server != "" && len(list) == 0 {
		_, err := s.pool.Pending(ctx, server) // its error names similar ones
		return list, s.refusal(err)
	}
	return list, nil
}

// detail describes a server for a viewer.
func (l *look) detail(v control.Viewer) control.ServerDetail {
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	d := control.ServerDetail{
		Server:    control.Server{Name: l.Server, Status: l.Status, Code: string(l.Code), Where: l.Where},
		Transport: l.Transport, Protocol: l.Protocol, SignIn: l.SignIn, Changed: l.Untrusted,
		Calls: l.Calls, Errors: l.Errors, P50: milliseconds(l.P50), P95: milliseconds(l.P95),
	}
	if l.Tools >= 0 {
		d.Tools = &l.Tools
	}
	if !l.Started.IsZero() {
		d.Started = &l.Started
	}
	if v.Results {
		d.Why, d.Hint, d.Stderr = l.why, l.hint, l.Stderr
	}
	return d
}

// RestartServer implements [control.Servers].
func (s controlledServers) RestartServer(ctx context.Context, server string) error {
	return s.direct(ctx, "has restarted", s.pool.Restart, server)
}

// DisableServer implements [control.Servers].
func (s controlledServers) DisableServer(ctx context.Context, server string) error {
	return s.direct(ctx, "has disabled", s.pool.Disable, server)
}

// EnableServer implements [control.Servers].
func (s controlledServers) EnableServer(ctx context.Context, server string) error {
	return s.direct(ctx, "has enabled", s.pool.Enable, server)
}

// direct does something with a server, and says so in the log.
func (s controlledServers) direct(ctx context.Context, did string, act func(context.Context, string) error, server string) error {
	err := s.refusal(act(ctx, server))
	if err == nil {
		s.log.Info("an operator "+did+" a server", zap.String("server", server))
	}
	return err
}

// refusal returns an error of the pool as one of the API.
func (s controlledServers) refusal(err error) error {
	e, ok := errors.AsType[*stages.Error](err)
	switch {
	case err == nil:
		return nil
	case !ok:
		return &control.Error{Status: http.StatusServiceUnavailable, Message: s.pool.Hide(err.Error()), Hint: "try again"}
	case e.Code == stages.UnknownServer:
		return &control.Error{Status: http.StatusNotFound, Message: s.pool.Hide(e.Msg), Hint: e.Hint}
	}
	return &control.Error{Status: http.StatusConflict, Message: s.pool.Hide(e.Msg), Hint: e.Hint}
}

// A look is what is known of a server, with the figures of its calls.
type look struct {
	upstream.Look
	observe.Figures
	why, hint string // of a failure
}

// looks returns what is known of the servers that the view of ctx shows, sorted by name.
func looks(ctx context.Context, pool *upstream.Pool, metrics *observe.Metrics) (list []look) {
	figures := metrics.Figures()
	for _, l := range pool.Looks(ctx) {
		one := look{Look: l, Figures: figures[metrics.Label(l.Server)]}
		if l.Failure != nil {
			one.why = reason(l.Server, l.Failure)
		}
		if e, ok := errors.AsType[*stages.Error](l.Failure); ok {
			one.hint = e.Hint
		}
		list = append(list, one)
	}
	return list
}
