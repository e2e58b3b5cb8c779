package stages_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// looks are what the command look does with the number of an item, by its argument, the name of a test.
var looks sync.Map

func init() {
	commands["look"] = func(args []string, in *bufio.Scanner, out io.Writer) error {
		in.Scan()
		look, _ := looks.Load(args[0])
		text, err := look.(func(string) (string, error))(in.Text())
		fmt.Fprintln(out, text)
		return err
	}
}

// TestCautious: a cautious run has one item under way. The run that continues it after the end of its process does not run that one again,
// nor do later ones; the others run as ever.
func TestCautious(t *testing.T) {
	const seven, concurrency = 7, `"concurrency":4`
	for name, c := range map[string]struct{ body, onError string }{
		"collect":  {`"type":"tool","server":"demo","name":"look"`, "collect"},
		"skip":     {`"type":"tool","server":"demo","name":"look"`, "skip"},
		"fail":     {`"type":"tool","server":"demo","name":"look"`, "fail"},
		"a stage":  {`"type":"for_each","stages":[{"type":"tool","server":"demo","name":"look"},{"type":"command","command":"upper"}]`, "collect"},
		"mapped":   {`"type":"command","command":"look","args":["TEST"]`, "collect"},
		"commands": {`"type":"for_each","stages":[{"type":"command","command":"upper"},{"type":"tool","server":"demo","name":"look"}]`, "collect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := storetest.Directory(t)
			dying, after := newKept(t, runs.Options{Shared: shared}), newKept(t, runs.Options{Shared: shared})
			dying.maps, after.maps = true, true
			at := make(chan int, 100)
			ctx, end := context.WithCancel(t.Context())
			look := func(x string) (string, error) {
				n, _ := strconv.Atoi(x)
				if at <- n; n == seven {
					<-ctx.Done()
				}
				return "done", ctx.Err()
			}
			lookAgain := func(x string) (string, error) {
				if x == strconv.Itoa(seven) {
					t.Error("it is called again")
				}
				return "done", nil
			}
			looks.Store(t.Name(), look)
			dying.add("look", reads, "x", func(_ context.Context, args map[string]any) (string, error) { return look(fmt.Sprint(args["x"])) })
			after.add("look", reads, "x", func(_ context.Context, args map[string]any) (string, error) { return lookAgain(fmt.Sprint(args["x"])) })
			body := strings.ReplaceAll(c.body, "TEST", t.Name())
			if !strings.Contains(body, "for_each") {
				body += `,"for_each":true`
			}
			p, errs := dying.compile(t, `[{"type":"tool","server":"demo","name":"numbers","args":{"n":20}},{`+body+`,`+concurrency+`,"on_error":"`+c.onError+`"}]`)
			if errs != nil {
				t.Fatal(errs)
			}
			ended, run := make(chan error, 1), make(chan string, 1)
			go func() {
				_, err := p.Run(ctx, nil, io.Discard, stages.RunOptions{Kept: func(id string) { run <- id }, KeepClaim: true, Cautious: time.Hour})
				ended <- err
			}()
			defer func() { end(); <-ended }()
			for x := range seven {
				if got := <-at; got != x+1 {
					t.Fatalf("item %d runs, and not %d", got, x+1)
				}
			}
			id := <-run
			looks.Store(t.Name(), lookAgain)
			for range 2 {
				if _, err := after.deps.Runs.(*runs.Caller).TakeOver(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				out, report, err := after.run(t, resume(id))
				e, failed := errors.AsType[*stages.Error](err)
				switch {
				case c.onError == "fail" && (!failed || e.Code != stages.Denied || e.Item != seven || !strings.Contains(e.Msg, "its worker has ended")):
					t.Errorf("got %v", err)
				case c.onError != "fail" && (err != nil || strings.Count(strings.ToLower(out), "done") != 19):
					t.Errorf("%v: %s", err, out)
				case c.onError == "collect" && !strings.Contains(out, "its worker has ended"):
					t.Errorf("got %s", out)
				}
				if id = report.Run; c.onError != "fail" {
					break
				}
			}
		})
	}
}
