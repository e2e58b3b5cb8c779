package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/itchyny/gojq"
)

// seeds are JSON documents, good and bad, that seed the fuzz targets.
var seeds = []string{
	`null`, `true`, `[1,2,3]`, `{"a":[1,{"b":null}],"c":"é\u00e9\ud83d\ude00\n"}`, `[]`, `{}`, `[[],{}]`, `-0`, `1.50e+10`,
	`12345678901234567890`, `"\ud800"`, `"\ud800\ud800\udc00"`, `"\ud800\u0041"`, `[1,]`, `{"a":1,}`, `{"a" 1}`, `[1 2]`, `01`, `1.`, `-`, `"`, `"\u12"`, `tru`, `nullx`,
	"[1,\n2] \t {\"a\":\"b\"}", `[{"a":1,"b":[2]},{"a":"x"},{"a":null},[3],4]`, `[{"a":{"b":1}},{"a":{"b":2}}]`, "\ufeff[1]", "[\"\xff\xfe\"]", `{"a":1,"a":2}`,
}

// std decodes with encoding/json, and shortens integers as the decoder here does.
func std(text string) (vs []any, err error) {
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	d.UseNumber()
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return vs, nil
		} else if err != nil {
			return vs, err
		}
		vs = append(vs, v)
	}
}

// shortened replaces the numbers that the decoder here makes int.
func shortened(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil && len(v) <= 18 && !strings.HasPrefix(string(v), "-0") {
			return int(n)
		}
		return v
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = shortened(v[k])
		}
	}
	return v
}

func decodeAll(r io.Reader) (vs []any, err error) {
	d := newDecoder(r)
	for {
		v, err := d.next()
		if isEOF(err) {
			return vs, nil
		}
		if err != nil {
			return vs, err
		}
		vs = append(vs, v)
	}
}

// FuzzDecode: the decoder reads what encoding/json reads, whatever pieces the text comes in, and takes no more than
// that. It may refuse what encoding/json takes apart without a separator, such as 1true.
func FuzzDecode(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, wantErr := std(text)
		got, err := decodeAll(strings.NewReader(text))
		small, smallErr := decodeAll(iotest.OneByteReader(strings.NewReader(text)))
		if (err == nil) != (smallErr == nil) || !cmp.Equal(got, small) {
			t.Fatalf("%q: %v, %v at once, but %v, %v byte by byte", text, got, err, small, smallErr)
		}
		if err == nil && wantErr != nil || err != nil && wantErr == nil && json.Valid([]byte(text)) {
			t.Fatalf("%q: error %v, encoding/json says %v", text, err, wantErr)
		}
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 {
				t.Fatalf("%q: error %#v", text, err)
			}
			return
		}
		for i := range want {
			want[i] = shortened(want[i])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text, diff)
		}
	})
}

func TestMistakeHasItsPlace(t *testing.T) {
	long := "[\n" + strings.Repeat("  \"some text that fills lines\",\n", 20_000) + "  oops]"
	_, err := decodeAll(strings.NewReader(long))
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 20_002 || syntax.Column != 3 || !strings.Contains(syntax.Near, "oops") {
		t.Errorf("got %v", err)
	}
}

// TestWords: a word is read as far as it takes to know it, and no further, since the input may wait there or have no end.
func TestWords(t *testing.T) {
	for _, tt := range []struct {
		text string
		want any
	}{{"true ", true}, {"false\n", false}, {"null,", nil}} {
		got, err := newDecoder(io.MultiReader(strings.NewReader(tt.text), iotest.ErrReader(errors.New("it reads on")))).next()
		if err != nil || got != tt.want {
			t.Errorf("%q: got %v, %v", tt.text, got, err)
		}
	}
	for _, word := range []string{"truetrue", "tttttttt", "nullnull", "falsefal"} {
		in := strings.NewReader(strings.Repeat(word, bufferSize))
		var syntax *SyntaxError
		if _, err := newDecoder(in).next(); !errors.As(err, &syntax) || syntax.Msg != "an unknown word" || in.Size()-int64(in.Len()) > bufferSize {
			t.Errorf("%s…: %v, after %d bytes", word, err, in.Size()-int64(in.Len()))
		}
	}
}

// FuzzEncode: the printer writes what gojq writes, and prettily what encoding/json makes of that.
func FuzzEncode(f *testing.F) {
	for _, text := range seeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		vs, _ := decodeAll(strings.NewReader(text))
		for _, v := range vs {
			checkPrinter(t, v)
		}
	})
}

func checkPrinter(t *testing.T, v any) {
	t.Helper()
	want, err := gojq.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := printed(t, printer{}, v); got != string(want) {
		t.Errorf("compact: %s, want %s", got, want)
	}
	for _, tt := range []struct {
		p      printer
		indent string
	}{{printer{indent: "  "}, "  "}, {printer{indent: "       "}, "       "}, {printer{indent: "\t"}, "\t"}} {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, want, "", tt.indent); err != nil {
			return // an infinite number or the like
		}
		if got := printed(t, tt.p, v); got != pretty.String() {
			t.Errorf("indent %q: %s, want %s", tt.indent, got, pretty.String())
		}
	}
	ascii := printed(t, printer{ascii: true}, v)
	if strings.IndexFunc(ascii, func(c rune) bool { return c > '~' }) >= 0 {
		t.Errorf("ASCII: %s", ascii)
	}
	back, err := decodeAll(strings.NewReader(ascii))
	if err != nil || len(back) != 1 || !cmp.Equal(back[0], v) {
		t.Errorf("ASCII: %s is read as %v, %v", ascii, back, err)
	}
}

func printed(t *testing.T, p printer, v any) string {
	t.Helper()
	var b strings.Builder
	p.w = &b
	if err := p.value(v, 0); err != nil {
		t.Fatal(err)
	}
	p.flush()
	return b.String()
}

func TestPrinterNumbers(t *testing.T) {
	big70, _ := new(big.Int).SetString("1180591620717411303424", 10)
	for _, v := range []any{0, -1, math.MinInt, 0.5, 1e-7, 1e-10, 1e21, 1e20, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1), big70} {
		want, err := gojq.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := printed(t, printer{}, v); got != string(want) {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// programsByElement are programs that read arrays element by element.
var programsByElement = []string{
	".", ".[]", ".[] | .a", ".[].a", ".[].a.b", "map(.)", "map(.a)", "map(.a?)", "map(empty)", "map(., 1)", "map(.[]?)", "[.[]]", "[.[] | .a?]", "[.[] | ., .]",
	"map(select(type == \"object\"))", "map(.a?) | map([.])", "map(.a?) | .[] | tojson", ".[] | [.] | .[0]", ". | map(.)", "def f: [.]; map(f)",
	".[] | select(type == \"number\") | . + 1", "map(try error(.) catch .)", "[.[] | . as $x | [$x]]", "map([limit(2; .[]?)])", "map(label $f | (.[]? | ., break $f))",
	"[.[] | def g: [.]; g]", "map(reduce .[]? as $x (0; . + 1))", "map(.a) | .", ".[] , .[]", "map(not)", "map(tostring) | map(length)",
	"map(. |= .)", ".[] | . |= .", "[.[].a] | .[]", "[.[].a]", "[.[] | .a?] | .[]", "map(.a?) | .[] | tojson | length", "map({input: .})", "map({halt: \"debug inputs\"}) # input",
	".[] | select(. == \"not now\") | .", "def f: 1; map([f, .]) | def f: 2; map(. + [f])", "map(def g: 1; g)", "[map(.) | .[]]", "map(tojson) # map(.)", ".[] # | .", `map("x)") | map(.)`, "[.[]] | [.[]]",
}

// byElement runs a program and the same program on whole documents.
func byElement(t *testing.T, o Options, text string) {
	t.Helper()
	f, err := Compile(o)
	if err != nil {
		return
	}
	var whole, parts, wholeErr, partsErr bytes.Buffer
	same := *f
	same.each = nil
	wantExit := same.Run(t.Context(), strings.NewReader(text), &whole, &wholeErr)
	exit := f.Run(t.Context(), iotest.HalfReader(strings.NewReader(text)), &parts, &partsErr)
	if wantExit > 1 {
		// After an error output may precede it, but an error it has to be.
		if exit <= 1 {
			t.Errorf("%q < %q: exit %d, but %d on whole documents (%s)", o.Filter, text, exit, wantExit, wholeErr.String())
		}
		return
	}
	if exit != wantExit || parts.String() != whole.String() {
		t.Errorf("%q < %q:\nby element %q, exit %d (%s)\non whole documents %q, exit %d (%s)",
			o.Filter, text, parts.String(), exit, partsErr.String(), whole.String(), wantExit, wholeErr.String())
	}
}

func layouts(filter string) []Options {
	return []Options{
		{Filter: filter},
		{Filter: filter, Indent: "  "},
		{Filter: filter, Indent: "\t"},
		{Filter: filter, Raw: true, Indent: " "},
		{Filter: filter, Join: true},
		{Filter: filter, Raw0: true, ASCII: true},
		{Filter: filter, Seq: true, ExitStatus: true},
	}
}

func FuzzByElement(f *testing.F) {
	for i, filter := range programsByElement {
		f.Add(filter, seeds[i%len(seeds)], uint8(i))
	}
	f.Fuzz(func(t *testing.T, filter, text string, layout uint8) {
		// A filter that never ends, or takes all memory, says nothing about equality.
		query, err := gojq.Parse(filter)
		if err != nil || len(filter) > 60 || len(text) > 2000 || len(query.FuncDefs) > 1 {
			return
		}
		names := map[string]bool{}
		findCalls(reflect.ValueOf(query), names)
		for name := range names {
			if slices.Contains([]string{"range", "repeat", "recurse", "while", "until", "now", "combinations", "pow", "exp10", "splits", "ltrimstr", "implode", "mktime", "debug", "stderr", "tojson", "limit", "getpath", "setpath", "flatten"}, name) {
				return
			}
		}
		if strings.ContainsAny(filter, "*0123456789") || strings.Contains(filter, "def") || strings.Contains(filter, "..") {
			return
		}
		all := layouts(filter)
		byElement(t, all[int(layout)%len(all)], text)
	})
}

// TestTakenApart says which programs are taken apart, and which must not be.
func TestTakenApart(t *testing.T) {
	for _, filter := range programsByElement {
		f, err := Compile(Options{Filter: filter})
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		if want := filter != ".[] , .[]"; (f.each != nil) != want {
			t.Errorf("%s: taken apart: %v, want %v", filter, !want, want)
		}
	}
	for _, filter := range []string{
		"length", "map(.a) | length", "sort", ".[0]", ".[1:]", "first(.[])", "[.[] | .a] | add", "{x: .[]}", ".[] as $x | .", "reduce .[] as $x (0; .)",
		"map(input)", ".[] | input", "map(halt)", ".[] | halt_error", "map(input_line_number)", "def map(f): 1; map(.)", ".[]?", ".[].a?", "map(.)[0]", "[.[]], 1",
		".[] |= .", ".[]|=.", ".[].a |= .", "[.[].a?]", "map(.) |= .", ".[][.a]", ".[].a[.[0]]", "map(.a) | length | .", "map(.) | def map(f): 1; map(.)",
		"[.[] | .], [.]", "map(.), map(.)", "map(.) | {a: (.)}", "try .[] catch .", "label $f | .[] | break $f", "map(.; .)", ".[] // 1", "[.[], 1]", "[limit(1; .[])]", "map(debug)", ".[.[]]", ".[] += 1", "to_entries",
	} {
		f, err := Compile(Options{Filter: filter})
		if err != nil {
			if filter != "map(.; .)" {
				t.Errorf("%s: %v", filter, err)
			}
			continue
		}
		if f.each != nil {
			t.Errorf("%s is taken apart", filter)
		}
	}
	for _, o := range []Options{{NullInput: true}, {Slurp: true}, {RawInput: true}, {Stream: true}} {
		o.Filter = "map(.)"
		if f, err := Compile(o); err != nil || f.each != nil {
			t.Errorf("%+v: taken apart, or %v", o, err)
		}
	}
}

// TestConcurrent: one filter runs many times at once.
func TestConcurrent(t *testing.T) {
	for _, filter := range []string{"map(. + 1)", "[., input]", ". + $ARGS.named.x"} {
		f, err := Compile(Options{Filter: filter, Named: []Var{{Name: "x", Text: "[3]", JSON: true}}})
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		f.Run(t.Context(), strings.NewReader("[1,2] [3]"), &want, io.Discard)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					var got bytes.Buffer
					f.Run(t.Context(), strings.NewReader("[1,2] [3]"), &got, io.Discard)
					if got.String() != want.String() {
						t.Errorf("%s: %q, want %q", filter, got.String(), want.String())
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestStopsEarly(t *testing.T) {
	for _, tt := range []struct {
		o    Options
		want bool
	}{
		{Options{Filter: "."}, false},
		{Options{Filter: "first(.[])"}, false},
		{Options{Filter: "halt"}, true},
		{Options{Filter: "map(halt_error)"}, true},
		{Options{Filter: "\"do not halt\""}, false},
		{Options{Filter: "{halt: .halt} # halt"}, false},
		{Options{Filter: "\"\\(halt)\""}, true},
		{Options{Filter: "1", NullInput: true}, true},
		{Options{Filter: "input", NullInput: true}, true},
		{Options{Filter: "[inputs]", NullInput: true}, false},
		{Options{Filter: "first(inputs)", NullInput: true}, true},
		{Options{Filter: "\"all inputs\"", NullInput: true}, true},
		{Options{Filter: "[inputs | \"first\"] # any", NullInput: true}, false},
		{Options{Filter: "{all: [inputs]}", NullInput: true}, false},
		{Options{Filter: "label $f | inputs", NullInput: true}, true},
	} {
		f, err := Compile(tt.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.StopsEarly(); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.o, got, tt.want)
		}
	}
}

// TestAsksTime: only a call asks for the time.
func TestAsksTime(t *testing.T) {
	for filter, want := range map[string]bool{
		"now": true, "{at: (now | floor)}": true, "def f: now; f": true, "\"\\(now)\"": true,
		"select(.s == \"not now\")": false, "{now: 1}": false, ".now": false, ". # now": false,
	} {
		f, err := Compile(Options{Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		if got := f.AsksTime(); got != want {
			t.Errorf("%s: %v, want %v", filter, got, want)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	doc := `{"id":123456,"name":"some \"thing\" here","tags":["a","b","c"],"nested":{"x":1.5,"y":null},"text":"lorem ipsum dolor sit amet"}` + "\n"
	in := strings.Repeat(doc, 10_000)
	for _, filter := range []string{".", ".name", "{name, id}"} {
		b.Run(filter, func(b *testing.B) {
			f, err := Compile(Options{Filter: filter})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				f.Run(b.Context(), strings.NewReader(in), io.Discard, io.Discard)
			}
		})
	}
}

// TestAgain runs one filter on many inputs, and finds nothing of one of them in what comes of the next.
func TestAgain(t *testing.T) {
	inputs := []string{
		`{"id":1}`, "", `{"id":`, `{"b":{"a":[1,2]},"a":"x"}`, "\n\n\n{", "\x1e1\n\x1e2", `"` + strings.Repeat("x", 2*bufferSize) + `"`,
		"null 1", `"\u00e9\ud800"`, "false", strings.Repeat(`{"k":[{}]}`+"\n", 1000), `{"id":{"id":2}}`, "[1,[2,3]]", "\ufeff7",
	}
	for _, o := range []Options{
		{Filter: "."},
		{Filter: ".id", Indent: "  "},
		{Filter: ".[]?", ExitStatus: true},
		{Filter: "if . == null then halt_error else . end"},
		{Filter: ".", Stream: true},
		{Filter: ".", Slurp: true},
		{Filter: ".", Seq: true, Indent: "\t"},
		{Filter: ".", RawInput: true},
		{Filter: "debug, input_line_number"},
	} {
		run := func(f *Filter, in string) string {
			var out, errOut strings.Builder
			code := f.Run(t.Context(), strings.NewReader(in), &out, &errOut)
			return fmt.Sprintf("%d %s %s", code, &out, &errOut)
		}
		compiled := func() *Filter {
			f, err := Compile(o)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		f := compiled()
		for range 2 {
			for _, in := range inputs {
				if got, want := run(f, in), run(compiled(), in); got != want {
					t.Errorf("%+v, %.40q: got %.200q, want %.200q", o, in, got, want)
				}
			}
		}
	}
}

// BenchmarkItem is what one item of a for_each takes.
func BenchmarkItem(b *testing.B) {
	for _, filter := range []string{".id", "{id}"} {
		b.Run(filter, func(b *testing.B) {
			f, err := Compile(Options{Filter: filter})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				f.Run(context.Background(), strings.NewReader(`{"id":123}`+"\n"), io.Discard, io.Discard)
			}
		})
	}
}
