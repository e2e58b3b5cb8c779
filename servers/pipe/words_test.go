package pipe_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/servers/pipe"
)

// FuzzWords compares the words of accepted lines with those that the shell of this machine gives to a function.
func FuzzWords(f *testing.F) {
	for _, line := range []string{
		`say a b`, `say 'a b' "c d" e\ f`, `say "a\$b\`, "say \"a\\`b\\\\c\\d\\\"e\"", `say a'b'"c"\d`, `say ''`, `say "" a`, "say a\\\nb \"c\\\nd\" 'e\\\nf'",
		`say a # b`, `say a#b '#'c`, "\tsay\ta  b ", `say \~ a~ '~' "~"`, `say \* '*' "*" \? \[`, `say {} {a} a{b a,b {a`, `say $ a$ "$" "a$"`, `say =a a=b --x=~`,
		`say \; \| \& \< \> \( \)`, `say "'" '"' \' \"`, `s\ay a`, `'say' a`, "say é \u00a0 \u2028", `say !a a!`, `say %1 @a :a`, `say -n -- -e`, `say a\`, `say a\ `, `say "\a\n\0"`,
		"say a\nsay b", `say $x`, `say *`, `say a; say b`, `say a > b`, `say {a,b}`, `say ~`, "say `x`", `say $'a'`, "say\v a\fb", "say \x01\x7f",
	} {
		f.Add(line)
	}
	sh, err := exec.LookPath("dash")
	if err != nil {
		f.Skip("there is no dash")
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, ok := pipe.Words(line)
		if !ok || words[0] != "say" {
			return
		}
		dir := t.TempDir()
		for _, name := range []string{"a", "b", ".c"} { // that a pattern could match
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		const script = "say() { for word; do printf '%s\\0' \"$word\"; done; }\n"
		cmd := exec.Command(sh, "-c", script+line)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/nowhere", "HOME=/home/of/nobody", "x=expanded"}
		out, err := cmd.CombinedOutput()
		want := strings.Join(words[1:], "\x00")
		if len(words) > 1 {
			want += "\x00"
		}
		if err != nil || string(out) != want {
			t.Errorf("%q: the shell has %q, %v, want %q", line, out, err, want)
		}
	})
}
