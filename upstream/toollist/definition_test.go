package toollist

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// TestFingerprint: what counts of a tool, and what does not.
func TestFingerprint(t *testing.T) {
	const tool = `{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{},"y":[1,2]}},"annotations":{"readOnlyHint":true},"_meta":{"n":1},"icons":[1]}`
	for name, test := range map[string]struct {
		change []string // old, new
		same   bool
	}{
		"meta":              {[]string{`"n":1`, `"n":2`}, true},
		"icons":             {[]string{`,"icons":[1]`, ``}, true},
		"order":             {[]string{`"x":{},"y":[1,2]`, `"y":[1,2],"x":{}`}, true},
		"spaces":            {[]string{`,"`, ` , "`}, true},
		"name":              {[]string{`"a"`, `"b"`}, false},
		"title":             {[]string{`"name"`, `"title":"t","name"`}, false},
		"description":       {[]string{`"d"`, `"e"`}, false},
		"input":             {[]string{`"x":{}`, `"x":{"type":"string"}`}, false},
		"order in an array": {[]string{`[1,2]`, `[2,1]`}, false},
		"output":            {[]string{`"name"`, `"outputSchema":{},"name"`}, false},
		"annotations":       {[]string{`true`, `false`}, false},
		"task":              {[]string{`"name"`, `"execution":{"taskSupport":"required"},"name"`}, false},
		"meta of a schema":  {[]string{`"x":{}`, `"x":{"_meta":1}`}, false},
		"member twice":      {[]string{`"d"`, `"e","description":"d"`}, false},
		"other letters":     {[]string{`"_meta"`, `"_META"`}, false},
	} {
		other := strings.ReplaceAll(tool, test.change[0], test.change[1])
		if other == tool || !json.Valid([]byte(other)) {
			t.Errorf("%s: the case is wrong: %s", name, other)
		}
		if same := fingerprint(rpc.Compact([]byte(tool)), false) == fingerprint(rpc.Compact([]byte(other)), false); same != test.same {
			t.Errorf("%s: the same %v, want %v: %s", name, same, test.same, definitionOf([]byte(other)))
		}
	}
	if fingerprint([]byte(tool), true) == fingerprint([]byte(tool), false) {
		t.Error("a second tool of the name does not count")
	}
}

// FuzzDefinition: sorting keeps the JSON and its meaning, but for what does not count, and sorting twice changes nothing.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"name":"a","b":{"z":[{"y":1,"x":"\u0041"}],"a":null},"_meta":{}}`))
	f.Add([]byte(`[[],{},"",{"\u005fmeta":1,"a":1,"a":2}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		raw = rpc.Compact(raw)
		d := definitionOf(raw)
		if again := definitionOf(d); string(again) != string(d) || len(d) > len(raw) {
			t.Fatalf("%s becomes %s and then %s", raw, d, again)
		}
		var before, after any
		if err := json.Unmarshal(d, &after); err != nil {
			t.Fatalf("%s becomes %s: %v", raw, d, err)
		}
		if err := json.Unmarshal(raw, &before); err != nil {
			t.Fatal(err)
		}
		if object, ok := before.(map[string]any); ok {
			delete(object, "_meta")
			delete(object, "icons")
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%s becomes %s", raw, d)
		}
	})
}
