package gateway

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestPanicInShape: a panic of the preview is an error of this reply.
func TestPanicInShape(t *testing.T) {
	r := newReply(10, func(io.Reader, preview.Options) (preview.Result, error) { panic("a secret") })
	_, werr := r.Write([]byte(strings.Repeat("x", 100)))
	r.close()
	_, err := r.result(stages.Report{}, nil)
	for _, err := range []error{werr, err} {
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.Internal || strings.Contains(e.Msg, "secret") {
			t.Errorf("got %v, want an INTERNAL error without the value of the panic", err)
		}
		if stack := stackOf(e.Err); !strings.HasPrefix(stack, "goroutine ") {
			t.Errorf("the error has no stack: %q", stack)
		}
	}
}

// TestLogWithoutData: the text of an INTERNAL error is not logged, nor is the value of a panic.
func TestLogWithoutData(t *testing.T) {
	for _, cause := range []error{
		nil, errors.New("a secret"), errors.New("panic: a secret"),
		fmt.Errorf("panic: %v\n%s", "a secret\nand a secret\n", debug.Stack()),
	} {
		core, logs := observer.New(zapcore.DebugLevel)
		g := New(Options{Log: zap.New(core)})
		g.logInternal(&stages.Error{Code: stages.Internal, Place: "3", Msg: "a secret", Err: cause})
		entries := logs.All()
		if len(entries) != 1 {
			t.Fatalf("%d lines", len(entries))
		}
		fields := entries[0].ContextMap()
		if fields["stage"] != "3" || strings.Contains(fmt.Sprint(fields), "secret") {
			t.Errorf("got %v", fields)
		}
		if _, ok := fields["stack"]; ok != (cause != nil && strings.Contains(cause.Error(), "goroutine")) {
			t.Errorf("of %.20v: a stack is there: %v", cause, ok)
		}
	}
}

// TestTooManyLooks: the other tools are bounded too.
func TestTooManyLooks(t *testing.T) {
	g := New(Options{Runs: 2})
	for range 2 {
		_, end, err := g.begin(t.Context(), g.lookups, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer end()
	}
	if _, _, err := g.begin(t.Context(), g.lookups, nil); err == nil || !strings.Contains(err.Error(), "(limit runs)") {
		t.Errorf("got %v, want a limit", err)
	}
	for _, tool := range g.tools() {
		if want := tool.name == "execute_pipeline"; (tool.slots.taken == g.runs.taken) != want {
			t.Errorf("%s takes a slot of the runs: want %v", tool.name, want)
		}
	}
}

// TestNoNumber: a timeout that is no number is refused, should one ever arrive.
func TestNoNumber(t *testing.T) {
	if wrong := New(Options{}).checkCall(schemas.Call{Mode: schemas.ModeRun, Timeout: math.NaN(), MaxOutput: 1}); len(wrong) != 1 {
		t.Errorf("got %v, want one mistake", wrong)
	}
}

// TestReplyThatFits: nobody asks what is kept of a run whose output the reply holds.
func TestReplyThatFits(t *testing.T) {
	r := newReply(10, nil)
	if _, err := r.Write([]byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	result, err := r.result(stages.Report{Run: "r_1"}, func() fullOutput { t.Error("asked"); return fullOutput{} })
	if err != nil || len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != "0123456789" {
		t.Errorf("%v: %+v", err, result)
	}
}

// TestProgressOfAttempts: items that an earlier attempt has done count, and the time that is left is that of the others.
func TestProgressOfAttempts(t *testing.T) {
	list := []stages.StageReport{{Place: "2", Items: 60, OK: 18, Failed: 2, Resumed: 40, Total: 100, Calls: 20}}
	p := progressOf(list, 10*time.Second)
	if want := (runProgress{Stage: "2", Items: 60, Of: 100, Failed: 2, Calls: 20, Rate: 2, Left: "20s"}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
	first := []stages.StageReport{{Place: "2", Items: 50, OK: 40}}
	if done(list) <= done(first) {
		t.Errorf("the attempt that goes on has done no more: %d, %d", done(list), done(first))
	}
}
