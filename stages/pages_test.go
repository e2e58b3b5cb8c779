package stages_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/programs/jq"
	"github.com/mcsh-dev/mcsh/stages"
)

// listTool is a tool of the section "tools" of a case: what its schema says, and its results by their arguments.
type listTool struct {
	Properties json.RawMessage            `json:"properties"` // JSON types by name; a type with "=" and a default
	Required   []string                   `json:"required"`
	Fixed      []string                   `json:"fixed"`
	Annotated  bool                       `json:"annotated"`
	Changes    bool                       `json:"changes"`
	Results    map[string]json.RawMessage `json:"results"` // a string is text; arguments that are not there are an error
}

// addTools adds the tools of a case.
func (w *world) addTools(t *testing.T, spec string) {
	t.Helper()
	var tools map[string]listTool
	dec := json.NewDecoder(strings.NewReader(spec))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&tools); err != nil {
		t.Fatalf("tools: %v", err)
	}
	for name, lt := range tools {
		w.tools[name] = lt.tool(t, name)
	}
}

func (lt listTool) tool(t *testing.T, name string) *tool {
	in := stages.Input{Required: lt.Required, Fixed: lt.Fixed, Closed: true, Declared: map[string]stages.Property{}}
	keys, types, _ := stages.Members(lt.Properties)
	for i, key := range keys {
		in.Properties = append(in.Properties, key)
		var form string
		if err := json.Unmarshal([]byte(types[i]), &form); err != nil {
			t.Fatal(err)
		}
		form, def, _ := strings.Cut(form, "=")
		in.Declared[key] = stages.Property{Types: strings.Fields(form), Default: json.RawMessage(def)}
	}
	in.Check = lt.check(in)
	info := stages.Tool{Server: "demo", Name: name, Annotated: lt.Annotated, ReadOnly: !lt.Changes, Signature: name + "(…)", Input: in}
	return &tool{info: info, answers: lt.Results}
}

// check finds missing and unknown arguments, and values of the wrong type.
func (lt listTool) check(in stages.Input) func(context.Context, json.RawMessage, bool) ([]string, string) {
	return func(_ context.Context, args json.RawMessage, partial bool) (wrong []string, note string) {
		keys, values, _ := stages.Members(args)
		for _, name := range in.Required {
			if !partial && !slices.Contains(keys, name) {
				wrong = append(wrong, fmt.Sprintf("missing %q", name))
			}
		}
		for i, key := range keys {
			types := in.Declared[key].Types
			isText := values[i][0] == '"'
			if len(types) > 0 && slices.Contains(types, "string") != isText {
				wrong = append(wrong, fmt.Sprintf("%s must be of type %s, got %s", key, types[0], values[i]))
			}
		}
		return wrong, ""
	}
}

// answer returns the recorded result of a call: text as it is, JSON as it is written.
func answer(answers map[string]json.RawMessage, args json.RawMessage) (string, error) {
	result, ok := answers[string(args)]
	if !ok {
		return "", fmt.Errorf("there is no result for %s", args)
	}
	var text string
	if json.Unmarshal(result, &text) == nil {
		return text, nil
	}
	return string(result), nil
}

// asked lists the calls of the tools of the case, in the order in which they were made, and what the report says of
// their pages.
func (w *world) asked(report stages.Report) string {
	var b strings.Builder
	for _, call := range w.calls {
		name, _, _ := strings.Cut(call, "{")
		if w.tools[name].answers != nil {
			fmt.Fprintln(&b, call)
		}
	}
	for _, s := range report.Stages {
		if s.Pages > 0 {
			fmt.Fprintf(&b, "%s: %d pages, %d items, more: %v\n", s.Label, s.Pages, s.Fetched, s.More)
		}
	}
	return b.String()
}

// runJQ is jq in this process.
func runJQ(args []string, in *bufio.Scanner, out io.Writer) error {
	var input bytes.Buffer
	for in.Scan() {
		input.Write(append(in.Bytes(), '\n'))
	}
	if err := in.Err(); err != nil {
		return err
	}
	filter, err := compileJQ(args)
	if err != nil {
		return err
	}
	var words bytes.Buffer
	if status := filter.Run(context.Background(), &input, out, &words); status != 0 {
		return stages.Errorf(stages.CommandFailed, "", "jq ended with %d: %s", status, strings.TrimSpace(words.String()))
	}
	return nil
}

func compileJQ(args []string) (*jq.Filter, error) {
	if len(args) == 0 {
		return nil, stages.Errorf(stages.InvalidArguments, "", "jq needs a filter")
	}
	filter, err := jq.Compile(jq.Options{Filter: args[len(args)-1]})
	if err != nil {
		return nil, stages.Errorf(stages.DisallowedArgument, err.Hint, "jq: %s", err.Error())
	}
	return filter, nil
}

// pagedWorld has a tool "list" that gives pages as f makes them.
func pagedWorld(properties map[string]string, f func(args map[string]any) string) *world {
	w := newWorld()
	in := stages.Input{Properties: slices.Sorted(maps.Keys(properties)), Declared: map[string]stages.Property{}}
	for name, kind := range properties {
		in.Declared[name] = stages.Property{Types: []string{kind}}
	}
	w.tools["list"] = &tool{
		info: stages.Tool{Server: "demo", Name: "list", ReadOnly: true, Signature: "list(…)", Input: in},
		do:   func(_ context.Context, args map[string]any) (string, error) { return f(args), nil },
	}
	return w
}

// TestPagesStream sees that a page is fetched only when the reader has taken the one before, and that a reader who
// stops ends the paging.
func TestPagesStream(t *testing.T) {
	w := pagedWorld(map[string]string{"page": "integer"}, func(args map[string]any) string {
		return fmt.Sprintf(`[{"id":%v1},{"id":%[1]v2}]`, args["page"])
	})
	p, errs := stages.Compile(t.Context(), []byte(`[{"type":"tool","server":"demo","name":"list","paginate":true}]`), w.deps())
	if errs != nil {
		t.Fatal(errs)
	}
	pr, pw := io.Pipe()
	ended := make(chan stages.Report, 1)
	go func() {
		report, err := p.Run(context.Background(), nil, pw, stages.RunOptions{})
		if err != nil {
			t.Error(err)
		}
		ended <- report
	}()
	lines := bufio.NewReader(iotest.OneByteReader(pr)) // takes nothing of the page behind a line
	for page := 1; page <= 5; page++ {
		for range 2 {
			if _, err := lines.ReadString('\n'); err != nil && page < 5 {
				t.Fatal(err)
			}
			if calls := w.tools["list"].calls.Load(); calls > int64(page)+1 {
				t.Fatalf("%d calls while page %d is read", calls, page)
			}
			if page == 5 {
				pr.Close()
				break
			}
		}
	}
	report := <-ended
	if s := report.Stages[0]; s.Pages > 6 || s.Pages != s.Calls {
		t.Errorf("the report has %d pages and %d calls, want at most 6", s.Pages, s.Calls)
	}
}

// TestPagesHeld: the array that is made of a page of many content blocks counts as memory of the run.
func TestPagesHeld(t *testing.T) {
	w := pagedWorld(map[string]string{"cursor": "string"}, func(map[string]any) string { return blocks(100_000) })
	d := w.deps()
	d.Limits.Held = 300 << 10
	_, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"list","paginate":{"next":".x?"}}]`, "", d, stages.RunOptions{})
	var e *stages.Error
	if !errors.As(err, &e) || e.Limit != "held" {
		t.Errorf("error %v, want one of the limit held", err)
	}
}

// blocks is a result of n content blocks, see resultOf.
func blocks(n int) string {
	return `{"@blocks":["1"` + strings.Repeat(`,"1"`, n-1) + `]}`
}

// TestPagesCancelled: a page that has come is not taken apart to its end.
func TestPagesCancelled(t *testing.T) {
	tests := []struct{ name, page, paginate string }{
		{"items", `{"items":[` + strings.Repeat("1,", parttest.Times(1<<18, 1<<20)) + `1],"next":null}`, `true`},
		{"items of items", `{"items":[` + strings.Repeat("[1,1,1,1],", parttest.Times(1<<16, 1<<18)) + `[1]],"next":null}`, `{"items":".items[][]"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := pagedWorld(map[string]string{"cursor": "string"}, func(map[string]any) string { return test.page })
			pipeline := `[{"type":"tool","server":"demo","name":"list","paginate":` + test.paginate + `}]`
			p, errs := stages.Compile(t.Context(), []byte(pipeline), w.deps())
			if errs != nil {
				t.Fatal(errs)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			written := 0
			_, err := p.Run(ctx, nil, writer(func(b []byte) (int, error) {
				written += len(b)
				cancel()
				return len(b), nil
			}), stages.RunOptions{})
			if err == nil || written > 1<<18 {
				t.Errorf("%d bytes after the run was cancelled, error %v", written, err)
			}
		})
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestPagesMany fetches more pages than anybody wants, in bounded memory.
func TestPagesMany(t *testing.T) {
	w := pagedWorld(map[string]string{"cursor": "string"}, func(args map[string]any) string {
		n := 0
		fmt.Sscan(fmt.Sprint(args["cursor"]), &n)
		return fmt.Sprintf(`{"items":[%d],"next_cursor":"%d"}`, n, n+1)
	})
	_, report, err := w.run(t, `[{"type":"tool","server":"demo","name":"list","paginate":{"max":5000},"collect":"lines"},{"type":"command","command":"drop"}]`, "")
	if s := report.Stages[0]; err != nil || s.Pages != 5000 || !s.More {
		t.Errorf("%d pages, more: %v, error %v; want 5000 pages and more", s.Pages, s.More, err)
	}
	d := w.deps()
	d.Limits.Calls = 10
	_, _, err = w.runWith(t, `[{"type":"tool","server":"demo","name":"list","paginate":true}]`, "", d, stages.RunOptions{})
	var e *stages.Error
	if !errors.As(err, &e) || e.Code != stages.LimitExceeded || !strings.Contains(e.Msg, "page 11, after 10 items") || !strings.Contains(e.Msg, "limit calls") {
		t.Errorf("error %v, want LIMIT_EXCEEDED at page 11", err)
	}
}

// TestPagesWithoutSandbox: paths need nothing to run them.
func TestPagesWithoutSandbox(t *testing.T) {
	w := pagedWorld(map[string]string{"cursor": "string"}, func(map[string]any) string { return `{"data":[1],"n":null,"more":false}` })
	d := w.deps()
	d.Commands = nil
	out, _, err := w.runWith(t, `[{"type":"tool","server":"demo","name":"list","paginate":{"next":".n","while":".more","items":".data"}}]`, "", d, stages.RunOptions{})
	if err != nil || out != "[1]\n" {
		t.Errorf("got %q, error %v", out, err)
	}
}

// FuzzPages gives any bytes as pages: the output is an array of JSON values, or there is an error that says why.
func FuzzPages(f *testing.F) {
	for _, page := range []string{
		`[1,2]`, `{"items":[1],"next":"a"}`, `{"data":{"edges":[{"node":1}],"pageInfo":{"endCursor":"x","hasNextPage":true}}}`,
		`{"next":"https://a/?cursor=b","results":[]}`, "1\n2\n", "text", ``, `{"meta":{"next_page":3},"data":[{}]}`, `{"a":{},"items":null}`,
	} {
		f.Add(page, page, true)
		f.Add(page, `{"items":[3],"next":null}`, false)
	}
	f.Fuzz(func(t *testing.T, first, second string, counted bool) {
		properties := map[string]string{"cursor": "string"}
		if counted {
			properties = map[string]string{"offset": "integer"}
		}
		n := 0
		w := pagedWorld(properties, func(map[string]any) string {
			if n++; n == 1 {
				return first
			}
			return second
		})
		out, report, err := w.run(t, `[{"type":"tool","server":"demo","name":"list","paginate":{"max":3}}]`, "")
		var e *stages.Error
		if err != nil && (!errors.As(err, &e) || e.Code == stages.Internal) {
			t.Fatalf("%q, %q: %v", first, second, err)
		}
		if err != nil {
			return
		}
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(out), &list); err != nil || int64(len(list)) != report.Stages[0].Fetched {
			t.Errorf("%q, %q: output %q with %d items counted: %v", first, second, out, report.Stages[0].Fetched, err)
		}
	})
}
