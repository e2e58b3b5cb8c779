package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// FuzzAdvise: whatever filter fails with whatever words on whatever input, the advice takes no long time, and a filter
// that it corrects can be compiled.
func FuzzAdvise(f *testing.F) {
	raw, err := os.ReadFile("testdata/mistakes.json")
	if err != nil {
		f.Fatal(err)
	}
	var rows []mistakenFilter
	if err := json.Unmarshal(raw, &rows); err != nil {
		f.Fatal(err)
	}
	for _, row := range rows {
		f.Add(row.Flags, row.Filter, row.Says, row.Input)
	}
	long := fmt.Sprintf(`{"m%s":[{"id":1}]}`, strings.Repeat("#", 4000))
	f.Add("-c", "map(.id)", `jq: error (at <stdin>:1): expected an object but got: array ([{"id":1}])`, long)
	deep := strings.Repeat(`{"a long name":`, 300) + `{"list":[1]}` + strings.Repeat("}", 300)
	f.Add("-c", ".list[]", "jq: error (at <stdin>:1): cannot iterate over: null", deep)
	f.Fuzz(func(t *testing.T, flags, filter, says, input string) {
		o := flagged(flags, filter)
		begin := time.Now()
		advice := Advise(o, says, []byte(input), len(flags)%2 == 1)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		if len(advice.Hint) > 2000 {
			t.Errorf("a hint of %d bytes", len(advice.Hint))
		}
		if advice.Fixed != nil {
			if _, err := Compile(*advice.Fixed); err != nil {
				t.Errorf("the corrected filter %q cannot be compiled: %s", advice.Fixed.Filter, err.Msg)
			}
		}
		if _, err := Compile(o); err != nil && err.Fixed != "" {
			if _, err := Compile(flagged(flags, err.Fixed)); err != nil {
				t.Errorf("the corrected filter cannot be compiled: %s", err.Msg)
			}
		}
	})
}

// TestAdviceIsBounded: long and deeply nested filters and inputs take no long time.
func TestAdviceIsBounded(t *testing.T) {
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	wide := "[" + strings.Repeat(`{"a":[1,2,3]},`, 4000) + "{}]"
	for _, tt := range []struct{ filter, input string }{
		{strings.Repeat("map(", 300) + ".a.b" + strings.Repeat(")", 300), wide},
		{strings.Repeat(".[] | ", 300) + ".a", wide},
		{strings.Repeat(".[]?,", 300) + ".a.b", wide},
		{"map(.a | map(.x))", wide},
		{strings.Repeat("(", 1000) + ".a" + strings.Repeat(")", 1000), deep},
		{".. | .a.b", deep},
	} {
		var said bytes.Buffer
		o := Options{Filter: tt.filter}
		f, wrong := Compile(o)
		if wrong != nil {
			t.Errorf("%.40s: %s", tt.filter, wrong.Msg)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		f.Run(ctx, strings.NewReader(tt.input), &bytes.Buffer{}, &said)
		cancel()
		begin := time.Now()
		Advise(o, "jq: error (at <stdin>:1): expected an object but got: array ([1])\n", []byte(tt.input), false)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%.40s: it took %s", tt.filter, took)
		}
	}
	for _, filter := range []string{strings.Repeat("&&", 2000), strings.Repeat("{.a,", 1000), strings.Repeat("(", 4000), strings.Repeat("!", 4000), strings.Repeat("f(a,", 1000), strings.Repeat("'", 4001)} {
		begin := time.Now()
		Compile(Options{Filter: filter})
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%.40s: it took %s", filter, took)
		}
	}
}
