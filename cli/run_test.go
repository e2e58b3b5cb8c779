package cli

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// leavingReader is a standard output whose reader has left: it refuses with err and says that it did.
type leavingReader struct {
	err  error
	once sync.Once
	left chan struct{}
}

func (r *leavingReader) Write([]byte) (int, error) {
	r.once.Do(func() { close(r.left) })
	return 0, r.err
}

// slowTools have one tool, which may change something. Its first call ends when the second has begun, and the second
// ends, in the way given, when the output was refused.
type slowTools struct {
	begun, left chan struct{}
	second      error
}

func (x *slowTools) Tool(_ context.Context, server, name string) (*stages.Tool, error) {
	return &stages.Tool{Server: server, Name: name, Input: stages.Input{Properties: []string{"n"}}}, nil
}

func (x *slowTools) CallTool(ctx context.Context, c stages.Call) (stages.Result, error) {
	if !c.MaySend() {
		return stages.Result{}, ctx.Err()
	}
	if strings.Contains(string(c.Args), "1") {
		<-x.begun
		return stages.Result{Data: []byte("done\n")}, nil
	}
	close(x.begun)
	<-x.left
	return stages.Result{Data: []byte("done\n")}, x.second
}

// A reader that leaves is no failure, and hides none: not that of a call that was under way.
func TestReaderLeaves(t *testing.T) {
	refused := stages.Errorf(stages.ToolError, "", "the second is refused")
	for _, c := range []struct {
		name   string
		output error
		second error
		says   string
		status int
	}{
		{"all is well", syscall.EPIPE, nil, "write!: 2 calls, 2 ok\n", exitOK},
		{"a call fails later", syscall.EPIPE, refused, "the second is refused", exitFailed},
		{"the disk is full", syscall.ENOSPC, nil, "writing the output: no space left", exitFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := &leavingReader{err: c.output, left: make(chan struct{})}
			deps := stages.Deps{
				Tools:   &slowTools{begun: make(chan struct{}), left: out.left, second: c.second},
				Schemas: schemas.Stages(),
			}
			plan := []byte(`[{"type": "tool", "server": "s", "name": "write", "for_each": true, "concurrency": 2, "collect": "lines"}]`)
			pipeline, err := compile(t.Context(), plan, deps, true, gateway.CallTime{Timeout: time.Minute, Begun: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			p := &program{stdout: newStream(out, nil), stderr: plain{newStream(&stderr, nil)}}
			status := p.report(p.runToStdout(t.Context(), pipeline, strings.NewReader("{\"n\": 1}\n{\"n\": 2}\n"), stages.RunOptions{}, false))
			if status != c.status || !strings.Contains(stderr.String(), c.says) || c.status == exitOK && stderr.String() != c.says {
				t.Errorf("exit status %d, want %d; it says %q, want %q", status, c.status, &stderr, c.says)
			}
		})
	}
}
