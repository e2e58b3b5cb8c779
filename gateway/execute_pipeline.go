package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/stages"
)

// pipelineCall is the arguments of execute_pipeline (pipeline.md §1).
type pipelineCall struct {
	Pipeline  json.RawMessage `json:"pipeline"`
	Mode      string          `json:"mode"`
	Timeout   float64         `json:"timeout"`
	MaxOutput int             `json:"max_output"`
}

const (
	defaultReply = 32_000           // characters of a reply
	checkWait    = 30 * time.Second // for servers that a plan needs and that are still starting
)

func (g *Gateway) executePipeline(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	call := pipelineCall{Mode: "run", MaxOutput: defaultReply}
	if err := errors.Join(decode(req, &call), g.checkCall(&call)); err != nil {
		return nil, err
	}
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	checking, cancel := context.WithTimeout(ctx, checkWait)
	pipeline, errs := stages.Compile(checking, call.Pipeline, g.deps)
	cancel()
	if errs != nil {
		return failure(PlanErrorText(errs)), nil
	}
	if call.Mode == "check" {
		return textResult(PlanText(pipeline.Plan())), nil
	}
	return g.run(ctx, req, pipeline, call)
}

func (g *Gateway) checkCall(call *pipelineCall) error {
	var errs []error
	if call.Mode != "run" && call.Mode != "check" {
		errs = append(errs, stages.Errorf(stages.InvalidArguments, `use "run" or "check"`, "unknown mode %q", call.Mode))
	}
	if call.Timeout < 0 {
		errs = append(errs, stages.Errorf(stages.InvalidArguments, "leave it out for the default", "timeout %g is not a number of seconds", call.Timeout))
	}
	if call.MaxOutput < 1 || call.MaxOutput > g.o.MaxOutput {
		errs = append(errs, stages.Errorf(stages.InvalidArguments, "leave it out for the default of 32000",
			"max_output %d is not between 1 and %d characters", call.MaxOutput, g.o.MaxOutput))
	}
	return errors.Join(errs...)
}

// run runs a compiled pipeline and makes the reply.
func (g *Gateway) run(ctx context.Context, req *mcp.CallToolRequest, p *stages.Pipeline, call pipelineCall) (*mcp.CallToolResult, error) {
	notify := newNotifier(ctx, req)
	defer notify.stop()
	out := newReply(ctx, call.MaxOutput)
	defer out.close()
	report, err := p.Run(ctx, nil, out, stages.RunOptions{
		Timeout:  time.Duration(call.Timeout * float64(time.Second)),
		Progress: notify.progress,
	})
	g.logRun(report, out, err)
	var result *mcp.CallToolResult
	if err != nil {
		result = failure(errorText(err))
	} else if result, err = out.result(report); err != nil {
		return nil, err
	}
	result.Meta = mcp.Meta{"mcsh/report": replyReport{
		Millis: float64(report.Elapsed.Microseconds()) / 1000,
		Stages: report.Stages, Characters: out.characters, Replaced: out.replaced,
	}}
	return result, nil
}

// replyReport is what stands in _meta: it costs the model nothing.
type replyReport struct {
	Millis     float64              `json:"ms"`
	Stages     []stages.StageReport `json:"stages"`
	Characters int64                `json:"characters"`               // of the whole output
	Replaced   int64                `json:"replaced_bytes,omitempty"` // bytes that were no UTF-8
}

// logRun writes one line per run. Arguments and data are not in it: they may hold secrets.
func (g *Gateway) logRun(report stages.Report, out *reply, err error) {
	fields := []zap.Field{
		zap.Int("stages", len(report.Stages)),
		zap.Duration("elapsed", report.Elapsed),
		zap.Int64("characters", out.characters),
	}
	var e *stages.Error
	if errors.As(err, &e) {
		fields = append(fields, zap.String("code", string(e.Code)), zap.String("stage", string(e.Place)))
		if e.Code == stages.Internal {
			g.o.Log.Error("internal error", zap.Error(e.Err))
		}
	}
	g.o.Log.Info("pipeline", fields...)
}
