//go:build !race

package preview_test

import (
	"context"
	"encoding/json"
	"io"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/mcsh-dev/mcsh/bench/quality"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/preview"
)

// claims parses a preview back.
func claims(t *testing.T, text string) (all []quality.Claim, tries []string) {
	t.Helper()
	all, tries, err := quality.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return all, tries
}

// run returns all results of a jq program over the documents.
func run(t *testing.T, program string, docs []any) (results []any) {
	t.Helper()
	query, err := gojq.Parse(program)
	if err != nil {
		t.Fatalf("program %s: %v", program, err)
	}
	code, err := gojq.Compile(query)
	if err != nil {
		t.Fatalf("program %s: %v", program, err)
	}
	for _, doc := range docs {
		iter := code.Run(doc)
		for {
			v, ok := iter.Next()
			if !ok {
				break
			}
			if err, ok := v.(error); ok {
				t.Fatalf("program %s: %v", program, err)
			}
			results = append(results, v)
		}
	}
	return results
}

func typesOf(results []any) (found []string) {
	for _, v := range results {
		if name := gojq.TypeOf(v); !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
}

var (
	listedValue = regexp.MustCompile(`^(".*"|-?[0-9.e+-]+|true|false)×(\d+)$`)
	rangeOf     = regexp.MustCompile(`^(?:int|num) (-?[0-9.e+-]*[0-9])\.\.(-?[0-9.e+-]+)$`)
	presentIn   = regexp.MustCompile(` in (\d+)/(\d+)`)
	keyOf       = regexp.MustCompile(`^\.([A-Za-z_]\w*|"(?:[^"\\]|\\.)*")`)
)

// checkValues compares the values, counts and ranges that a line tells with the data.
func checkValues(t *testing.T, c quality.Claim, results, docs []any) (checked int) {
	t.Helper()
	if m := presentIn.FindStringSubmatch(c.Note); m != nil {
		key := keyOf.FindStringSubmatch(c.Seg)[1]
		if key[0] != '"' {
			key = `"` + key + `"`
		}
		objects := run(t, c.Above+"|objects", docs)
		with := run(t, c.Above+"|objects|select(has("+key+"))", docs)
		if strconv.Itoa(len(with)) != m[1] || strconv.Itoa(len(objects)) != m[2] {
			t.Errorf("%s is announced%s, but is in %d/%d", c.Path, m[0], len(with), len(objects))
		}
		checked++
	}
	for _, part := range c.Parts() {
		if m := listedValue.FindStringSubmatch(part); m != nil && !strings.Contains(m[1], "<n>") { // else a pattern
			var want any
			if err := json.Unmarshal([]byte(m[1]), &want); err != nil {
				t.Fatalf("%s: %s: %v", c.Path, m[1], err)
			}
			n := 0
			for _, v := range results {
				if gojq.Compare(v, want) == 0 {
					n++
				}
			}
			if strconv.Itoa(n) != m[2] {
				t.Errorf("%s has %s %d times, announced is %s", c.Path, m[1], n, part)
			}
			checked++
		}
		if m := rangeOf.FindStringSubmatch(part); m != nil {
			var numbers []any
			for _, v := range results {
				if gojq.TypeOf(v) == "number" {
					numbers = append(numbers, v)
				}
			}
			lo, hi := slices.MinFunc(numbers, gojq.Compare), slices.MaxFunc(numbers, gojq.Compare)
			got := jsonText(t, lo) + ".." + jsonText(t, hi)
			if got != m[1]+".."+m[2] {
				t.Errorf("%s lies in %s, announced is %s", c.Path, got, part)
			}
			checked++
		}
	}
	return checked
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := gojq.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// numbers makes json.Number what gojq works on, with all digits of integers.
func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, ok := new(big.Int).SetString(v.String(), 10); ok {
			if i.IsInt64() {
				return int(i.Int64())
			}
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	}
	return v
}

func decode(t *testing.T, data string) (docs []any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	for {
		var v any
		err := d.Decode(&v)
		if err == io.EOF {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, numbers(v))
	}
}

// TestEveryPathIsTrue runs every path that a preview prints on the data: it must compile, run without an error, and
// find exactly the types that are announced.
func TestEveryPathIsTrue(t *testing.T) {
	for _, set := range dataSets {
		t.Run(set.name, func(t *testing.T) {
			for seed := range uint64(parttest.Times(3, 12)) {
				data := set.make(rand.New(rand.NewPCG(seed, 1)))
				docs := decode(t, data)
				for _, chars := range []int{300, 1000, 100_000} {
					checkPaths(t, data, docs, chars)
				}
				if set.name != "random" && set.name != "weird keys" && seed == 1 {
					break
				}
			}
		})
	}
}

// paths adds the jq paths of all values below v, without question marks.
func paths(v any, at string, all map[string]bool) {
	all[at] = true
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			paths(e, at+"[]", all)
		}
	case map[string]any:
		for k, e := range v {
			if !plainKey.MatchString(k) {
				k = strconv.Quote(k)
			}
			paths(e, at+"."+k, all)
		}
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// TestPathsAreFound is the other side of soundness: what there is, a preview of the default size shows.
func TestPathsAreFound(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(*rand.Rand) string
		chars int
		want  float64 // part of all paths
	}{
		{"issues", issues, 3000, 1},
		{"issues", issues, 1000, 0.9},
		{"issues", issues, 500, 0.4},
		{"events", events, 3000, 1},
		{"events", events, 600, 1},
		{"late field", lateField, 300, 1},
	} {
		data := tt.make(rand.New(rand.NewPCG(4, 4)))
		truth := map[string]bool{}
		for _, doc := range decode(t, data) {
			paths(doc, "", truth)
		}
		res, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{Chars: tt.chars})
		if err != nil {
			t.Fatal(err)
		}
		found, _ := claims(t, res.Text)
		known := map[string]bool{"": true}
		for _, c := range append(found, quality.Repeated(found)...) {
			path := strings.TrimPrefix(strings.ReplaceAll(c.Path, "?", ""), ".")
			if !strings.HasPrefix(path, "[") {
				path = "." + path
			}
			known[path] = true
			for strings.HasSuffix(path, "[]") { // .a[] says that .a is an array
				path = strings.TrimSuffix(path, "[]")
				known[path] = true
			}
		}
		n := 0
		var missing []string
		for path := range truth {
			if known[path] {
				n++
			} else {
				missing = append(missing, path)
			}
		}
		if got := float64(n) / float64(len(truth)); got < tt.want {
			t.Errorf("%s at %d: %.2f of the paths are shown, want %.2f; missing %q\n%s", tt.name, tt.chars, got, tt.want, missing, res.Text)
		} else {
			t.Logf("%s at %d: %.2f", tt.name, tt.chars, got)
		}
	}
}

func checkPaths(t *testing.T, data string, docs []any, chars int) {
	t.Helper()
	res, err := preview.Preview(context.Background(), strings.NewReader(data), preview.Options{Chars: chars, Window: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Verbatim {
		return
	}
	found, tries := claims(t, res.Text)
	found = append(found, quality.Repeated(found)...)
	checked := 0
	for _, c := range found {
		results := run(t, c.Path, docs)
		got := typesOf(results)
		if !c.Repeats {
			checked += checkValues(t, c, results, docs)
		}
		for _, name := range got {
			if !slices.Contains(c.Types, name) && (name != "null" || !c.Null) {
				t.Errorf("chars %d: %s is announced as %v, but gives %s\n%s", chars, c.Path, c.Types, name, res.Text)
			}
		}
		for _, name := range c.Types {
			if !slices.Contains(got, name) {
				t.Errorf("chars %d: %s is announced as %v, but gives only %v\n%s", chars, c.Path, c.Types, got, res.Text)
			}
		}
	}
	for _, program := range tries {
		run(t, program, docs)
	}
	if chars > 10_000 && strings.Contains(res.Text, "more key") {
		t.Errorf("chars %d: keys are left out although there is room\n%s", chars, res.Text)
	}
	if chars > 10_000 && (len(found) == 0 || checked == 0 && strings.ContainsAny(res.Text, "×")) {
		t.Errorf("chars %d: got %d paths with %d values\n%s", chars, len(found), checked, res.Text)
	}
	if t.Failed() {
		t.FailNow()
	}
}
