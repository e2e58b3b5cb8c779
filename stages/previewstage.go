package stages

import (
	"context"
	"errors"
	"io"

	"github.com/mcsh-dev/mcsh/preview"
)

// PreviewStage shows the shape of the data within a budget. As the last stage its text is the output; anywhere else it
// is a window: the data passes unchanged and the text is shown beside it (docs/pipeline.md, The reply).
type PreviewStage struct {
	Chars int `json:"chars,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"Budget in characters: 3000, or 1200 where data passes on."`
}

// Compile refuses a window within a for_each: there would be one for every item.
func (p *PreviewStage) Compile(_ context.Context, s Scope) (*Step, error) {
	window := !s.Last || s.ListKind == InBranch || s.ListKind == InInput
	if window && s.Each {
		return nil, Errorf(InvalidPipeline, "move the preview to the end of the for_each stages, or behind the for_each",
			"a preview inside of for_each may only be the last of its stages")
	}
	step := &Step{
		Does: "turns the data into a text that shows its shape", Expects: "any bytes",
		Traits: Traits{Blocking: !window, KeepsKind: window, Replayable: window},
	}
	if window {
		step.Does = "shows the shape of the data; the data passes on unchanged"
	}
	step.Bind = func(_ context.Context, r *Run, m *Meter) (Filter, error) {
		return func(ctx context.Context, in io.Reader, out io.Writer) error {
			o := preview.Options{Chars: p.Chars, Window: window, Check: runsJQ(ctx, s.c.commands)}
			if window {
				return passWindow(ctx, o, r, m, in, out)
			}
			headersOf(ctx).out.describe(about{Kind: CommandText})
			result, err := preview.Preview(ctx, in, o)
			if err != nil {
				return err
			}
			_, err = io.WriteString(out, result.Text)
			return err
		}, nil
	}
	return step, nil
}

// RunsJQ tells a preview of the pipeline's output whether to propose jq programs. See [preview.Options.Check].
func (p *Pipeline) RunsJQ(ctx context.Context) func(program string) bool {
	return runsJQ(ctx, p.commands)
}

// runsJQ reports whether jq can be used. A preview proposes paths and names only, which are programs by their form.
func runsJQ(ctx context.Context, c CommandPlan) func(program string) bool {
	return func(string) bool {
		if c == nil {
			return false
		}
		_, err := c.Check(ctx, Command{Name: "jq", Args: []string{"-c", "."}})
		return err == nil
	}
}

// passWindow passes the data on and shows what passed, even when the stages behind want no more of it.
func passWindow(ctx context.Context, o preview.Options, r *Run, m *Meter, in io.Reader, out io.Writer) error {
	h := headersOf(ctx)
	h.out.copyOf(h.in)
	seen, feed := io.Pipe()
	shown := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			seen.CloseWithError(err)
			shown <- err
		}()
		defer recovered(&err)
		result, err := preview.Preview(context.WithoutCancel(ctx), seen, o)
		if err == nil {
			m.count(func(r *StageReport) { r.Window = &result.Text })
		}
	}()
	_, err := io.Copy(io.MultiWriter(out, feed), in)
	if err != nil {
		feed.CloseWithError(io.ErrUnexpectedEOF) // the preview says that it saw only the beginning
	} else {
		feed.Close()
	}
	return errors.Join(err, <-shown)
}
