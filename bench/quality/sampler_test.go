package quality

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func list(n int, item func(i int) string) string {
	var items []string
	for i := range n {
		items = append(items, item(i))
	}
	return strings.Join(items, ",")
}

// TestSample compares the sampler with outputs of the one that it stands for.
func TestSample(t *testing.T) {
	records := `{"items":[` + list(100, func(i int) string { return fmt.Sprintf(`{"id":%d,"name":"Item %d"}`, i, i) }) + "]}"
	for _, c := range []struct {
		data   string
		budget int
		style  Style
		want   string
	}{
		{`{"b":1,"a":[true,null],"c":"x"}`, 200, Detailed, "{\n  \"a\": [\n    true,\n    null\n  ],\n  \"b\": 1,\n  \"c\": \"x\"\n}"},
		{
			"[" + list(1000, func(i int) string { return fmt.Sprint(i) }) + "]", 200, Detailed,
			"[\n  0,\n  1,\n  2,\n  3,\n  /* 42 more items */\n  46,\n  47,\n  48,\n  49,\n  50,\n  /* 2 more items */\n  53,\n  54,\n" +
				"  /* 103 more items */\n  158,\n  159,\n  /* 1 more items */\n  161\n  /* 986 more items */\n]",
		},
		{
			records, 200, Detailed, "{\n  \"items\": [\n    { /* 2 more properties */ },\n    /* 34 more items */\n    { /* 2 more properties */ },\n" +
				"    { /* 2 more properties */ }\n    /* 97 more items */\n  ]\n}",
		},
		{`"The quick brown fox jumps over the lazy dog and keeps running far away"`, 40, Detailed, `"The quick brown fox jumps over the …"`},
		{
			"[" + list(20, func(i int) string { return fmt.Sprintf(`"lorem ipsum dolor sit amet consectetur %d"`, i) }) + "]", 150, Detailed,
			"[\n  \"lorem ipsum …\",\n  /* 8 more items */\n  \"lorem ipsum …\",\n  \"lorem ipsum …\",\n  /* 8 more items */\n  \"lorem ipsum …\"\n  /* 16 more items */\n]",
		},
		{
			"{" + list(100, func(i int) string { return fmt.Sprintf(`"key%d":%d`, i, i) }) + "}", 120, Detailed,
			"{\n  \"key0\": 0,\n  \"key1\": 1,\n  \"key10\": 10,\n  \"key11\": 11,\n  \"key12\": 12,\n  \"key13\": 13\n  /* 94 more properties */\n}",
		},
		{
			`[{"id":0},{"id":1},{"id":2},{"id":3,"deleted":true},{"id":4},{"id":5},{"id":6},{"id":7},{"id":8}]`, 110, Detailed,
			"[\n  { /* 1 more properties */ },\n  /* 3 more items */\n  { /* 1 more properties */ }\n  /* 7 more items */\n]",
		},
		{
			"[" + list(10, func(int) string { return "[1,2,3,4,5,6,7,8,9,10]" }) + "]", 160, Detailed,
			"[\n  [ /* 10 more items */ ],\n  /* 3 more items */\n  [ /* 10 more items */ ],\n  [ /* 10 more items */ ]\n  /* 7 more items */\n]",
		},
		{"42", 10, Detailed, "42"},
		{"[]", 10, Detailed, "[]"},
		{"{}", 10, Detailed, "{}"},
		{"null", 10, Detailed, "null"},
		{`{"s":"héllo 👨‍👩‍👧 wörld and more text beyond the inflection point of twenty"}`, 40, Detailed, "{\n  \"s\": \"héllo …\"\n}"},
		{`{"meta":{"a":1},"users":[1,2,3]}`, 10, Detailed, "{ /* 2 more properties */ }"},
		{`[{"a":1,"a":"x"}]`, 100, Detailed, "[\n  {\n    \"a\": 1,\n    \"a\": \"x\"\n  }\n]"},
		{
			records, 120, Strict,
			"{\n  \"items\": [\n    {\n      \"id\": 0,\n      \"name\": \"…\"\n    },\n    {\n      \"id\": 29\n    },\n    {}\n  ]\n}",
		},
		{
			records, 120, Dots,
			"{\n  \"items\": [\n    {\n      \"id\": 0,\n      \"name\": \"…\"\n    },\n    …\n    { … },\n    …\n    { … }\n    …\n  ]\n}",
		},
	} {
		got, err := Sample(c.data, c.budget, c.style)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%.50s at %d (-want +got):\n%s", c.data, c.budget, diff)
		}
	}
	for _, data := range []string{"{\"a\":1}\n{\"a\":2}", "", "a,b", "[1,", "1 x"} {
		if text, err := Sample(data, 100, Detailed); err == nil {
			t.Errorf("%q: got %q, want an error", data, text)
		}
	}
}
