package stages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/stages"
)

// TestFailedCall runs a tool whose failure wraps an error with which pipes and contexts end too. Whatever the cause is, the
// run fails with the tool's error.
func TestFailedCall(t *testing.T) {
	const (
		call   = `{"type":"tool","server":"demo","name":"NAME","args":{"x":1}}`
		each   = `{"type":"tool","server":"demo","name":"NAME","for_each":true}`
		items  = `{"type":"tool","server":"demo","name":"items","args":{"n":3}}`
		cat    = `{"type":"command","command":"cat"}`
		head   = `{"type":"command","command":"head","args":["1"]}`
		branch = `{"type":"parallel","branches":{"a":[` + call + `],"b":[` + items + `]}}`
	)
	pipelines := map[string]string{
		"single":               call,
		"between":              items + "," + each + "," + cat,
		"for_each of three":    items + "," + each,
		"one at a time":        items + `,{"type":"for_each","concurrency":1,"stages":[` + call[:len(call)-len(`,"args":{"x":1}}`)] + `}]}`,
		"behind head":          items + "," + head + "," + each,
		"before head":          call + "," + head,
		"in a branch":          branch,
		"in a branch of items": items + `,{"type":"for_each","stages":[{"type":"parallel","branches":{"a":[` + each + `],"b":[` + cat + `]}}]}`,
		"in an input":          items + `,{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + call + `]}}`,
		"in an input of items": items + `,{"type":"for_each","stages":[{"type":"command","command":"append","args":["@b"],"inputs":{"b":[` + call + `]}}]}`,
	}
	causes := map[string]error{
		"closed pipe": io.ErrClosedPipe,
		"not sent":    fmt.Errorf("nothing was sent: %w", io.ErrClosedPipe),
		"eof":         io.EOF,
		"cancelled":   context.Canceled,
		"deadline":    context.DeadlineExceeded,
	}
	for name, pipeline := range pipelines {
		for cause, err := range causes {
			for _, tool := range []string{"write", "say"} {
				t.Run(name+"/"+cause+"/"+tool, func(t *testing.T) {
					t.Parallel()
					w := newWorld()
					w.add("items", reads, "n", func(context.Context, map[string]any) (string, error) {
						return `{"x":1}` + "\n" + `{"x":2}` + "\n" + `{"x":3}`, nil
					})
					fails := w.add(tool, tool == "say", "x", func(context.Context, map[string]any) (string, error) {
						return "", stages.Errorf(stages.ServerUnavailable, "", "the server is gone: %w", err)
					})
					fails.info.Input.Properties = append(fails.info.Input.Properties, "input")
					out, _, err := w.run(t, "["+strings.ReplaceAll(pipeline, "NAME", tool)+"]", "")
					var e *stages.Error
					if !errors.As(err, &e) || e.Code != stages.ServerUnavailable || !strings.Contains(e.Msg, "the server is gone") {
						t.Errorf("output %q, error %v; want the tool's", out, err)
					}
				})
			}
		}
	}
}

// TestUntypedFailure: an error of a call that is no *Error is a failure too, unless the call's context has ended.
func TestUntypedFailure(t *testing.T) {
	for _, stage := range []string{
		`{"type":"tool","server":"demo","name":"write","args":{"x":1}}`,
		`{"type":"tool","server":"demo","name":"write","args":{"x":1},"for_each":true}`,
	} {
		w := newWorld()
		d := w.deps()
		d.Tools = untyped{w}
		out, _, err := w.runWith(t, "["+stage+"]", `{}`, d, stages.RunOptions{})
		var e *stages.Error
		if !errors.As(err, &e) || e.Code != stages.Internal {
			t.Errorf("%s: output %q, error %v", stage, out, err)
		}
	}
}

type untyped struct{ *world }

func (u untyped) CallTool(_ context.Context, c stages.Call) (stages.Result, error) {
	c.MaySend()
	return stages.Result{}, fmt.Errorf("calling %s: %w", c.Name, io.ErrClosedPipe)
}

// TestFailedAfterStop: a call that may have changed something and fails after the reader has stopped fails the run, also
// when another call's result has found the pipe closed before.
func TestFailedAfterStop(t *testing.T) {
	for _, cause := range []error{io.ErrClosedPipe, context.Canceled, context.DeadlineExceeded, errors.New("gone")} {
		for name, input := range map[string]string{"": `{"x":1}{"x":3}`, " behind a result": `{"x":1}{"x":2}{"x":3}`} {
			t.Run(cause.Error()+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					var sent sync.WaitGroup // calls; a stop before one is sent would prevent it
					sent.Add(strings.Count(input, "x"))
					w.add("write", writes, "x", func(_ context.Context, args map[string]any) (string, error) {
						sent.Done()
						sent.Wait()
						x := fmt.Sprint(args["x"])
						if x == "1" {
							return x, nil
						}
						time.Sleep(time.Second) // until head has ended
						if x == "2" {
							return x, nil
						}
						time.Sleep(time.Second) // until 2 is written
						return "", stages.Errorf(stages.ServerUnavailable, "", "the server is gone: %w", cause)
					})
					_, _, err := w.run(t, `[{"type":"tool","server":"demo","name":"write","for_each":true,"concurrency":3,"collect":"lines"},{"type":"command","command":"head","args":["1"]}]`, input)
					var e *stages.Error
					if !errors.As(err, &e) || e.Code != stages.ServerUnavailable {
						t.Errorf("the run ended with %v", err)
					}
				})
			})
		}
	}
}

// TestBrokenInput: an input that ends with an error is no complete one, whatever the error wraps.
func TestBrokenInput(t *testing.T) {
	for _, cause := range []error{io.ErrClosedPipe, fmt.Errorf("reading: %w", io.EOF), errors.New("gone")} {
		for stage, begins := range map[string]string{
			`{"type":"command","command":"cat"}`:                             "1\n",
			`{"type":"tool","server":"demo","name":"say"}`:                   "1\n",
			`{"type":"tool","server":"demo","name":"say","for_each":true}`:   "1\n",
			`{"type":"tool","server":"demo","name":"write","for_each":true}`: "1\n",
			`{"type":"parallel","branches":{"a":[]}}`:                        "1\n",
			`{"type":"preview"}`:                                             "a,b\n1,2\n3,4\n5,6\n",
		} {
			w := newWorld()
			p, errs := stages.CompileFed(t.Context(), []byte("["+stage+"]"), w.deps())
			if errs != nil {
				t.Fatal(errs)
			}
			in := io.MultiReader(strings.NewReader(begins), &failing{cause})
			var out bytes.Buffer
			if _, err := p.Run(t.Context(), in, &out, stages.RunOptions{}); err == nil {
				t.Errorf("%s: an input that ends with %v gives %q and no error", stage, cause, &out)
			}
			if calls := w.callsOf("write"); len(calls) > 0 {
				t.Errorf("%s: calls %v of an input that ends with %v", stage, calls, cause)
			}
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// TestCancelledWait: a run that is ended while its first stage waits for input has not succeeded.
func TestCancelledWait(t *testing.T) {
	for _, stage := range []string{
		`{"type":"command","command":"cat"}`,
		`{"type":"tool","server":"demo","name":"say"}`,
		`{"type":"tool","server":"demo","name":"write"}`,
		`{"type":"tool","server":"demo","name":"say","for_each":true}`,
		`{"type":"parallel","branches":{"a":[]}}`,
		`{"type":"tool","server":"demo","name":"say"},{"type":"tool","server":"demo","name":"write"}`,
	} {
		for end, want := range map[string]stages.Code{"timeout": stages.Timeout, "cancel": stages.Cancelled} {
			t.Run(stage+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					p, errs := stages.CompileFed(t.Context(), []byte("["+stage+"]"), w.deps())
					if errs != nil {
						t.Fatal(errs)
					}
					ctx, cancel := context.WithCancel(t.Context())
					o := stages.RunOptions{}
					if end == "timeout" {
						o.Timeout = time.Second
					} else {
						time.AfterFunc(time.Second, cancel)
					}
					defer cancel()
					in, feed := io.Pipe() // nothing comes
					defer feed.Close()
					_, err := p.Run(ctx, in, io.Discard, o)
					var e *stages.Error
					if !errors.As(err, &e) || e.Code != want {
						t.Errorf("the run ended with %v", err)
					}
				})
			})
		}
	}
}
