package ui_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/ui"
)

// hostile is a text of a stranger that must stay a text.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

// strangeRuns has runs, tools and outputs full of hostile texts.
type strangeRuns struct {
	output []byte
	errs   []*stages.Error
	plan   stages.Plan
	calls  []string // what was started
}

func (s *strangeRuns) detail() control.RunDetail {
	ended, kept := time.Unix(2, 0), int64(len(s.output))
	row := control.Run{
		Request: "q_1", Caller: hostile, Client: hostile, Tool: hostile, State: control.RunFailed, Code: "TOOL_ERROR", Started: time.Unix(1, 0), Ended: &ended,
		Stages: 1, Tools: []string{hostile}, Seen: 100, Returned: 10,
	}
	stage := control.RunStage{
		Place: "1", Label: "tool " + hostile, Kind: "tool", Ended: true, Millis: 3, BytesOut: 7, ToolSays: hostile, Notes: []string{hostile}, Kept: &kept,
		Messages: []control.RunFailures{{Text: strings.Repeat(hostile, 1000), Count: 2}},
		Stages:   []control.RunStage{{Place: "1." + hostile + ".1", Label: hostile, Branch: hostile}},
	}
	return control.RunDetail{
		Run: row, ID: "r_1", Plan: json.RawMessage(`[{"type": ` + quote(hostile) + `}]`), Stages: []control.RunStage{stage},
		Windows: []control.RunWindow{{Place: "1", Text: hostile}},
		Error:   &control.RunError{Code: "TOOL_ERROR", Place: "1", Label: hostile, Message: hostile, Hint: hostile, Sample: hostile},
	}
}

func quote(text string) string {
	data, _ := json.Marshal(text) // a string
	return string(data)
}

func (s *strangeRuns) Runs(context.Context, control.Viewer, control.RunFilter) control.RunList {
	return control.RunList{Runs: []control.Run{s.detail().Run}}
}

func (s *strangeRuns) Run(_ context.Context, _ control.Viewer, request string) (control.RunDetail, error) {
	if request != "q_1" {
		return control.RunDetail{}, &control.Error{Status: 404, Message: "there is no run " + request, Hint: hostile}
	}
	return s.detail(), nil
}

func (s *strangeRuns) Output(_ context.Context, _ control.Viewer, r control.OutputRequest) (control.OutputPart, error) {
	from := min(r.Offset, int64(len(s.output)))
	most := control.MaxPart
	if r.Max > 0 {
		most = r.Max
	}
	data := s.output[from:]
	return control.OutputPart{Offset: from, Size: int64(len(s.output)), Data: data[:min(len(data), most)]}, nil
}

func (s *strangeRuns) Cancel(control.Viewer, string) error {
	return &control.Error{Status: 409, Message: hostile}
}

func (s *strangeRuns) Servers(context.Context) []ui.Word {
	return []ui.Word{{Name: hostile, Info: hostile}, {Name: "demo"}}
}

func (s *strangeRuns) Tools(_ context.Context, server string) (list []ui.Word) {
	for range 10_000 {
		list = append(list, ui.Word{Name: server + "_tool", Info: strings.Repeat("x", 10_000)})
	}
	return list
}

func (s *strangeRuns) Tool(context.Context, string, string) (json.RawMessage, []string) {
	return json.RawMessage(`{"properties": {"state": {"enum": ["open"]}}}`), []string{".orders", ".orders[].id"}
}

func (s *strangeRuns) Commands() []ui.Word { return []ui.Word{{Name: "jq"}} }

func (s *strangeRuns) Check(context.Context, string) (stages.Plan, []*stages.Error) {
	return s.plan, s.errs
}

func (s *strangeRuns) Start(_ context.Context, plan string, _ bool) (string, *ui.Reply) {
	s.calls = append(s.calls, plan)
	return "", &ui.Reply{Texts: []string{hostile}, Failed: true}
}

func (s *strangeRuns) Reply(context.Context, string) (*ui.Reply, bool) { return nil, false }
func (s *strangeRuns) EndUser(string)                                  {}

// serve serves the console of strangers, and returns what sends a form or gets a page.
func (s *strangeRuns) serve(t *testing.T) func(path string, form url.Values) (status int, body string) {
	t.Helper()
	console, err := ui.New(ui.Options{About: func() control.Gateway { return control.Gateway{Address: "http://127.0.0.1:1/mcp"} }, Runs: s, Playground: s})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(console.Handler(ui.Door{}))
	t.Cleanup(server.Close)
	token := ""
	ask := func(path string, form url.Values) (int, string) {
		method, body := http.MethodGet, io.Reader(http.NoBody)
		if form != nil {
			method, body = http.MethodPost, strings.NewReader(form.Encode())
		}
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Console-Token", token)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	_, page := ask("/playground", nil)
	found := regexp.MustCompile(`X-Console-Token": "([^"]+)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no token:\n%s", page)
	}
	token = found[1]
	return ask
}

// TestHostileRuns: texts of strangers stay texts on every page, and no page is large.
func TestHostileRuns(t *testing.T) {
	wrong := &stages.Error{Code: stages.UnknownTool, Msg: strings.Repeat(hostile, 500), Hint: hostile, Place: "1", Field: "name"}
	s := &strangeRuns{output: []byte(strings.Repeat(hostile+"\n", 100_000)), errs: []*stages.Error{wrong}}
	ask := s.serve(t)
	for _, test := range []struct {
		path   string
		form   url.Values
		status int
	}{
		{"/runs", nil, 200},
		{"/runs?page=999999999999&state=" + url.QueryEscape(hostile) + "&q=" + url.QueryEscape(hostile), nil, 200},
		{"/runs/q_1", nil, 200},
		{"/runs/q_1?stage=1", nil, 200},
		{"/runs/q_1?stage=" + url.QueryEscape(hostile) + "", nil, 200},
		{"/runs/q_1/result?view=text&from=99999999999999&of=-5", nil, 200},
		{"/runs/q_1/result?view=" + url.QueryEscape(hostile) + "&from=-5", nil, 200},
		{"/runs/q_1/nodes?at=-1&end=9&from=99999999999999", nil, 200},
		{"/runs/q_1/output?at=99999999999999&size=3", nil, 200},
		{"/runs/q_2", nil, 404},
		{"/runs/q_1/cancel", url.Values{}, 409},
		{"/playground?run=q_1", nil, 200},
		{"/playground?run=q_1&from=" + url.QueryEscape(hostile), nil, 200},
		{"/playground/result/q_1", nil, 200},
		{"/playground/plan", url.Values{"pipeline": {hostile}}, 200},
		{"/playground/run", url.Values{"pipeline": {hostile}}, 200},
		{"/playground/run", url.Values{"pipeline": {" "}}, 422},
	} {
		status, body := ask(test.path, test.form)
		if status != test.status {
			t.Errorf("%s: status %d, want %d", test.path, status, test.status)
		}
		if strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x") {
			t.Errorf("%s: a text of a stranger became an element", test.path)
		}
		if len(body) > 512<<10 {
			t.Errorf("%s: the page has %d bytes", test.path, len(body))
		}
	}
	if status, body := ask("/runs/q_1/output", nil); status != 200 || body != string(s.output) {
		t.Errorf("the download has status %d and %d bytes, want %d", status, len(body), len(s.output))
	}
}

// TestAgreement: nothing that may change something runs before the person has agreed to exactly that.
func TestAgreement(t *testing.T) {
	s := &strangeRuns{plan: stages.Plan{Stages: []stages.PlanStage{{Place: "1", Label: "tool demo/add_note", Changes: true}}}}
	ask := s.serve(t)
	for _, test := range []struct {
		agreed, dry string
		runs        bool
	}{
		{"", "", false},
		{"1 tool demo/other", "", false},
		{"", "yes", true},
		{"1 tool demo/add_note", "", true},
	} {
		s.calls = nil
		ask("/playground/run", url.Values{"pipeline": {"[]"}, "agreed": {test.agreed}, "dry": {test.dry}})
		if runs := len(s.calls) == 1; runs != test.runs {
			t.Errorf("agreed to %q, dry %q: it has run: %v", test.agreed, test.dry, runs)
		}
	}
}

// TestFixes: a mistake has its place as a JSON pointer, and the whole text without it, where the mistake says it.
func TestFixes(t *testing.T) {
	s := &strangeRuns{}
	ask := s.serve(t)
	for _, test := range []struct {
		text      string
		err       stages.Error
		at, fixed string
	}{
		{`[{"type": "tool", "name": "a"}]`, stages.Error{Place: "1", Code: stages.UnknownTool, Msg: `server "x" has no tool "a"`, Hint: `did you mean "b"?`}, "/0/name", `[{"type": "tool", "name": "b"}]`},
		{`[{}, {"stages": [{"command": "jqq"}]}]`, stages.Error{Place: "2.1", Field: "command", Msg: `command "jqq" is not available`, Hint: "did you mean jq?"}, "/1/stages/0/command", `[{}, {"stages": [{"command": "jq"}]}]`},
		{`[{"branches": {"a/b": [{"type": "x"}]}}]`, stages.Error{Place: "1.a/b.1", Field: "type", Msg: `unknown stage type "x"`, Hint: "write one"}, "/0/branches/a~1b/0/type", ""},
		{`[{"inputs": {"in": [{}, {"args": ["a"]}]}}]`, stages.Error{Place: "1.in.2", Field: "args[0]"}, "/0/inputs/in/1/args/0", ""},
		{`[{"a": "w", "b": "w"}]`, stages.Error{Place: "1", Msg: `"w"`, Hint: `did you mean "v"?`}, "/0", ""},
		{`[{"a": 1}, 7]`, stages.Error{Place: "1", Fix: json.RawMessage(`{"a":[1,2]}`)}, "/0", `[{"a": [1, 2]}, 7]`},
		{`[`, stages.Error{Msg: "not JSON"}, "", ""},
		{`[{}]`, stages.Error{Place: "9.x.y", Fix: json.RawMessage(`{}`)}, "/8", ""},
	} {
		s.errs = []*stages.Error{&test.err}
		_, body := ask("/playground/check", url.Values{"text": {test.text}})
		var got struct {
			Problems []struct {
				At  string
				Fix struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Problems) != 1 {
			t.Fatalf("%s: %v: %s", test.text, err, body)
		}
		if p := got.Problems[0]; p.At != test.at || p.Fix.Text != test.fixed {
			t.Errorf("%s: at %q with the fix %q, want %q with %q", test.text, p.At, p.Fix.Text, test.at, test.fixed)
		}
	}
}

// TestFixesAreBounded: fixes of a long plan with many mistakes are not all written out.
func TestFixesAreBounded(t *testing.T) {
	s := &strangeRuns{}
	for range 100 {
		s.errs = append(s.errs, &stages.Error{Place: "1", Fix: json.RawMessage(`{}`)})
	}
	_, body := s.serve(t)("/playground/check", url.Values{"text": {`[{"a": 1}, "` + strings.Repeat("x", 300<<10) + `"]`}})
	if n := strings.Count(body, `"fix"`); n != 3 || len(body) > 2<<20 {
		t.Errorf("%d fixes, %d bytes", n, len(body))
	}
}

// TestCompletion: what can be written at a place of a text that is not whole, bounded.
func TestCompletion(t *testing.T) {
	ask := (&strangeRuns{}).serve(t)
	for _, test := range []struct{ before, behind, want string }{
		{``, ``, ""},
		{`[`, ``, "for_each"},
		{`[{"type": "for_each", "stages": [`, `]}]`, "command"},
		{`[{"type": "parallel", "branches": {"a": [`, ``, "tee"},
		{`[{"`, ``, "type"},
		{`[{"type": "tool", "`, ``, "paginate"},
		{`[{"type": "tool", "server": "`, ``, "demo"},
		{`[{"type": "tool", "name": "`, `", "server": "demo"}]`, "demo_tool"},
		{`[{"type": "tool", "server": "demo", "name": "x", "args": {"`, ``, "state"},
		{`[{"type": "tool", "server": "demo", "name": "x", "args": {"state": "`, ``, "open"},
		{`[{"type": "tool", "server": "demo", "name": "x", "on_error": "`, ``, "collect"},
		{`[{"type": "command", "command": "`, ``, "jq"},
		{`[{"type": "tool", "server": "demo", "name": "x", "args": {"a": 1}}, {"type": "command", "command": "jq", "args": [".or`, ``, ".orders[].id"},
		{`[{"type": "command", "command": "jq", "args": ["`, ``, ""},
		{`[{"type": "\"tool`, ``, "tool"},
		{`]]}}"`, ``, ""},
		{strings.Repeat("[", 100_000), ``, ""},
	} {
		_, body := ask("/playground/complete", url.Values{"text": {test.before + test.behind}, "before": {test.before}})
		if test.want == "" && !strings.Contains(body, `"options":[]`) || !strings.Contains(body, `"label":"`+test.want) && test.want != "" {
			t.Errorf("%.80s: %.300s", test.before, body)
		}
		if len(body) > 256<<10 {
			t.Errorf("%.80s: the answer has %d bytes", test.before, len(body))
		}
	}
}

// FuzzCompletion: any text has an answer.
func FuzzCompletion(f *testing.F) {
	f.Add(`[{"type": "tool", "server": "`)
	f.Add(`[{"a": [}`)
	f.Fuzz(func(t *testing.T, text string) {
		ui.Complete(t.Context(), &strangeRuns{}, text)
		ui.Problems(text, []*stages.Error{{Place: "1.a.2", Field: "args[0]", Msg: `"x"`, Hint: `did you mean "y"?`, Fix: json.RawMessage(`{}`)}})
	})
}
