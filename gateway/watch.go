package gateway

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/mcsh-dev/mcsh/stages"
)

// A Watch observes calls. Its methods may be called concurrently and must not block.
type Watch interface {
	// Tools wraps the tools that pipelines call. It is called once.
	Tools(next stages.Tools) stages.Tools

	// Run observes the start of a run, and returns the context and options to use and a function for its end, which gets
	// the bytes of the output and whether the reply previews them. request is the name of the run in logs and the reply;
	// session is the id of its session or empty.
	Run(ctx context.Context, request, session string, o stages.RunOptions) (context.Context, stages.RunOptions, func(r stages.Report, bytes int64, previewed bool, err error))

	// Call observes the start of a client's call of a server's tool by a name of its own, and returns the context and trace to
	// use and a function for its end.
	Call(ctx context.Context, request, session, name string, t stages.Trace) (context.Context, stages.Trace, func(err error))

	// Asked observes the end of a request for a resource, a prompt or a completion, which a server has answered with so many
	// bytes. The server is empty if none was found.
	Asked(method, server string, elapsed time.Duration, bytes int, err error)

	// Refused observes a call that was refused before anything ran.
	Refused(tool string, err error)

	// Job observes the start of an attempt at a durable run, or at a part of a run, and returns a function for its end: left
	// says that another attempt goes on.
	Job(part bool) (ended func(left bool, err error))
}

// Unwatched is the Watch that does nothing. Others embed it, and observe some calls.
type Unwatched struct{}

// Tools implements [Watch].
func (Unwatched) Tools(next stages.Tools) stages.Tools { return next }

// Run implements [Watch].
func (Unwatched) Run(ctx context.Context, _, _ string, o stages.RunOptions) (context.Context, stages.RunOptions, func(stages.Report, int64, bool, error)) {
	return ctx, o, func(stages.Report, int64, bool, error) {}
}

// Call implements [Watch].
func (Unwatched) Call(ctx context.Context, _, _, _ string, t stages.Trace) (context.Context, stages.Trace, func(error)) {
	return ctx, t, func(error) {}
}

// Asked implements [Watch].
func (Unwatched) Asked(string, string, time.Duration, int, error) {}

// Refused implements [Watch].
func (Unwatched) Refused(string, error) {}

// Job implements [Watch].
func (Unwatched) Job(bool) func(bool, error) { return func(bool, error) {} }

// newRequest returns a random name for a call. Logs and traces have it in place of the run's id, which gives access to the
// output.
func newRequest() string { return "q_" + strings.ToLower(rand.Text()[:12]) }

// sessionOf returns the id of a call's HTTP session, or "".
func sessionOf(req *mcp.CallToolRequest) string {
	if req.Extra == nil {
		return ""
	}
	return req.Extra.Header.Get(sessionHeader)
}

// sdkLog returns a log for the SDK that drops lines below warnings: they hold session ids, which give access.
func sdkLog(log *zap.Logger) *slog.Logger {
	return slog.New(sdkHandler{zapslog.NewHandler(log.Core(), zapslog.WithName("sdk"), zapslog.AddStacktraceAt(noStack))})
}

// noStack is above every level: an operator has no use for stacks in the SDK.
const noStack = slog.Level(math.MaxInt)

// clientMistakes begin the SDK's errors that clients cause and get as answers. At a higher level any client could fill the
// log.
var clientMistakes = []string{
	"initialized before initialize", "duplicate initialized notification", "duplicate initialize request",
	"method removed in the new protocol", "method invalid during initialization",
}

// An sdkHandler drops lines below warnings, and lowers those about mistakes of clients to the level debug.
type sdkHandler struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (h sdkHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h sdkHandler) Handle(ctx context.Context, r slog.Record) error {
	if slices.Contains(clientMistakes, r.Message) {
		r = slog.NewRecord(r.Time, slog.LevelDebug, r.Message, 0) // without attributes: a client decides their length
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h sdkHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sdkHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h sdkHandler) WithGroup(name string) slog.Handler { return sdkHandler{h.Handler.WithGroup(name)} }
