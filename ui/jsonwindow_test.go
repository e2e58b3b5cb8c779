package ui_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/ui"
)

// counted counts the values in JSON values, by decoding them.
func counted(text string) (n int) {
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		if dec.Decode(&v) != nil {
			return n
		}
		var count func(any)
		count = func(v any) {
			n++
			switch v := v.(type) {
			case []any:
				for _, one := range v {
					count(one)
				}
			case map[string]any:
				for _, one := range v {
					count(one)
				}
			}
		}
		count(v)
	}
}

// TestWalk: windows of any size show each value once.
func TestWalk(t *testing.T) {
	for name, text := range map[string]string{
		"scalar": `17`, "text": `"a \" \\ [ { ] }"`, "empty": `[]`, "spaces": " [ 1 , 2 , { \"a\" : [ ] } ] ", "lines": "{\"a\":1}\n{\"a\":2}\n", "unicode": `{"\u00e9\"":"é","b":[true,false,null,-1.5e3]}`,
		"long": "[" + strings.Repeat(`{"a":[1,{"b":"x"}]},`, 3000) + `7]`, "deep": strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	} {
		for _, most := range []int{1, 7, 100} {
			if name == "deep" && most != 100 {
				continue
			}
			if n, err := ui.Walk(strings.NewReader(text), int64(len(text)), most); err != nil || n != counted(text) {
				t.Errorf("%s in windows of %d: %d values, want %d (%v)", name, most, n, counted(text), err)
			}
		}
	}
}

// TestWalkBroken: text that is no JSON is no tree, and ends.
func TestWalkBroken(t *testing.T) {
	for _, text := range []string{`hello world`, `{`, `[1,`, `{"a"}`, `{"a":}`, `{"a":1,,}`, `[1 2`, "\x00\x01", `"open`, `{"a":tru}`, `nul`, `[1]]`, "]", strings.Repeat("a", 1<<20)} {
		if n, err := ui.Walk(strings.NewReader(text), int64(len(text)), 100); err == nil && !json.Valid([]byte(text)) {
			t.Errorf("%.40q counts as JSON of %d values", text, n)
		}
	}
}

func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",{"b":null}]} 2`), 2)
	f.Add([]byte("[[[[\"\\"), 1)
	f.Fuzz(func(t *testing.T, text []byte, most int) {
		if len(text) > 2000 {
			return
		}
		n, err := ui.Walk(bytes.NewReader(text), int64(len(text)), 1+max(0, most)%100)
		if want := counted(string(text)); json.Valid(text) && (err != nil || n < want) {
			t.Errorf("%d values, want %d (%v)", n, want, err)
		}
	})
}

// BenchmarkWindow: the first window of a long list does not depend on its length.
func BenchmarkWindow(b *testing.B) {
	data := bytes.NewReader([]byte("[" + strings.Repeat(`{"name":"a row of many","values":[1,2,3],"nested":{"deep":{"deeper":"text"}}},`, 600_000) + "0]"))
	b.SetBytes(data.Size())
	for b.Loop() {
		if err := ui.FirstWindow(data, data.Size()); err != nil {
			b.Fatal(err)
		}
	}
}
