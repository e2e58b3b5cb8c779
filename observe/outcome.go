package observe

import (
	"context"
	"errors"

	"github.com/mcsh-dev/mcsh/stages"
)

// codeOK is the code of what succeeded.
const codeOK = "OK"

// knownCodes are the values of the label code.
var knownCodes = map[stages.Code]bool{
	stages.InvalidPipeline: true, stages.UnknownServer: true, stages.UnknownTool: true, stages.UnknownRun: true,
	stages.InvalidArguments: true, stages.DisallowedCommand: true, stages.DisallowedArgument: true, stages.ToolError: true,
	stages.ServerUnavailable: true, stages.CommandFailed: true, stages.Timeout: true, stages.LimitExceeded: true,
	stages.Denied: true, stages.Cancelled: true, stages.Internal: true,
}

// codeOf is the code of an outcome.
func codeOf(err error) string {
	var e *stages.Error
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &e) && knownCodes[e.Code]:
		return string(e.Code)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return string(stages.Cancelled)
	}
	return string(stages.Internal)
}

// limitOf is the limit that ended something, or nothing. A time that is none was of the stage's own choice.
func limitOf(e *stages.Error) string {
	if e.Limit == "" && e.Code == stages.LimitExceeded {
		return others
	}
	return e.Limit
}

// reached counts the limit that ended something, if it was one.
func (m *Metrics) reached(err error) {
	var e *stages.Error
	if errors.As(err, &e) {
		if limit := limitOf(e); limit != "" {
			m.limits.WithLabelValues(limit).Inc()
		}
	}
}
