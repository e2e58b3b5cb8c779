package stages

import (
	"context"
	"errors"
	"io"

	"github.com/mcsh-dev/mcsh/preview"
)

// PreviewStage shows the shape of the data within a budget. As the last stage its text is the output; anywhere else it
// is a window: the data passes unchanged and the text is shown beside it (pipeline.md §6).
type PreviewStage struct {
	Chars int `json:"chars,omitempty" jsonschema:"minimum=1,maximum=100000" jsonschema_description:"Budget in characters: 3000, or 1200 where data passes on."`
}

// Compile refuses a window within a for_each: there would be one for every item.
func (p *PreviewStage) Compile(_ context.Context, s Scope) (*Step, error) {
	window := !s.Last || s.Site == InBranch || s.Site == InInput
	if p.Chars < 0 {
		return nil, fielded("chars", Errorf(InvalidPipeline, "", "chars must be at least 1, got %d", p.Chars))
	}
	if window && s.Each {
		return nil, Errorf(InvalidPipeline, "move the preview to the end of the for_each stages, or behind the for_each",
			"a preview inside of for_each may only be the last of its stages")
	}
	step := &Step{Label: "preview", Expects: "any bytes", Does: "shows the shape of the data; the data passes on unchanged", passes: window, window: window, replays: window}
	if !window {
		step.Does = "turns the data into a text that shows its shape"
		step.Bind = func(context.Context, *Run, *Meter) (Filter, error) {
			return func(ctx context.Context, in io.Reader, out io.Writer) error {
				return p.output(ctx, s.Commands, in, out)
			}, nil
		}
		return step, nil
	}
	step.Bind = func(_ context.Context, r *Run, m *Meter) (Filter, error) {
		return func(ctx context.Context, in io.Reader, out io.Writer) error {
			return p.window(ctx, s.Commands, r, m, in, out)
		}, nil
	}
	return step, nil
}

// options are those of a preview, which proposes only jq programs that can be compiled here.
func (p *PreviewStage) options(c Commands, window bool) preview.Options {
	return preview.Options{Chars: p.Chars, Window: window, Check: Runnable(c)}
}

// Runnable tells of a jq program whether c, which may be nil, would run it. See [preview.Options.Check].
func Runnable(c Commands) func(program string) bool {
	return func(program string) bool {
		if c == nil {
			return false
		}
		_, err := c.CheckCommand(Command{Name: "jq", Args: []string{"-c", program}})
		return err == nil
	}
}

// output replaces the data by its shape.
func (p *PreviewStage) output(ctx context.Context, c Commands, in io.Reader, out io.Writer) error {
	result, err := preview.Preview(ctx, in, p.options(c, false))
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, result.Text)
	return err
}

// window passes the data on and shows what passed, also when the stages behind want no more of it.
func (p *PreviewStage) window(ctx context.Context, c Commands, r *Run, m *Meter, in io.Reader, out io.Writer) error {
	seen, feed := io.Pipe()
	shown := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			seen.CloseWithError(err)
			shown <- err
		}()
		defer recovered(&err)
		result, err := preview.Preview(context.WithoutCancel(ctx), seen, p.options(c, true))
		if err == nil {
			r.looked(Window{Place: m.step.place, Text: result.Text})
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
