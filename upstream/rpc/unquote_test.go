package rpc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzUnquote compares the decoding in place with the standard one.
func FuzzUnquote(f *testing.F) {
	many := strings.Repeat(`\n`, 9)
	for _, seed := range []string{
		`"a\nb\u00e9\ud83d\ude00\ud800x\/\""`, `""`, `"\u000a"`, "\"\xff\"", `"` + many + `words without an escape\"é\\u0020"`, `"` + many + `1234567\u00fc12345678"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		var want string
		if len(quoted) == 0 || quoted[0] != '"' || json.Unmarshal(quoted, &want) != nil {
			return
		}
		if got := Unquote(bytes.TrimSpace(bytes.Clone(quoted))); string(got) != want {
			t.Errorf("%q: got %q, want %q", quoted, got, want)
		}
	})
}

// TestSkipString moves what ends a string, or may not be in it, over all places in a string.
func TestSkipString(t *testing.T) {
	for c := range 256 {
		for length := range 20 {
			for at := range length {
				b := []byte(strings.Repeat(`a\"\n\\b~`+"\xff", 4)[:length])
				b[at] = byte(c)
				for n := range len(b) { // where the string begins
					text := append(append([]byte(`"`), b[n:]...), '"')
					want := -1 // after the first quote that is not escaped
					for i := 1; i < len(text); i++ {
						if text[i] == '\\' {
							i++
						} else if text[i] == '"' {
							want = i + 1
							break
						}
					}
					if got := skipString(text, 0); got != want {
						t.Fatalf("%q ends at %d, want %d", text, got, want)
					}
				}
			}
		}
	}
}

// BenchmarkStrings looks through JSON lines that are quoted, as a tool sends them, and through plain text.
func BenchmarkStrings(b *testing.B) {
	for name, line := range map[string]string{
		"lines": `{"id":123,"level":"info","user":"user12","ms":91,"path":"/api/v1/items/7"}` + "\n",
		"prose": "What is said here is said without any quotes, and now and then there is an end of a line.\n",
	} {
		text, err := json.Marshal(strings.Repeat(line, 10_000))
		if err != nil {
			b.Fatal(err)
		}
		b.Run("skip/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				skipString(text, 0)
			}
		})
		b.Run("unquote/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			copied := make([]byte, len(text))
			for b.Loop() {
				copy(copied, text)
				Unquote(copied)
			}
		})
		b.Run("json.Valid/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				json.Valid(text)
			}
		})
	}
}
