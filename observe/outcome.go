package observe

import (
	"context"
	"errors"
	"regexp"

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

// limitNames are the values of the label limit.
var limitNames = map[string]bool{
	"attempt": true, "call": true, "caller-runs": true, "calls": true, "command": true, "held": true, "hops": true, "input": true, "item": true,
	"items": true, "nesting": true, "result": true, "run": true, "runs": true, "shared": true, "spool": true, "stages": true,
	"waiting": true,
}

// named finds the limit that a message names.
var named = regexp.MustCompile(`\(limit ([a-z-]+)[;)]`)

// limitOf is the limit that ended something, or nothing.
func limitOf(e *stages.Error) string {
	if e == nil || e.Code != stages.LimitExceeded && e.Code != stages.Timeout {
		return ""
	}
	m := named.FindStringSubmatch(e.Msg)
	switch {
	case m != nil && limitNames[m[1]]:
		return m[1]
	case m == nil && e.Code == stages.Timeout: // of the stage's own choice
		return ""
	}
	return others
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
