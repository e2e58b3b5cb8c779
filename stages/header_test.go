package stages_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestFromKeepsKind: what a run begins with is of the kind that it was, also where it is made again, and so are the content
// blocks.
func TestFromKeepsKind(t *testing.T) {
	const (
		say      = `{"type":"tool","server":"demo","name":"say","args":{"text":"12\n007\n"}}`
		exact    = `{"type":"tool","server":"demo","name":"say","args":{"text":"{}"},"as":"text"}`
		blocks   = `{"type":"tool","server":"demo","name":"say","args":{"text":"{\"@blocks\":[\"a\",\"{}\"]}"}}`
		values   = `{"type":"tool","server":"demo","name":"say","args":{"text":"[12,\"x\"]"}},{"type":"command","command":"jq","args":[".[]"]}`
		echoEach = `{"type":"tool","server":"demo","name":"echo","for_each":true}`
		branch   = `{"type":"parallel","branches":{"b":[]}}`
	)
	k := newKept(t, runs.Options{})
	for _, tt := range []struct {
		made, then, want string
		stages           int
	}{
		{say, echoEach, `[{"value":"12"},` + "\n" + `{"value":"007"}]` + "\n", 1},
		{say, branch, `{"b":"12\n007\n"}` + "\n", 1},
		{say + "," + head2, echoEach, `[{"value":"12"},` + "\n" + `{"value":"007"}]` + "\n", 2},
		{say + "," + head2, branch, `{"b":"12\n007"}` + "\n", 2},
		{exact, branch, `{"b":"{}"}` + "\n", 1},
		{blocks, branch, `{"b":["a",{}]}` + "\n", 1},
		{values, echoEach, `[{"value":12},` + "\n" + `{"value":"x"}]` + "\n", 2},
		{values + "," + head2, echoEach, `[{"value":12},` + "\n" + `{"value":"x"}]` + "\n", 2}, // within a chain: it is made again
		{values + "," + head2, branch, "{\"b\":[12,\n\"x\"]}\n", 3},
		{values + "," + upper + "," + head2, branch, `{"b":"12\n\"X\""}` + "\n", 4},
	} {
		_, run := k.must(t, "["+tt.made+"]")
		_, again := k.must(t, from(run, tt.stages)) // whose output is that of the first run
		for id, stage := range map[string]int{run: tt.stages, again: 1} {
			if got, _ := k.must(t, from(id, stage, tt.then)); got != tt.want {
				t.Errorf("[%s], then %s: got %q, want %q", tt.made, tt.then, got, tt.want)
			}
		}
	}
}

// TestResumeKeepsKind: the results of items that an earlier run has completed are the values that they were.
func TestResumeKeepsKind(t *testing.T) {
	k := newKept(t, runs.Options{})
	var works atomic.Bool
	texts := []string{`12`, ``, `"q"`, "a\n", `{"@blocks":["a","[1]"]}`, `{"@blocks":[]}`, `{"a":1}`, "last"}
	do := func(_ context.Context, args map[string]any) (string, error) {
		if fmt.Sprint(args["x"]) == fmt.Sprint(len(texts)) && !works.Load() {
			return "", errors.New("not now")
		}
		var i int
		fmt.Sscan(fmt.Sprint(args["x"]), &i)
		return texts[i-1], nil
	}
	k.add("odd", reads, "x", do)
	k.add("change", writes, "x", do)
	const want = "[\"12\",\n\"\",\n\"\\\"q\\\"\",\n\"a\\n\",\n[\"a\",[1]],\nnull,\n{\"a\":1},\n\"last\"]\n"
	items := fmt.Sprintf(`{"type":"tool","server":"demo","name":"numbers","args":{"n":%d}}`, len(texts))
	for _, stage := range []string{
		`{"type":"tool","server":"demo","name":"odd","for_each":true,"concurrency":1}`,
		`{"type":"tool","server":"demo","name":"change","for_each":true}`,
		`{"type":"tool","server":"demo","name":"change","for_each":true,"distinct":true}`,
	} {
		works.Store(false)
		e := k.failedRun(t, items, stage)
		works.Store(true)
		if got, _ := k.must(t, resume(e.Run)); got != want {
			t.Errorf("%s: got %q, want %q", stage, got, want)
		}
	}
}

// TestResumeKeepsKindInBranch: the result of a call within another stage that an earlier run has made is the value that
// it was.
func TestResumeKeepsKindInBranch(t *testing.T) {
	for result, want := range map[string]string{
		`12`: `"12"`, ``: `""`, "a\n": `"a\n"`, `{"a":1}`: `{"a":1}`,
		`{"@blocks":["x","y"]}`: `["x","y"]`, `{"@blocks":["a","[1]"]}`: `["a",[1]]`, `{"@blocks":[]}`: `null`,
		`{"@value":12}`: `12`, `{"@value":"s"}`: `"s"`,
	} {
		change := `{"type":"tool","server":"demo","name":"change","args":{"x":1}}`
		for as, want := range map[string]string{"": want, `,"as":"text"`: ""} {
			k := newFaulty(t, runs.Options{}, map[string]*stages.Error{"next 1": refused})
			tool := k.add("change", writes, "x", func(context.Context, map[string]any) (string, error) { return result, nil })
			tool.info.Input.Properties = append(tool.info.Input.Properties, "input")
			stage := strings.TrimSuffix(change, "}") + as + "}"
			e := k.failedRun(t, list("1"), inBranches(stage, after(1)+next1))
			out, _ := k.must(t, resume(e.Run))
			if want == "" {
				unbroken, _ := k.must(t, "["+list("1")+","+inBranches(stage, next1)+"]")
				if out != unbroken {
					t.Errorf("%s as text: got %q, an unbroken run gives %q", result, out, unbroken)
				}
			} else if !strings.HasPrefix(out, `{"a":`+want+`,`) {
				t.Errorf("%s: got %q, want %s", result, out, want)
			}
		}
	}
}

// described are runs whose descriptions of outputs are others, or lost.
type described struct {
	stages.Runs
	as []byte // nil: lost
}

func (d *described) Open(run, name string) (*io.SectionReader, string, func()) {
	if !strings.HasSuffix(name, " about") {
		return d.Runs.Open(run, name)
	}
	if d.as == nil {
		return nil, "the store was full", func() {}
	}
	return io.NewSectionReader(bytes.NewReader(d.as), 0, int64(len(d.as))), "", func() {}
}

// TestFromLostDescription: data whose description is lost or damaged is not taken for data of another kind.
func TestFromLostDescription(t *testing.T) {
	k := newKept(t, runs.Options{})
	_, run := k.must(t, `[{"type":"tool","server":"demo","name":"say","args":{"text":"12"}}]`)
	kept := k.deps.Runs
	pipeline := from(run, 1, `{"type":"parallel","branches":{"b":[]}}`)
	k.deps.Runs = &described{Runs: kept}
	if _, errs := k.compile(t, pipeline); len(errs) != 1 || !strings.Contains(errs[0].Msg, "is incomplete: the store was full") {
		t.Errorf("lost: got %v", errs)
	}
	k.deps.Runs = &torn{kept, " about"}
	if out, _, err := k.run(t, pipeline); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("unreadable: got %v, %q", err, out)
	}
	for _, damaged := range []string{`{"kind":0} x`, "", "x", "{", `{"kind":9,"single":true}`, `{"kind":-1}`, `{"kind":0,"blocks":[{"From":2,"To":1}]}`, `{"kind":0,"blocks":[{"From":0,"To":2},{"From":1,"To":2}]}`} {
		k.deps.Runs = &described{Runs: kept, as: []byte(damaged)}
		if out, _, err := k.run(t, pipeline); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%q: got %v, %q", damaged, err, out)
		}
	}
	k.deps.Runs = &described{Runs: kept, as: []byte(`{"kind":0,"single":true}`)}
	if out, _ := k.must(t, pipeline); out != "{\"b\":\"12\"}\n" {
		t.Errorf("got %q", out)
	}
}
