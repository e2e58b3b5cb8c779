package stages_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
)

func TestItems(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
		err  string
	}{
		{"", nil, ""},
		{" \n\t\r\n ", nil, ""},
		{`[]`, nil, ""},
		{`[ ]x`, []string{"[ ]x"}, ""},
		{"[] [main] INFO a\n[7] [main] INFO b\n", []string{"[] [main] INFO a", "[7] [main] INFO b"}, ""},
		{"[7] [1] {oops\n[]\n", []string{"[7] [1] {oops", "[]"}, ""},
		{"[] [1] [2,\n3] {\"a\":\n1}", []string{"1", "2", "3", `{"a":` + "\n1}"}, ""},
		{"[1] [\"", []string{"1"}, "the input ends inside of it"},
		{`[""] x`, nil, "behind a JSON array the input goes on with text: \"x\""},
		{`[1,2] [main] x`, nil, "goes on with text: \"[main] x\""},
		{`[1,2] trailing`, nil, "goes on with text: \"trailing\""},
		{"[1,2]\ntrailing", []string{"1", "2"}, "goes on with text: \"trailing\""},
		{"[1,2]\n{\"a\":1}\n{broken\n", []string{"1", "2", `{"a":1}`}, "the input ends inside of it"},
		{"[1,2] 3\n", []string{"1", "2", "3"}, ""},
		{`[{"a":1}] x`, nil, "goes on with text"},
		{"[12]\nx", []string{"12"}, "goes on with text"},
		{"[    0.000001] Linux\n[ -1e3] x\n", []string{"[    0.000001] Linux", "[ -1e3] x"}, ""},
		{"\uFEFF[1,2]", []string{"1", "2"}, ""},
		{"\uFEFF \n{\"a\":1}", []string{`{"a":1}`}, ""},
		{"\uFEFFa line\n\uFEFFanother\n", []string{"a line", "\uFEFFanother"}, ""},
		{"\uFEFF", nil, ""},
		{"\uFEFF[", nil, "the input ends inside of it"},
		{" [x] y\n", []string{" [x] y"}, ""},
		{"{\"a\":1}\n  text\n", []string{`{"a":1}`, "  text"}, ""},
		{`[1,"a,]",{"b":[2]},null,true , 3.50]`, []string{"1", `"a,]"`, `{"b":[2]}`, "null", "true", "3.50"}, ""},
		{`["\"\\",""]`, []string{`"\"\\"`, `""`}, ""},
		{`[1][2]` + "\n" + `[3]{"a":1}`, []string{"1", "2", "3", `{"a":1}`}, ""},
		{`{"a":1}[2]` + "\n3\ntext\n\"s\"", []string{`{"a":1}`, "[2]", "3", "text", `"s"`}, ""},
		{"1\n2", []string{"1", "2"}, ""},
		{"true story\n", []string{"true story"}, ""},
		{"  indented\n", []string{"  indented"}, ""},
		{"{not json}\n{\"a\":1}\n", []string{"{not json}", `{"a":1}`}, ""},
		{"[INFO] x\n", []string{"[INFO] x"}, ""},
		{"[2024-01-01] x\n[1]\n", []string{"[2024-01-01] x", "[1]"}, ""},
		{"[1] x", []string{"[1] x"}, ""},
		{"[1,\n]", []string{"1"}, "item 2 of the input is not valid JSON"},
		{`[1,2`, []string{"1", "2"}, "the input ends inside of it"},
		{"[1\n2]", []string{"1"}, "expected a comma"},
		{`{"a":1}{"b"`, []string{`{"a":1}`}, "the input ends inside of it"},
		{`{"a":1}{"b":}`, []string{`{"a":1}`}, "item 2 of the input is not valid JSON"},
		{`{"a"`, nil, "the input ends inside of it"},
		{"[01]", []string{"[01]"}, ""},
		{strings.Repeat("[", 100_000), []string{strings.Repeat("[", 100_000)}, ""}, // deeper than JSON is read here
		{"{ unclosed\nsecond\n", []string{"{ unclosed", "second"}, ""},
		{"{{ template\nx\n", []string{"{{ template", "x"}, ""},
		{"{\"a\":1}\n[INFO] x\n{\"b\":2}\n", []string{`{"a":1}`, "[INFO] x", `{"b":2}`}, ""},
		{"{\"a\":1}\n[WARN open\n", []string{`{"a":1}`, "[WARN open"}, ""},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader} {
			got, _, err := stages.Items(wrap(strings.NewReader(tt.in)), 1<<20)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%.40q (%s): (-want +got)\n%s", tt.in, name, diff)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%.40q (%s): error %v, want %q", tt.in, name, err, tt.err)
			}
		}
	}
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{" \n", nil},
		{"1", []string{"1"}},
		{"1 2\n3", []string{"1", "2", "3"}},
		{`{"a":1}{"b":2}[3]"x"`, []string{`{"a":1}`, `{"b":2}`, "[3]", `"x"`}},
		{"12345678901234567890.50\n", []string{"12345678901234567890.50"}},
		{"text\n", []string{`"text"`}},
		{"  two\nlines\n\n", []string{`"  two\nlines\n"`}},
		{`{"a":1} and text`, []string{`"{\"a\":1} and text"`}},
		{"1,2", []string{`"1,2"`}},
		{"{", []string{`"{"`}},
		{"\x00\x1b\\\"\t", []string{`"\u0000\u001b\\\"\t"`}},
	} {
		if diff := cmp.Diff(tt.want, stages.Values([]byte(tt.in))); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", tt.in, diff)
		}
	}
}

// FuzzItems: whatever the input, splitting ends, however it is read, and items that count as JSON are JSON. An array
// has exactly the elements that encoding/json sees.
func FuzzItems(f *testing.F) {
	for _, s := range []string{`[1,2]`, `{"a":1}{"b":2}`, "a\nb", "[INFO] x", `[[1],{"a":"]"}]`, `["\u005d\\"]`, "[1] x\n", `{"a":1}` + "\ntext\n[2]", "[1,", `[""x]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		data, text, err := stages.Items(bytes.NewReader(in), 1<<16)
		slow, _, _ := stages.Items(iotest.OneByteReader(bytes.NewReader(in)), 1<<16)
		if diff := cmp.Diff(data, slow); diff != "" {
			t.Fatalf("it matters how the data comes: %s", diff)
		}
		for i, d := range data {
			if !text[i] && !json.Valid([]byte(d)) {
				t.Fatalf("item %q is not valid JSON", d)
			}
		}
		var e *stages.Error
		if err != nil && (!errors.As(err, &e) || e.Hint == "") {
			t.Fatalf("error without a hint: %v", err)
		}
		var want []json.RawMessage
		if json.Unmarshal(in, &want) == nil && want != nil {
			if err != nil || len(data) != len(want) {
				t.Fatalf("got %d items and %v, want %d", len(data), err, len(want))
			}
			for i := range want {
				if data[i] != string(want[i]) {
					t.Fatalf("item %d is %q, want %q", i, data[i], want[i])
				}
			}
		}
	})
}

// FuzzValues: the values of any bytes are valid JSON, if the bytes are valid UTF-8, and one JSON value stays itself.
func FuzzValues(f *testing.F) {
	for _, s := range []string{"1 2", "text", `{"a":1}{}`, "\xff", "1,2", `"a"b`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := stages.Values(in)
		for _, v := range got {
			if !json.Valid([]byte(v)) {
				t.Fatalf("%q became %q, which is not JSON", in, v)
			}
		}
		if json.Valid(in) && (len(got) != 1 || got[0] != strings.Trim(string(in), " \t\r\n")) {
			t.Fatalf("%q became %q", in, got)
		}
	})
}

// FuzzMembers: an object is taken apart as encoding/json does it, and nothing else is one.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, ` { "a" : 1 , "b":[{"}":"\\""}] } `, `{"\u0061":"\\","a":{}}`, `[]`, `{"a":1}{}`, `{"a"}`, "", "{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		keys, values, ok := stages.Members(in)
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(in, &want) == nil && want != nil
		if ok != isObject {
			t.Fatalf("%q: object %v, want %v", in, ok, isObject)
		}
		got := map[string]json.RawMessage{}
		for i := range keys {
			got[keys[i]] = json.RawMessage(values[i])
		}
		if diff := cmp.Diff(want, got); isObject && diff != "" {
			t.Fatalf("%q: (-want +got)\n%s", in, diff)
		}
	})
}

// FuzzCompile: no pipeline makes the compiler panic or hang, and every mistake has a code and a message.
func FuzzCompile(f *testing.F) {
	for _, k := range stages.Kinds() {
		f.Add([]byte("[" + k.Example + "]"))
	}
	f.Add([]byte(`"[{\"type\":\"command\",\"command\":\"cat\"}]"`))
	f.Add([]byte(`[{"type":"command","command":"jq"}]`))
	f.Add([]byte(`[{"type":"for_each","stages":[{"type":"for_each","stages":[{"type":"parallel","branches":{"a":[]}}]}]}]`))
	w := newWorld()
	f.Fuzz(func(t *testing.T, pipeline []byte) {
		p, errs := stages.Compile(t.Context(), pipeline, w.deps())
		if (p == nil) == (errs == nil) {
			t.Fatalf("pipeline %v, errors %v", p, errs)
		}
		for _, e := range errs {
			if e.Code == "" || e.Msg == "" || e.Code == stages.Internal {
				t.Fatalf("bad error %+v", e)
			}
		}
	})
}

// TestKindsExamples: the example of every kind compiles.
func TestKindsExamples(t *testing.T) {
	w := newWorld()
	w.withFiles(t, "")
	w.add("get_customer", reads, "id", nil)
	for _, k := range stages.Kinds() {
		if k.Name == "from" { // of an example there can be no run
			_, errs := newKept(t, runs.Options{}).compile(t, "["+k.Example+"]")
			if len(errs) != 1 || errs[0].Code != stages.UnknownRun {
				t.Errorf("%s: %v", k.Name, errs)
			}
			continue
		}
		p, errs := stages.CompileFed(t.Context(), []byte("["+strings.ReplaceAll(k.Example, `"jq"`, `"cat"`)+"]"), w.deps())
		if errs != nil || len(p.Plan().Stages) != 1 {
			t.Errorf("%s: %v", k.Name, errs)
		}
	}
}
