package gateway

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

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
	return slog.New(zapslog.NewHandler(log.WithOptions(zap.IncreaseLevel(max(zap.WarnLevel, log.Level()))).Core(), zapslog.WithName("sdk")))
}
