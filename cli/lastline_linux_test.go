package cli

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// sayTools have one tool, which returns its argument as text.
type sayTools struct{}

func (sayTools) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	return &stages.Tool{Server: server, Name: name, ReadOnly: true, Input: stages.Input{Properties: []string{"input"}}}, nil
}

func (sayTools) CallTool(_ context.Context, c stages.Call) (stages.Result, error) {
	c.MaySend()
	return stages.Result{Data: c.Args[len(`{"input":"`) : len(c.Args)-len(`"}`)]}, nil
}

// TestLastLine: only a terminal gets its last line ended.
func TestLastLine(t *testing.T) {
	deps := stages.Deps{Tools: sayTools{}, Schemas: schemas.Stages()}
	plan := []byte(`[{"type": "tool", "server": "s", "name": "say", "args": {"input": "done"}}]`)
	write := func(out io.Writer) {
		t.Helper()
		pipeline, err := compile(t.Context(), plan, deps, false, gateway.CallTime{Timeout: time.Minute, Begun: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		p := &program{stdout: newStream(out, nil), stderr: plain{newStream(io.Discard, nil)}}
		if err := p.runToStdout(t.Context(), pipeline, nil, stages.RunOptions{}, false); err != nil {
			t.Fatal(err)
		}
	}
	var piped strings.Builder
	if write(&piped); piped.String() != "done" {
		t.Errorf("a pipe gets %q", piped.String())
	}
	screen, tty := terminal(t)
	write(tty)
	write(tty)
	shown := make([]byte, len("done\r\ndone\r\n"))
	if _, err := io.ReadFull(screen, shown); err != nil || string(shown) != "done\r\ndone\r\n" {
		t.Errorf("a terminal shows %q, %v", shown, err)
	}
}
