package strictjson_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/servers/strictjson"
)

type options struct {
	Path    string            `json:"path"`
	Head    *int              `json:"head"`
	Max     int64             `json:"max_bytes,omitempty"`
	Small   int8              `json:"small"`
	Rate    float64           `json:"rate"`
	On      bool              `json:"on"`
	List    []string          `json:"list"`
	Headers map[string]string `json:"headers"`
	Wait    time.Duration     `json:"wait"`
	Hidden  string            `json:"-"`
	Bare    string
}

func TestDecode(t *testing.T) {
	three := 3
	for _, tt := range []struct {
		in   string
		want options
	}{
		{``, options{}},
		{` null `, options{}},
		{`{}`, options{}},
		{`{"path":"x","head":3,"max_bytes":9007199254740993}`, options{Path: "x", Head: &three, Max: 9007199254740993}},
		{`{"head":3.0,"max_bytes":1e3}`, options{Head: &three, Max: 1000}},
		{`{"path":null,"head":null,"list":null}`, options{}},
		{`{"rate":0.5,"on":true,"list":["a"],"headers":{"A":"b"}}`, options{Rate: 0.5, On: true, List: []string{"a"}, Headers: map[string]string{"A": "b"}}},
		{`{"wait":"1.5s"}`, options{Wait: 1500 * time.Millisecond}},
		{`{"wait":2}`, options{Wait: 2 * time.Second}},
		{`{"wait":"2.5"}`, options{Wait: 2500 * time.Millisecond}},
	} {
		var got options
		if err := strictjson.Decode("option", []byte(tt.in), &got); err != nil {
			t.Errorf("%s: %v", tt.in, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.in, diff)
		}
	}
}

// An unknown member and a missing one are in one error.
func TestDecodeMissing(t *testing.T) {
	type options struct {
		Path string `json:"path"`
	}
	for in, want := range map[string]string{
		`{}`:                  `option "path" is missing`,
		`{"path":null}`:       `option "path" is missing`,
		`{"pth":1}`:           `option "path" is missing, and unknown option "pth", did you mean "path"; known: path`,
		`{"pth":1,"path":""}`: `unknown option "pth", did you mean "path"; known: path`,
	} {
		if err := strictjson.Decode("option", []byte(in), new(options), "path"); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	const known = `; known: path, head, max_bytes, small, rate, on, list, headers, wait`
	for _, tt := range []struct{ in, want string }{
		{`{"pth":1}`, `unknown option "pth", did you mean "path"` + known},
		{`{"Path":1}`, `unknown option "Path", did you mean "path"` + known},
		{`{"max-bytes":1}`, `unknown option "max-bytes", did you mean "max_bytes"` + known},
		{`{"colour":1}`, `unknown option "colour"` + known},
		{`{"Bare":"x"}`, `unknown option "Bare", did you mean "rate"` + known},
		{`{"Hidden":"x"}`, `unknown option "Hidden"` + known},
		{`{"path":1}`, `option "path": want a string, got 1`},
		{`{"path":"a","path":"b"}`, `option "path" is given twice`},
		{`{"head":"3"}`, `option "head": want an integer, got "3"`},
		{`{"head":3.5}`, `option "head": want an integer, got 3.5`},
		{`{"head":1e300}`, `option "head": want an integer, got 1e300`},
		{`{"small":300}`, `option "small": want an integer, got 300`},
		{`{"rate":"x"}`, `option "rate": want a number, got "x"`},
		{`{"on":1}`, `option "on": want true or false, got 1`},
		{`{"list":"a"}`, `option "list": want an array whose elements are each a string, got "a"`},
		{`{"headers":{"a":1}}`, `option "headers": want an object whose values are each a string, got {"a":1}`},
		{`{"wait":"soon"}`, `option "wait": want a duration such as "1.5s" or a number of seconds, got "soon"`},
		{`{"wait":[]}`, `option "wait": want a duration such as "1.5s" or a number of seconds, got []`},
		{`[1]`, `want a JSON object of options, got [1]`},
		{`"x"`, `want a JSON object of options, got "x"`},
		{`{} {}`, `reading options: invalid character '{' after top-level value`},
		{`{"path":"a"`, `reading options: unexpected end of JSON input`},
		{`{"path":`, `reading options: unexpected end of JSON input`},
		{`{"path":}`, `reading options: invalid character '}' looking for beginning of value`},
	} {
		var v options
		err := strictjson.Decode("option", []byte(tt.in), &v)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

func TestFields(t *testing.T) {
	want := []string{"path", "head", "max_bytes", "small", "rate", "on", "list", "headers", "wait"}
	var got []string
	for _, f := range strictjson.Fields[options]() {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"path":"a","head":1}`, `{"wait":1e9}`, `{"a":[{}]}`, `{"list":[null]}`, `{`, `{"small":-1e2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var v options
		if strictjson.Decode("option", []byte(in), &v) == nil && in != "" && !json.Valid([]byte(in)) && len(in) > 0 {
			var any json.RawMessage
			if err := json.Unmarshal([]byte(in), &any); err != nil && len(cmp.Diff(v, options{})) > 0 {
				t.Errorf("%q was accepted: %v", in, err)
			}
		}
	})
}
