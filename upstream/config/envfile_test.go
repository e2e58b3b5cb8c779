package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnv(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[string]string
		err  string
	}{
		{"", map[string]string{}, ""},
		{"A=1\n# no\n\n B = two words  # why\nexport C=3\r\n", map[string]string{"A": "1", "B": "two words", "C": "3"}, ""},
		{`A='$x \n#'` + "\n" + `B="a\nb\"c" # more`, map[string]string{"A": `$x \n#`, "B": "a\nb\"c"}, ""},
		{"A=\nB=a=b#c\nB=2", map[string]string{"A": "", "B": "2"}, ""},
		{"KEY=\"-----BEGIN\nabc\n-----END\"\nB=1", map[string]string{"KEY": "-----BEGIN\nabc\n-----END", "B": "1"}, ""},
		{"A=1\nplant3d", nil, ".env:2: want a line NAME=value"},
		{"A B=plant3d", nil, ".env:1: want a line NAME=value"},
		{"A=\"plant3d", nil, ".env:1: A: the quote is not closed"},
		{"A='x' plant3d", nil, ".env:1: A: there is more after the closing quote"},
		{"A=x\x00", nil, ".env:1: A: a variable cannot hold a NUL"},
	} {
		got, err := parseEnv(".env", []byte(c.text))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		if err == nil && c.err != "" || err != nil && (err.Error() != c.err || strings.Contains(err.Error(), "plant3d")) {
			t.Errorf("%q: got the error %v, want %q", c.text, err, c.err)
		}
	}
}

func FuzzParseEnv(f *testing.F) {
	f.Add("A=1\nB=\"x\\\"\ny\" # z\nexport C='q'\n")
	f.Add("A=\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		env, err := parseEnv(".env", []byte(text))
		for name, value := range env {
			if name == "" || strings.ContainsAny(name, "=\x00\n") || strings.ContainsRune(value, 0) {
				t.Errorf("got %q=%q", name, value)
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), ".env:") {
			t.Errorf("an error without a place: %v", err)
		}
	})
}
