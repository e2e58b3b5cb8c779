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

	"github.com/mcsh-dev/mcsh/internal/costtest"
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
			got, _, err := stages.Items(wrap(strings.NewReader(tt.in)), 1<<20, stages.Values)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%.40q (%s): (-want +got)\n%s", tt.in, name, diff)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%.40q (%s): error %v, want %q", tt.in, name, err, tt.err)
			}
		}
	}
}

// TestTextItems: of text, only an object or array in a line of its own is JSON.
func TestTextItems(t *testing.T) {
	const in = "12\n007\nnull\n\"q\"\n [1,2] \n{\"a\":1}\n{ not json\n  x\r\n\n1 2\n"
	for kind, want := range map[stages.DataKind][]string{
		stages.ToolText:    {"=12", "=007", "=null", `="q"`, "[1,2]", `{"a":1}`, "={ not json", "=  x", "=1 2"},
		stages.CommandText: {"=12", "=007", "=null", `="q"`, "[1,2]", `{"a":1}`, "={ not json", "=  x", "=1 2"},
		stages.Values:      {"12", "=007", "null", `"q"`, "[1,2]", `{"a":1}`, "={ not json", "=  x", "=1 2"},
	} {
		data, text, err := stages.Items(strings.NewReader(in), 1<<20, kind)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			if text[i] {
				data[i] = "=" + data[i]
			}
		}
		if diff := cmp.Diff(want, data); diff != "" {
			t.Errorf("kind %d: (-want +got)\n%s", kind, diff)
		}
	}
	// Scalars and documents of several lines in turn, as jq writes them.
	got, _, err := stages.Items(strings.NewReader("1\n{\n  \"a\": 2\n}\n[\n  3\n]\n"), 1<<20, stages.Values)
	if want := []string{"1", "{\n  \"a\": 2\n}", "[\n  3\n]"}; err != nil || !cmp.Equal(want, got) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		in                    string
		values, command, tool []string
	}{
		{"", nil, []string{`""`}, []string{`""`}},
		{" \n", nil, []string{`" "`}, []string{`" \n"`}},
		{"1\n", []string{"1"}, []string{`"1"`}, []string{`"1\n"`}},
		{"1 2\n3", []string{"1", "2", "3"}, []string{`"1 2\n3"`}, []string{`"1 2\n3"`}},
		{` {"a" : 1}` + "\n", []string{`{"a" : 1}`}, []string{`{"a" : 1}`}, []string{`{"a" : 1}`}},
		{`{"a":1}{"b":2}[3]"x"`, []string{`{"a":1}`, `{"b":2}`, "[3]", `"x"`}, []string{`"{\"a\":1}{\"b\":2}[3]\"x\""`}, []string{`"{\"a\":1}{\"b\":2}[3]\"x\""`}},
		{"12345678901234567890.50\n", []string{"12345678901234567890.50"}, []string{`"12345678901234567890.50"`}, []string{`"12345678901234567890.50\n"`}},
		{"text\n", []string{`"text"`}, []string{`"text"`}, []string{`"text\n"`}},
		{"  two\nlines\n\n", []string{`"  two\nlines\n"`}, []string{`"  two\nlines\n"`}, []string{`"  two\nlines\n\n"`}},
		{"{", []string{`"{"`}, []string{`"{"`}, []string{`"{"`}},
		{"\x00\x1b\\\"\t", []string{`"\u0000\u001b\\\"\t"`}, []string{`"\u0000\u001b\\\"\t"`}, []string{`"\u0000\u001b\\\"\t"`}},
	} {
		for kind, want := range map[stages.DataKind][]string{stages.Values: tt.values, stages.CommandText: tt.command, stages.ToolText: tt.tool} {
			if diff := cmp.Diff(want, stages.ValuesOf([]byte(tt.in), kind)); diff != "" {
				t.Errorf("%q, kind %d: (-want +got)\n%s", tt.in, kind, diff)
			}
		}
	}
}

// FuzzItems: whatever the input, splitting ends, however it is read, and items that count as JSON are JSON. An array
// has exactly the elements that encoding/json sees.
func FuzzItems(f *testing.F) {
	for _, s := range []string{`[1,2]`, `{"a":1}{"b":2}`, "a\nb", "[INFO] x", `[[1],{"a":"]"}]`, `["\u005d\\"]`, "[1] x\n", `{"a":1}` + "\ntext\n[2]", "[1,", `[""x]`} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, isText bool) {
		kind := stages.Values
		if isText {
			kind = stages.CommandText
		}
		data, text, err := stages.Items(bytes.NewReader(in), 1<<16, kind)
		slow, _, _ := stages.Items(iotest.OneByteReader(bytes.NewReader(in)), 1<<16, kind)
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
		got := stages.ValuesOf(in, stages.Values)
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
	for _, text := range []string{"[", `{"type":"for_each","stages":[`, `{"type":"nothing"},`, `{"type":"command","command":"jq","args":"x","`} {
		f.Add([]byte("[" + strings.Repeat(text, costtest.Input/len(text))))
	}
	f.Add([]byte("[" + strings.Repeat(`{"a":1},`, costtest.Input/10) + "{}]"))
	f.Add([]byte(`[{"type":"tool","server":"s","name":"` + strings.Repeat("x", costtest.Input/2) + `"}]`))
	w := newWorld()
	f.Fuzz(func(t *testing.T, pipeline []byte) {
		var p *stages.Pipeline
		var errs []*stages.Error
		costtest.Run(t, func() { p, errs = stages.Compile(t.Context(), pipeline[:min(len(pipeline), costtest.Input)], w.deps()) })
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
