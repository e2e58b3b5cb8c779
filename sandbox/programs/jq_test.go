package programs_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// A jqRow is one run of jq.
type jqRow struct {
	Why  string   `json:"why,omitempty"`
	Args []string `json:"args"`

	Inputs map[string]string `json:"inputs,omitempty"` // named inputs

	In   string `json:"in"`
	Out  string `json:"out"`
	Err  string `json:"err,omitempty"`
	Exit int    `json:"exit,omitempty"`
}

// runJQ runs jq as a worker does, by its canonical argv.
func runJQ(t testing.TB, args []string, in io.Reader, out io.Writer) (errOut string, exit int) {
	t.Helper()
	return runJQWith(t, nil, args, in, out)
}

// runJQWith is runJQ with named inputs.
func runJQWith(t testing.TB, inputs map[string]string, args []string, in io.Reader, out io.Writer) (errOut string, exit int) {
	t.Helper()
	inv, err := programs.Parse("jq", args, programs.Given{Inputs: slices.Collect(maps.Keys(inputs))})
	if err != nil {
		t.Fatalf("jq %q: %v", args, err)
	}
	p, _ := programs.Find("jq")
	var e bytes.Buffer
	exit = run(t.Context(), p, inv.Argv[1:], func(name string) (io.Reader, error) {
		return strings.NewReader(inputs[name]), nil
	}, in, out, &e)
	return e.String(), exit
}

func TestJQ(t *testing.T) {
	const file = "testdata/jq.json"
	rows := readJSON[[]jqRow](t, file)
	got := make([]jqRow, len(rows))
	for i, want := range rows {
		var out bytes.Buffer
		got[i] = jqRow{Why: want.Why, Args: want.Args, Inputs: want.Inputs, In: want.In}
		got[i].Err, got[i].Exit = runJQWith(t, want.Inputs, want.Args, strings.NewReader(want.In), &out)
		got[i].Out = out.String()
		if diff := cmp.Diff(want, got[i]); diff != "" && !*update {
			t.Errorf("jq %q < %q (-want +got):\n%s", want.Args, want.In, diff)
		}
	}
	if *update {
		writeRows(t, file, got)
	}
}

// TestJQAgrees runs the rows that end well with C jq, as far as both have the same options, and compares outputs
// with sorted keys.
func TestJQAgrees(t *testing.T) {
	path, err := exec.LookPath("jq")
	if err != nil {
		parttest.Missing(t, "jq is not installed")
	}
	for _, r := range readJSON[[]jqRow](t, "testdata/jqsame.json") {
		var want, got bytes.Buffer
		cmd := exec.CommandContext(t.Context(), path, append([]string{"-S"}, r.Args...)...)
		cmd.Env = []string{}
		cmd.Stdin, cmd.Stdout = strings.NewReader(r.In), &want
		if err := cmd.Run(); err != nil {
			t.Errorf("C jq %q: %v", r.Args, err)
		}
		if msg, exit := runJQ(t, r.Args, strings.NewReader(r.In), &got); exit != 0 {
			t.Errorf("jq %q: exit %d: %s", r.Args, exit, msg)
		}
		if diff := cmp.Diff(want.String(), got.String()); diff != "" {
			t.Errorf("jq %q < %q (-C jq +this one):\n%s", r.Args, r.In, diff)
		}
	}
}

// TestJQFlushes: what has been computed is written before jq waits for more input.
func TestJQFlushes(t *testing.T) {
	for _, tt := range []struct{ filter, first, want string }{
		{".a", "{\"a\":1}\n", "1\n"},
		{".[]", "[1, ", "1\n"},
	} {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		var wg sync.WaitGroup
		wg.Go(func() {
			runJQ(t, []string{"-c", tt.filter}, inR, outW)
			_ = outW.Close()
		})
		if _, err := io.WriteString(inW, tt.first); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(tt.want))
		if _, err := io.ReadFull(outR, got); err != nil || string(got) != tt.want {
			t.Errorf("jq %s: %q, %v", tt.filter, got, err)
		}
		_ = outR.Close()
		_ = inW.Close()
		wg.Wait()
	}
}

// TestJQDeepResult: so is a result that a program nests without end.
func TestJQDeepResult(t *testing.T) {
	msg, exit := runJQ(t, []string{"-nc", "reduce range(20001) as $i (0; [.])"}, strings.NewReader(""), io.Discard)
	if exit != 5 || !strings.Contains(msg, "more than 20000 arrays and objects inside of one another") {
		t.Errorf("exit %d, message %q", exit, msg)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestJQStreams: errors of the streams end the run and are named.
func TestJQStreams(t *testing.T) {
	broken := failing{errors.New("the pipe is broken")}
	for _, args := range [][]string{{"."}, {"-R", "."}, {"-Rs", "."}, {"-s", "."}, {"--stream", "."}, {"-n", "inputs"}, {"map(.)"}} {
		msg, exit := runJQ(t, args, io.MultiReader(strings.NewReader("[1,"), broken), io.Discard)
		if exit != 2 || !strings.Contains(msg, "the pipe is broken") {
			t.Errorf("jq %q, reading: exit %d, %q", args, exit, msg)
		}
	}
	for _, filter := range []string{".", ".[]", "map(.)", "repeat(1)"} {
		msg, exit := runJQ(t, []string{filter}, strings.NewReader("[1]"), broken)
		if exit != 2 || !strings.Contains(msg, "the pipe is broken") {
			t.Errorf("jq %q, writing: exit %d, %q", filter, exit, msg)
		}
	}
}

func TestJQCancelled(t *testing.T) {
	p, _ := programs.Find("jq")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if exit := run(ctx, p, []string{"def f: f; f"}, nil, strings.NewReader("1"), io.Discard, io.Discard); exit == 0 {
		t.Error("a cancelled run ended with success")
	}
}
