package toollist

import (
	"fmt"
	"strings"
	"testing"
)

// TestReadPage: what pages have, of which at most two elements are wanted.
func TestReadPage(t *testing.T) {
	for page, want := range map[string]string{
		`{"tools":[1, {"a":2}],"nextCursor":"x","ttlMs":60000}`: `[1 {"a":2}] "x" 1m0s <nil>`,
		`{"tools":[1,2,3,4],"nextCursor":"x"}`:                  `[1 2] "" 0s <nil>`,
		`{"tools":null,"nextCursor":null,"ttlMs":"soon"}`:       `[] "" 0s <nil>`,
		`{"other":[1],"nextCursor":"x"}`:                        `[] "x" 0s <nil>`,
		`null`:                                                  `[] "" 0s <nil>`,
		`{"tools":{}}`:                                          `[] "" 0s it is not a list`,
		`{"tools":[1],"nextCursor":5}`:                          `[] "" 0s it is not a list`,
		`[1]`:                                                   `[] "" 0s it is not a list`,
		`{"tools":[1],"nextCursor":"x"`:                         `[] "" 0s it is not a list`,
	} {
		var got []string
		next, ttl, err := ReadPage([]byte(page), "tools", func(one []byte) bool {
			if len(got) == 2 {
				return false
			}
			got = append(got, string(one))
			return true
		})
		if said := fmt.Sprintf("[%s] %q %v %v", strings.Join(got, " "), next, ttl, err); said != want {
			t.Errorf("%s: got %s, want %s", page, said, want)
		}
	}
}

// FuzzReadPage: no element comes after the last wanted one, and the time is within its bounds.
func FuzzReadPage(f *testing.F) {
	f.Add([]byte(`{"tools":[{"name":"a"},1],"nextCursor":"x","ttlMs":1e999}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		n := 0
		_, ttl, _ := ReadPage(raw, "tools", func([]byte) bool { n++; return n < 3 })
		if n > 3 || ttl != 0 && (ttl < minTTL || ttl > maxTTL) {
			t.Errorf("%q: %d elements, %v", raw, n, ttl)
		}
	})
}
