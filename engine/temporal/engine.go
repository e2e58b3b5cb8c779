// Package temporal does durable jobs on Temporal. A job is a name: Temporal knows that it exists, which worker does it, how often
// that was tried and how far it is, and nothing else. Its data lies in a store that those who start jobs and the workers share,
// under the same name; neither the data nor the errors of a job enter Temporal's history.
//
// A worker that dies is noticed after 10 seconds, and another one does the job again from the beginning: doing a job must find
// what earlier attempts have stored. For a moment two workers can do one job, when the first was cut off from the server; what
// they write must agree, or the first writer must win.
package temporal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
)

// Options say where Temporal is, and how jobs are kept there.
type Options struct {
	Address   string       // HOST:PORT of the server; empty is 127.0.0.1:7233
	Namespace string       // exists on the server; empty is "default"
	Queue     string       // what those who start jobs and the workers have in common; empty is "mcsh"
	TLS       *tls.Config  // nil is no TLS, or that of the system where there is an APIKey
	APIKey    string       // authenticates at the server
	Log       *slog.Logger // of warnings and errors of the connection and of the worker; nil is none
	Attempts  int          // attempts of a job that is started, those that were stopped among them; 0 is as many as its time allows
}

const (
	connectWithin = 10 * time.Second
	maxText       = 512 // bytes of what a server says that is repeated in an error
)

// An Engine is a connection to Temporal. Its methods may be called concurrently.
type Engine struct {
	o      Options
	client client.Client
}

// Dial connects to Temporal, and checks that it answers and has the namespace. The caller closes the engine.
func Dial(ctx context.Context, o Options) (*Engine, error) {
	o.Address = cmp.Or(o.Address, "127.0.0.1:7233")
	o.Namespace = cmp.Or(o.Namespace, "default")
	o.Queue = cmp.Or(o.Queue, "mcsh")
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Attempts < 0 || o.Attempts > math.MaxInt32 {
		return nil, fmt.Errorf("%d attempts of a job: give 1 to 2147483647, or 0 for no bound", o.Attempts)
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	var last lastError
	settings := client.Options{
		HostPort:  o.Address,
		Namespace: o.Namespace,
		Logger:    warnings{o.Log},
		ConnectionOptions: client.ConnectionOptions{
			TLS:         o.TLS,
			DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(last.see)},
		},
	}
	if o.APIKey != "" {
		settings.Credentials = client.NewAPIKeyStaticCredentials(o.APIKey)
	}
	c, err := client.DialContext(ctx, settings)
	if err != nil {
		return nil, o.explain(last.or(err))
	}
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	if err != nil {
		c.Close()
		return nil, o.explain(err)
	}
	return &Engine{o: o, client: c}, nil
}

// WithQueueSuffix returns an engine with a queue of its own, whose jobs take no slots of others, over the same connection.
func (e *Engine) WithQueueSuffix(suffix string) *Engine {
	own := *e
	own.o.Queue += "-" + suffix
	return &own
}

// Close ends the connection. Nothing may use the engine any more.
func (e *Engine) Close() { e.client.Close() }

// explain says of an error of the connection what an operator can do.
func (o *Options) explain(err error) error {
	hint := "start Temporal (mcsh-temporal-dev is one for this machine), or correct the address"
	var missing *serviceerror.NamespaceNotFound
	var denied *serviceerror.PermissionDenied
	switch {
	case errors.As(err, &missing):
		return fmt.Errorf("temporal at %s has no namespace %q: create it (temporal operator namespace create --namespace %s), or name another one",
			o.Address, o.Namespace, o.Namespace)
	case errors.As(err, &denied) || isUnauthenticated(err):
		hint = "check the API key or the client certificate, and their rights to the namespace " + o.Namespace
	case isHandshake(err) && (o.TLS != nil || o.APIKey != ""):
		hint = "check that the server speaks TLS, its name and its certificate"
	case isHandshake(err):
		hint = "the server may want TLS"
	}
	return fmt.Errorf("connecting to Temporal at %s: %s: %s", o.Address, clip(serviceerror.ToStatus(err).Message()), hint)
}

// clip bounds a text of the server.
func clip(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "…"
	}
	return s
}

// A lastError keeps why the last request failed, while the client says only that it has given up.
type lastError struct{ p atomic.Pointer[error] }

func (l *lastError) see(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, conn, o...)
	if err != nil && ctx.Err() == nil {
		l.p.Store(&err)
	}
	return err
}

func (l *lastError) or(err error) error {
	if p := l.p.Load(); p != nil {
		return *p
	}
	return err
}

// warnings leave out what the SDK says below a warning, and of jobs that were cancelled.
type warnings struct{ *slog.Logger }

// Warn implements the logger of the SDK.
func (w warnings) Warn(msg string, args ...any) {
	if !slices.ContainsFunc(args, cancelled) {
		w.Logger.Warn(msg, args...)
	}
}

// Error implements the logger of the SDK.
func (w warnings) Error(msg string, args ...any) {
	if !slices.ContainsFunc(args, cancelled) {
		w.Logger.Error(msg, args...)
	}
}

func cancelled(arg any) bool {
	err, ok := arg.(error)
	return ok && temporal.IsCanceledError(err)
}

// Debug implements the logger of the SDK.
func (warnings) Debug(string, ...any) {}

// Info implements the logger of the SDK.
func (warnings) Info(string, ...any) {}

// jobName matches the names of jobs that are safe everywhere.
var jobName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

func checkName(name string) error {
	if !jobName.MatchString(name) {
		return fmt.Errorf("%q is no name of a job: 1 to 64 of the characters a-z, 0-9 and -", clip(name))
	}
	return nil
}
