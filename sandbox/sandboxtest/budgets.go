package sandboxtest

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

// Commands that take much and keep it until their input ends: 80 MB of memory, and what sort cannot hold.
var (
	hoarder = command("awk", `BEGIN {s = sprintf("%*s", 80000000, "x")} {print} END {print NR}`)
	sorter  = command("sort")
)

const sorted = 100 << 20 // bytes of input that make a sorter keep several files

// testBudgets has one run take more than a run may, while another one on the same machine works.
func testBudgets(t *testing.T, open func() sandbox.Driver) {
	for _, test := range []struct {
		name   string
		budget sandbox.Budget
		chains [][]stages.Command // that run side by side, each with input bytes of input that does not end
		input  int64
		msg    string // of one of them; the others then stop
	}{
		{
			"memory",
			sandbox.Budget{Memory: 200 << 20},
			[][]stages.Command{{hoarder, hoarder}, {hoarder, hoarder}},
			100,
			"the commands of this run together used more than 200 MiB of memory",
		},
		{
			"memory of one",
			sandbox.Budget{Memory: 70 << 20},
			[][]stages.Command{{hoarder}},
			100,
			"awk used more than 70 MiB of memory, the limit of one command",
		},
		{
			"disk",
			sandbox.Budget{Disk: 130 << 20},
			[][]stages.Command{{sorter}, {sorter}},
			sorted,
			"the commands of this run together needed more than 130 MiB on disk",
		},
		{
			"files",
			sandbox.Budget{Files: 1},
			[][]stages.Command{{sorter}},
			sorted,
			"the commands of this run together made more than 1 files on disk",
		},
		{
			"processes",
			sandbox.Budget{Processes: 3},
			[][]stages.Command{{command("tr", "a", "b"), command("tr", "a", "b"), command("tr", "a", "b"), command("wc")}},
			100,
			"wc was not started: 3 commands of this run are at work",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPool(t, open, sandbox.Options{Warm: -1, Budget: test.budget})
			other := prepare(t, openSession(t, p), nil, command("wc", "-c"))
			s := openSession(t, p)
			ended := make(chan struct{})
			failures := make(chan error, len(test.chains))
			var running errgroup.Group
			for _, chain := range test.chains {
				f := prepare(t, s, nil, chain...)
				running.Go(func() error {
					err := f(t.Context(), io.MultiReader(&endless{text: "some line of text to sort\n", n: test.input}, waiter(ended)), io.Discard)
					if err != nil {
						failures <- err
					}
					return nil
				})
			}
			e := asError(t, <-failures)
			if e.Code != stages.LimitExceeded || !strings.Contains(e.Msg, test.msg) || e.Hint == "" {
				t.Errorf("got %s: %s (%s), want %s: %s, and a hint", e.Code, e.Msg, e.Hint, stages.LimitExceeded, test.msg)
			}
			if own := strings.Contains(e.Msg, "the limit of one command"); e.OfRun == own {
				t.Errorf("%s: of the run: %v, want %v", e.Msg, e.OfRun, !own)
			}
			if out, err := run(t.Context(), other, "abc"); err != nil || out != "3\n" {
				t.Errorf("the other run: got %q, %v", out, err)
			}
			close(ended)
			_ = running.Wait() // the functions return nil
			if len(failures) > 0 {
				t.Errorf("another chain had to go too: %v", <-failures)
			}
			if out, err := run(t.Context(), prepare(t, s, nil, command("wc", "-c")), "abc"); err != nil || out != "3\n" {
				t.Errorf("the run itself, afterwards: got %q, %v", out, err)
			}
		})
	}
}

// A waiter is input that ends when the channel is closed.
type waiter <-chan struct{}

func (w waiter) Read([]byte) (int, error) {
	<-w
	return 0, io.EOF
}
