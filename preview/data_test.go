package preview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// dataSets are generated, but look like what tools return.
var dataSets = []struct {
	name string
	make func(*rand.Rand) string
}{
	{"issues", issues},
	{"events", events},
	{"datamap", dataMap},
	{"unions", unions},
	{"weird keys", weirdKeys},
	{"late field", lateField},
	{"random", randomDocs},
	{"tree", trees},
	{"documents in strings", wrapped},
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type obj = map[string]any

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func user(i int) obj {
	return obj{
		"login": fmt.Sprintf("user%d", i), "id": 1000 + i, "url": fmt.Sprintf("https://api.example.com/users/%d", i),
		"type": []string{"User", "Bot"}[i%2], "site_admin": i == 7,
	}
}

func issues(rng *rand.Rand) string {
	list := make([]obj, 100)
	for i := range list {
		labels := []obj{}
		for range rng.IntN(4) {
			labels = append(labels, obj{"id": rng.IntN(9), "name": pick(rng, "bug", "feature"), "description": pick[any](rng, nil, "about")})
		}
		is := obj{
			"id": int64(9007199254740993 + i), "number": 1401 + i, "title": fmt.Sprintf("fix thing %d", i), "user": user(rng.IntN(20)),
			"labels": labels, "state": pick(rng, "open", "closed"), "assignee": pick[any](rng, nil, user(3), user(4)),
			"milestone":  pick[any](rng, nil, obj{"number": 1, "creator": user(3), "tags": []string{"a"}}),
			"created_at": fmt.Sprintf("2024-01-%02dT10:00:00Z", i%28+1), "closed_at": pick[any](rng, nil, "2024-05-01T00:00:00Z"),
			"body": pick[any](rng, nil, strings.Repeat("some words ", 30)), "+1": rng.IntN(3), "api_key": fmt.Sprintf("s3cr3t%d", i),
		}
		if i%3 == 0 {
			is["pull_request"] = obj{"url": "https://example.com/p", "merged_at": nil, "reviews": []obj{{"user": user(i), "ok": true}}}
		}
		list[i] = is
	}
	return marshal(list)
}

func events(rng *rand.Rand) string {
	var b strings.Builder
	for i := range 2000 {
		e := obj{"ts": 1714521600201 + i*100, "type": pick(rng, "view", "click"), "session": obj{"id": fmt.Sprintf("s%d", i), "ua": obj{"os": pick(rng, "mac", "win")}}}
		if i%10 == 0 {
			e["order"] = obj{"items": []obj{{"sku": "A1", "qty": i}}, "total": pick[any](rng, "317", 4.5), "coupon": "X"}
		}
		if i == 1800 {
			e["experiment"] = obj{"name": "x", "path": [][]int{{1}, {2, 3}}}
		}
		b.WriteString(marshal(e) + "\n")
	}
	return b.String()
}

func dataMap(rng *rand.Rand) string {
	users := obj{}
	for i := range 500 {
		u := obj{"name": fmt.Sprintf("n%d", i), "tags": []string{"a", "b"}[:rng.IntN(3)]}
		if i%3 > 0 {
			u["email"] = fmt.Sprintf("u%d@example.com", i)
		}
		users[fmt.Sprintf("U%05X", i)] = u
	}
	small := obj{}
	for i := range 20 {
		small[fmt.Sprintf("key-%d", i)] = i
	}
	return marshal(obj{"users": users, "small": small, "generated": "2024-07-19T04:17:08Z"})
}

func unions(rng *rand.Rand) string {
	list := make([]any, 200)
	for i := range list {
		list[i] = pick[any](rng, 1, "a", nil, true, []any{1, "x"}, obj{"v": pick[any](rng, []int{1}, "s", nil, obj{"k": []int{i}})}, [][]any{{1}, nil})
	}
	optional := make([]obj, 50)
	for i := range optional {
		optional[i] = obj{"a": pick[any](rng, nil, obj{"b": obj{"c": []int{1}, "d": obj{"e": []obj{{"f": 1}}}}})}
		if i%2 == 0 {
			optional[i]["m"] = obj{"b": obj{"c": []int{1}, "d": obj{"e": []obj{{"f": 1}}}}}
		}
	}
	return marshal(obj{"list": list, "optional": optional})
}

func weirdKeys(rng *rand.Rand) string {
	list := make([]obj, 40)
	for i := range list {
		o := obj{}
		for _, k := range oddKeys {
			if rng.IntN(3) > 0 {
				o[k] = pick[any](rng, i, obj{"": i, "x y": []int{i}}, []obj{{"and": 1}})
			}
		}
		list[i] = o
	}
	return marshal(obj{"a b": list})
}

var oddKeys = []string{
	"", " ", "a.b", `a"q`, `\`, "$x", "1", "é", "and", "if", "x\u202ey", "nul\x00", "a?", `\(1)`, "[]", "l\nf", "😀", "\U000e0041", "a|b", "a: b",
}

func lateField(*rand.Rand) string {
	list := make([]obj, 3000)
	for i := range list {
		list[i] = obj{"id": i, "v": float64(i) / 7}
		if i > 2500 {
			list[i]["reason"] = "gdpr"
		}
	}
	return marshal(list)
}

func randomDocs(rng *rand.Rand) string {
	var b strings.Builder
	for range 20 {
		b.WriteString(marshal(randomValue(rng, 5)) + "\n")
	}
	return b.String()
}

func randomValue(rng *rand.Rand, depth int) any {
	switch n := rng.IntN(10); {
	case depth > 0 && n < 4:
		o := obj{}
		for range rng.IntN(5) {
			o[oddKeys[rng.IntN(len(oddKeys))]] = randomValue(rng, depth-1)
		}
		return o
	case depth > 0 && n < 6:
		a := make([]any, rng.IntN(4))
		for i := range a {
			a[i] = randomValue(rng, depth-1)
		}
		return a
	case n < 7:
		return rng.IntN(1000)
	case n < 8:
		return rng.NormFloat64()
	}
	return pick[any](rng, nil, true, false, "", "text", "2024-05-01T10:00:00Z", "https://example.com/1", "12")
}

func logText(rng *rand.Rand, lines int) string {
	var b strings.Builder
	for i := range lines {
		at := fmt.Sprintf("2024-05-01T03:%02d:%02d.%03dZ", i/60%60, i%60, i%1000)
		switch n := rng.IntN(20); {
		case n < 14:
			fmt.Fprintf(&b, "%s INFO  [%s] request done method=POST status=%d dur_ms=%d token=s3cr3t%d\n", at, pick(rng, "http", "pool"), pick(rng, 200, 404), rng.IntN(900), i)
		case n < 19:
			fmt.Fprintf(&b, "%s DEBUG [pool] acquire upstream=srv-%d wait_us=%d\n", at, i%30, rng.IntN(5000))
		default:
			fmt.Fprintf(&b, "%s ERROR [sandbox] \x1b[31mstage failed\x1b[0m stderr=\"exit %d\"\n", at, i)
		}
	}
	return b.String()
}

// repeat is a reader of a text, again and again, up to size bytes, in documents that differ by a number.
type repeat struct {
	make func(i int) string
	size int64
	i    int
	rest []byte
	look func() // called every few megabytes, if set
	seen int64  // bytes since then
}

func (r *repeat) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.size <= 0 {
			return 0, io.EOF
		}
		var b bytes.Buffer
		for b.Len() < 32<<10 {
			b.WriteString(r.make(r.i))
			r.i++
		}
		r.rest = b.Bytes()
		r.size -= int64(b.Len())
		if r.seen += int64(b.Len()); r.look != nil && r.seen > 4<<20 {
			r.look()
			r.seen = 0
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// trees nest in themselves, by an array, by one key and by two.
func trees(rng *rand.Rand) string {
	var list []obj
	for i := range 40 {
		list = append(list, obj{"id": i, "root": folder(rng, 5), "cause": cause(rng, 4), "expr": expression(rng, 5)})
	}
	return marshal(list)
}

func folder(rng *rand.Rand, depth int) obj {
	f := obj{"name": fmt.Sprintf("f%d", rng.IntN(9)), "size": rng.IntN(100)}
	if depth > 0 && rng.IntN(4) > 0 {
		children := []obj{}
		for range rng.IntN(4) {
			children = append(children, folder(rng, depth-1))
		}
		f["children"] = children
	}
	return f
}

func cause(rng *rand.Rand, depth int) obj {
	c := obj{"message": pick(rng, "a", "b"), "code": rng.IntN(5), "cause": nil}
	if depth > 0 && rng.IntN(3) > 0 {
		c["cause"] = cause(rng, depth-1)
	}
	return c
}

func expression(rng *rand.Rand, depth int) obj {
	if depth == 0 || rng.IntN(5) == 0 {
		return obj{"op": "value", "type": "int", "value": rng.IntN(9)}
	}
	return obj{"op": pick(rng, "+", "-"), "type": "int", "left": expression(rng, depth-1), "right": expression(rng, depth-1)}
}

// wrapped has documents in strings, some of which are none.
func wrapped(rng *rand.Rand) string {
	var b strings.Builder
	for i := range 120 {
		e := obj{"id": i, "body": marshal(obj{"user": obj{"id": i, "tags": []string{"x"}}, "items": []obj{{"sku": "a", "n": i}}})}
		e["list"] = pick[any](rng, nil, marshal([]int{i, 2}), "[not json]", 7)
		e["text"] = pick[any](rng, nil, fmt.Sprintf("%s\nOwner: dev%d\n- item\n- other: %d\npassword: hunter\n", strings.Repeat("word ", 20), i, i))
		if i%2 == 0 {
			e["maybe"] = marshal([]obj{{"a": nil}, {"a": 1}})
		}
		b.WriteString(marshal(e) + "\n")
	}
	return b.String()
}
