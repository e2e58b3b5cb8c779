package rpc_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

var percents = regexp.MustCompile(`%[0-9A-F]{2}`)

// TestHiding: a secret is hidden in every form in which servers and libraries repeat it: within an address, a string of
// JSON, quotes of Go, a header with base64, whatever stands before and behind it there.
func TestHiding(t *testing.T) {
	for _, secret := range []string{"tok", "s3cr3t-token", "pa ss/w+rd&=?", `quo"te\d`, "<angle>&amp", "grüße-und-küsse", "be\x7fll\x01-token", "user:pass word"} {
		hide := rpc.NewHider([]string{secret, "another one"})
		escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(secret)
		plain, _ := json.Marshal(secret)
		forms := map[string]string{
			"as it is":     "x " + secret + " y",
			"of a query":   "https://h/?k=" + url.QueryEscape(secret) + "&b",
			"of a path":    "https://h/" + url.PathEscape(secret) + "/b",
			"lower case":   "https://h/?k=" + percents.ReplaceAllStringFunc(url.QueryEscape(secret), strings.ToLower),
			"JSON":         `{"k":` + string(plain) + `}`,
			"JSON as such": `{"k":"` + escaped + `"}`,
			"in quotes":    fmt.Sprintf("Get %q: no such host", "https://h/?k="+secret),
		}
		if len(secret) > 8 {
			for before := range 4 {
				for behind := range 3 {
					text := []byte(strings.Repeat("u", before) + secret + strings.Repeat("z", behind))
					forms[fmt.Sprintf("base64 %d %d", before, behind)] = "Basic " + base64.StdEncoding.EncodeToString(text) + " y"
					forms[fmt.Sprintf("base64 of URLs %d %d", before, behind)] = "v=" + base64.RawURLEncoding.EncodeToString(text)
				}
			}
		}
		for name, text := range forms {
			got := hide.Hide(text)
			if !strings.Contains(got, rpc.Hidden) || strings.Contains(got, secret) || len(got) > len(text)-len(secret)/2+len(rpc.Hidden) && len(secret) > 8 {
				t.Errorf("%s %q: %q becomes %q", name, secret, text, got)
			}
		}
	}
	if text := "nothing of the kind: token, secret, dG9r"; rpc.NewHider([]string{"tok3n", "abc"}).Hide(text) != text {
		t.Error("what is no secret is hidden")
	}
}

// each writes every byte of a text in a form.
func each(text, form string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, form, text[i])
	}
	return b.String()
}

// kept is percent-encoding as Python's quote does it: a slash stays.
func kept(text string) string { return strings.ReplaceAll(url.PathEscape(text), "%2F", "/") }

// repr is a text as Python's ascii() writes it.
func repr(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\\' || c == '\'':
			b.WriteString(`\` + string(c))
		case c >= 0x20 && c < 0x7f:
			b.WriteRune(c)
		case c <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	return "'" + b.String() + "'"
}

func inJSON(text string) string {
	b, _ := json.Marshal(text) // of a string
	return string(b)
}

// utf16Escapes are a text as JavaScript's escapes of its units.
func utf16Escapes(text string) string {
	var b strings.Builder
	for _, c := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, `\u%04X`, c)
	}
	return b.String()
}

// broken breaks a text after each n characters.
func broken(text, end string, n int) string {
	var lines []string
	for line := range slices.Chunk([]rune(text), n) {
		lines = append(lines, string(line))
	}
	return strings.Join(lines, end)
}

// encodings are the forms in which a secret must not come back.
var encodings = map[string]func(string) string{
	"as it is":                   func(s string) string { return s },
	"quote with a slash kept":    kept,
	"percent in lower case":      func(s string) string { return strings.ToLower(each(s, "%%%02x")) },
	"percent of all":             func(s string) string { return each(s, "%%%02X") },
	"percent of percent":         func(s string) string { return each(s, "%%25%02X") },
	"percent twice":              func(s string) string { return url.QueryEscape(url.QueryEscape(s)) },
	"JSON":                       inJSON,
	"JSON within JSON":           func(s string) string { return inJSON(inJSON(s)) },
	"JSON within JSON thrice":    func(s string) string { return inJSON(inJSON(inJSON(s))) },
	"a repr":                     repr,
	"a repr within JSON":         func(s string) string { return inJSON(repr(s)) },
	"a repr of a repr":           func(s string) string { return repr(repr(s)) },
	"a repr of bytes":            func(s string) string { return each(s, `\x%02x`) },
	"percent within JSON":        func(s string) string { return inJSON(kept(s)) },
	"JSON within an address":     func(s string) string { return url.QueryEscape(inJSON(s)) },
	"quotes of Go":               func(s string) string { return fmt.Sprintf("%q %+q", s, s) },
	"octal":                      func(s string) string { return each(s, `\%03o`) },
	"units of JavaScript":        utf16Escapes,
	"hex":                        func(s string) string { return hex.EncodeToString([]byte(s)) },
	"hex in upper case":          func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"upper case":                 strings.ToUpper,
	"lines":                      func(s string) string { return broken(s, "\n", 5) },
	"lines of Windows, indented": func(s string) string { return broken(s, "\r\n    ", 5) },
	"lines with a backslash":     func(s string) string { return broken(s, "\\\n", 5) },
	"lines within JSON":          func(s string) string { return inJSON(broken(s, "\n\t", 5)) },
	"percent over lines":         func(s string) string { return broken(each(s, "%%%02X"), "\n", 7) },
	"base64 over lines":          func(s string) string { return broken(base64.StdEncoding.EncodeToString([]byte("u:"+s)), "\n", 8) },
	"base64 within an address":   func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("us:" + s))) },
}

// undone undoes what encodings do, by the libraries' own means, as far as they can be undone without knowing which it is.
func undone(text string) string {
	for range 4 {
		text = strings.NewReplacer("\\\n", "", "\r\n    ", "", "\n\t", "", "\n", "").Replace(text)
		if u, err := url.QueryUnescape(text); err == nil {
			text = u
		}
		var s string
		if json.Unmarshal([]byte(`"`+strings.ReplaceAll(text, `"`, `\"`)+`"`), &s) == nil {
			text = s
		}
	}
	return text
}

// TestHidingEncodings: a secret is found in each encoding, wherever it stands, and what stands around it stays.
func TestHidingEncodings(t *testing.T) {
	for _, secret := range []string{"s3cr3t/token-1", "pa ss/w+rd&=?1", `quo"te\d 'and' ` + "`more`", "grüße/und-küsse", "żółw/中文-😀é", `a%41"b%zzz\n12`, "two\nlines-of-it", "trailing-slash/"} {
		hide := rpc.NewHider([]string{"another one", secret})
		for name, encode := range encodings {
			coded := encode(secret)
			text := "https://h/x?a=%20&k=" + coded + " & more \\u0041 of\nit"
			got := hide.Hide(text)
			if !strings.HasPrefix(got, "https://h/x?a=%20&k=") || !strings.HasSuffix(got, " & more \\u0041 of\nit") || !strings.Contains(got, rpc.Hidden) {
				t.Errorf("%s of %q: %q becomes %q", name, secret, text, got)
			}
			if rest := len(got) - len(text) + len(coded); rest > 4*len(rpc.Hidden)+8 || strings.Contains(undone(got), secret) {
				t.Errorf("%s of %q: %q becomes %q, and too much is left", name, secret, text, got)
			}
		}
	}
}

// TestHidingLeaves: what is no secret stays byte by byte, with its escapes.
func TestHidingLeaves(t *testing.T) {
	hide := rpc.NewHider([]string{"s3cr3t-token", "abcd", "%20%20%20%20", "line-one\nline-two"})
	for _, text := range []string{
		"", "\n", "%", `\`, `\u`, `\ud83d`, `\ud83d\u`, "%4", "\xff\xc2", "ab\ncd, which is short", `C:\new\x4\u12\U1234`, "a    b\n        c", "line-one", `{"a":"\ud83d\ude00 \u0041 %41"}`,
	} {
		if got := hide.Hide(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestHidingCosts: what a text costs does not depend on what it is made of, and some hundred words are affordable.
func TestHidingCosts(t *testing.T) {
	secret := strings.Repeat("a", 500) + "b"
	words := []string{secret, strings.Repeat("%25", 100) + "x", strings.Repeat(`\`, 200) + "n", "aaaaaaaa\naaaaaaac"}
	for n := range 200 {
		words = append(words, fmt.Sprintf("s3cr3t-%d-%s", n, strings.Repeat("a", 40)))
	}
	hide := rpc.NewHider(words)
	for _, piece := range []string{"a", "%25", "%61", `\`, `\\`, `\u0061`, "a\n", "\n ", "\\\n", `\ud83d`, "é", "s3cr3t-", strings.Repeat("a", 499) + "c"} {
		costtest.Run(t, func() { hide.Hide(strings.Repeat(piece, 2*rpc.MaxHidden/len(piece))) })
	}
}

// TestHidingBounded: a text that is too long is cut, and not within a secret.
func TestHidingBounded(t *testing.T) {
	const secret = "s3cr3t-token"
	hide := rpc.NewHider([]string{secret})
	text := strings.Repeat("x", rpc.MaxHidden-5) + secret + strings.Repeat("y", 100)
	if got := hide.Hide(text); len(got) >= rpc.MaxHidden || strings.Contains(got, secret[:4]) || !strings.HasSuffix(got, "x…") {
		t.Errorf("got %d bytes that end with %q", len(got), got[len(got)-20:])
	}
}

// FuzzHiding: a secret in any of the encodings is not to be read in what is left, and a text without a secret stays as it is.
func FuzzHiding(f *testing.F) {
	names := slices.Sorted(maps.Keys(encodings))
	unlikely := rpc.NewHider([]string{"0c7e5b1a/unlikely \"4e0f", "5d6a\nunlikely-as-well"})
	f.Add("s3cr3t/token-1", "before ", " behind", uint8(3))
	f.Add("grüße/und-küsse", `\`, `\u00`, uint8(12))
	f.Add("%41%42%43%44x", "%", "41", uint8(1))
	f.Fuzz(func(t *testing.T, secret, before, behind string, which uint8) {
		text := before + secret + behind
		if got := unlikely.Hide(text); got != text && len(text) < rpc.MaxHidden {
			t.Errorf("%q becomes %q", text, got)
		}
		if utf8.RuneCountInString(strings.Join(strings.Fields(secret), "")) < 8 || len(secret) > 200 || strings.TrimSpace(secret) != secret || !utf8.ValidString(secret) || strings.Contains(secret, "*") {
			return
		}
		name := names[int(which)%len(names)]
		if strings.ContainsAny(secret, `%\`) || strings.Contains(name, "lines") && strings.ContainsFunc(secret, unicode.IsSpace) {
			return // escapes of its own, and a break beside a space of its own, can be read in two ways: see TestHidingEncodings
		}
		hide := rpc.NewHider([]string{secret})
		if got := hide.Hide(text); strings.Contains(got, secret) || !strings.Contains(got, rpc.Hidden) {
			t.Errorf("%q becomes %q", text, got)
		}
		coded := encodings[name](secret)
		if got := hide.Hide(before + " " + coded + " " + behind); !strings.Contains(got, rpc.Hidden) || strings.Contains(got, coded) {
			t.Errorf("%s of %q: %q becomes %q", name, secret, coded, got)
		}
	})
}
