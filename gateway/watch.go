package gateway

import (
	"context"
	"crypto/rand"
	"log/slog"
	"math"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/stages"
)

// A Watch is told of what agents ask for. Its methods may be called concurrently and must not block.
type Watch interface {
	// Tools is asked for once: what it returns calls the tools of pipelines.
	Tools(next stages.Tools) stages.Tools

	// Run is told of a run that begins, and by what it returns of its end: how many bytes of output there were, and
	// whether their shape was shown in their place. The run has the context and the options that it returns; request
	// is what the run is called in the log and in the reply, session the id of the session that it comes in, if any.
	Run(ctx context.Context, request, session string, o stages.RunOptions) (context.Context, stages.RunOptions, func(r stages.Report, bytes int64, previewed bool, err error))

	// Refused is told of a call of one of the gateway's tools that was refused before anything ran.
	Refused(tool string, err error)
}

// unwatched is the Watch of a gateway without one.
type unwatched struct{}

func (unwatched) Tools(next stages.Tools) stages.Tools { return next }

func (unwatched) Run(ctx context.Context, _, _ string, o stages.RunOptions) (context.Context, stages.RunOptions, func(stages.Report, int64, bool, error)) {
	return ctx, o, func(stages.Report, int64, bool, error) {}
}

func (unwatched) Refused(string, error) {}

// newRequest is a name for a call, unlike those of all others. It lets nobody do anything: the id of a run, which is what
// lets one read its output, is not told to logs and traces.
func newRequest() string { return "q_" + strings.ToLower(rand.Text()[:12]) }

// sessionOf is the id of the session that a call comes in over HTTP, or empty.
func sessionOf(req *mcp.CallToolRequest) string {
	if req.Extra == nil {
		return ""
	}
	return req.Extra.Header.Get(sessionHeader)
}

// sdkLog is the log as the SDK writes to it: what goes wrong. Its news name sessions, and a session's id opens it.
func sdkLog(log *zap.Logger) *slog.Logger {
	handler := func(least zapcore.Level) slog.Handler {
		core := log.WithOptions(zap.IncreaseLevel(max(least, log.Level()))).Core()
		return zapslog.NewHandler(core, zapslog.WithName("sdk"), zapslog.AddStacktraceAt(noStack))
	}
	return slog.New(sdkHandler{handler(zap.WarnLevel), handler(zap.DebugLevel)})
}

// noStack is above every level: where in the SDK a line comes from helps nobody who runs a gateway.
const noStack = slog.Level(math.MaxInt)

// clientMistakes are what the SDK calls errors, and are those of clients, who are told. Whoever calls could fill a log by
// them.
var clientMistakes = []string{
	"initialized before initialize", "duplicate initialized notification", "duplicate initialize request",
	"method removed in the new protocol", "method invalid during initialization",
}

// An sdkHandler takes the lines of the SDK, and those of mistakes of clients for the level debug.
type sdkHandler struct {
	slog.Handler
	debug slog.Handler
}

// Handle implements [slog.Handler].
func (h sdkHandler) Handle(ctx context.Context, r slog.Record) error {
	if !slices.Contains(clientMistakes, r.Message) {
		return h.Handler.Handle(ctx, r)
	}
	r = slog.NewRecord(r.Time, slog.LevelDebug, r.Message, 0) // without its attributes: a method may be as long as a client likes
	if !h.debug.Enabled(ctx, r.Level) {
		return nil
	}
	return h.debug.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h sdkHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sdkHandler{h.Handler.WithAttrs(attrs), h.debug.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h sdkHandler) WithGroup(name string) slog.Handler {
	return sdkHandler{h.Handler.WithGroup(name), h.debug.WithGroup(name)}
}
