package preview

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// scanAll returns the tokens of a stream as text.
func scanAll(src io.Reader) ([]string, error) {
	s := newScanner(src)
	var events []string
	var closing []string
	for {
		k, err := s.next()
		if err != nil {
			return events, err
		}
		if s.tok.odd[oddNumber] || s.tok.odd[oddControl] {
			return events, errors.New("not JSON")
		}
		switch k {
		case tokEnd:
			return events, nil
		case tokKey, kindString:
			events = append(events, fmt.Sprintf("%q/%d", s.tok.begin(), s.tok.size))
		case kindObject:
			events, closing = append(events, "{"), append(closing, "}")
		case kindArray:
			events, closing = append(events, "["), append(closing, "]")
		case tokClose:
			events, closing = append(events, closing[len(closing)-1]), closing[:len(closing)-1]
		default:
			events = append(events, string(s.tok.begin()))
		}
	}
}

// stdEvents returns the same from encoding/json.
func stdEvents(data []byte) []string {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var events []string
	for {
		t, err := d.Token()
		if err != nil {
			return events
		}
		switch v := t.(type) {
		case nil:
			events = append(events, "null")
		case string:
			events = append(events, fmt.Sprintf("%q/%d", v, len(v)))
		default:
			events = append(events, fmt.Sprint(v))
		}
	}
}

func checkScan(t *testing.T, data []byte) {
	t.Helper()
	got, err := scanAll(bytes.NewReader(data))
	slow, slowErr := scanAll(iotest.OneByteReader(bytes.NewReader(data)))
	if diff := cmp.Diff(got, slow); diff != "" || fmt.Sprint(err) != fmt.Sprint(slowErr) {
		t.Fatalf("%q: one-byte reads differ: %v, %v\n%s", data, err, slowErr, diff)
	}
	one := err == nil && documents(got) == 1
	if valid := json.Valid(data); one != valid {
		t.Fatalf("%q: one valid document: got %v (%v), encoding/json says %v", data, one, err, valid)
	}
	if one && longest(got) <= maxToken {
		if diff := cmp.Diff(stdEvents(data), got); diff != "" {
			t.Fatalf("%q: events differ (-encoding/json +scanner)\n%s", data, diff)
		}
	}
}

func documents(events []string) (n int) {
	depth := 0
	for _, e := range events {
		switch e {
		case "{", "[":
			depth++
		case "}", "]":
			depth--
		}
		if depth == 0 {
			n++
		}
	}
	return n
}

func longest(events []string) (n int) {
	for _, e := range events {
		n = max(n, len(e))
	}
	return n
}

var scanSeeds = []string{
	``, ` `, `null`, `true`, `false`, `tru`, `truex`, `nul`, `0`, `-0`, `-`, `01`, `1.`, `1.5e+10`, `1e`, `1e-`, `.5`,
	`62-290`, `1 2`, `[1,2,3]`, `[1,]`, `[,1]`, `[`, `]`, `{`, `}`, `{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a":}`, `{a:1}`,
	`{"a":{"b":[{"c":null}]}}`, `"\u00e9\ud83d\ude00"`, `"\ud800"`, `"\ud800\u0041"`, `"\u12"`, `"\x"`, "\"a\nb\"",
	"\"\x00\"", "\"\xff\"", `"é…👍"`, `"abc`, `"abc\`, `"abc\u`, "[1\n,2\r\n]", "\ufeff{}", `{"a":1}{"a":2}`, `[]]`,
	`{"":""}`, `"\"\\\/\b\f\n\r\t"`, `{"a":"0123456789abcdef0123456789","b":1}`, `[1e400,123456789012345678901234567890]`,
	`NaN`, `Infinity`, `{'a':1}`, `// c`, `[1 2]`, `{"a" 1}`, `"a" "b"`, `-x`, `[-]`, `[1.e1]`, `[0x1]`, `[1a]`,
}

func FuzzScanner(f *testing.F) {
	for _, s := range scanSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(checkScan)
}

func randomValue(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(9); {
	case depth > 0 && n < 3:
		m := map[string]any{}
		for range rng.IntN(4) {
			m[randomKeys[rng.IntN(len(randomKeys))]] = randomValue(rng, depth-1)
		}
		return m
	case depth > 0 && n < 5:
		a := make([]any, rng.IntN(4))
		for i := range a {
			a[i] = randomValue(rng, depth-1)
		}
		return a
	case n < 6:
		return rng.IntN(100)
	case n < 7:
		return rng.Float64()
	case n < 8:
		return randomKeys[rng.IntN(len(randomKeys))]
	}
	return []any{nil, true, false}[rng.IntN(3)]
}

var randomKeys = []string{"id", "name", "a b", `q"\`, "é", "👍", "", "$x", "1", "and", "x\u202ey", "nul\x00", "if", "a?", "\\(1)"}

func TestScannerErrorPositions(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"{\n  \"a\": 1\n  \"b\": 2}", "line 3:3: a comma or the end of the container must follow the value, found '\"'"},
		{"{'a': 1}", "line 1:2: a key must be a string, found '''"},
		{"[1,]", "line 1:4: a value cannot begin with ']'"},
		{"[nul]", "line 1:5: the word null was expected, found ']'"},
		{"[01]", "line 1:3: a number cannot go on with '1'"},
		{"[\"a", "line 1:4: the data ends inside a string"},
		{"[1,\n", "line 2:1: the data ends inside a document"},
		{"\"\n\"", "line 1:2: a string must not hold the raw character U+000A"},
		{"[None]", "line 1:2: a value cannot begin with 'N'"},
	} {
		_, err := scanAll(strings.NewReader(tt.in))
		if fmt.Sprint(err) != tt.want {
			t.Errorf("%q: got %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestScannerReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, in := range []string{"", "[", `["a`, "[12", "[tr", `{"a`} {
		_, err := scanAll(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("%q: got %v, want the reader's error", in, err)
		}
	}
}

func TestScannerAllocatesNothingPerToken(t *testing.T) {
	var doc bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&doc, `{"id":%d,"name":"näme %d\n","ok":true,"v":[1.5,null]}`+"\n", i, i)
	}
	allocs := testing.AllocsPerRun(1, func() {
		s := newScanner(bytes.NewReader(doc.Bytes()))
		for {
			if k, err := s.next(); err != nil || k == tokEnd {
				break
			}
		}
	})
	if allocs > 20 {
		t.Errorf("scanning 240,000 tokens allocates %v times, want a constant few", allocs)
	}
}
