package preview_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcsh-dev/mcsh/preview"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata")

func readGolden(t *testing.T, file string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func checkGolden(t *testing.T, file string) {
	archive := readGolden(t, file)
	var err error
	var opts preview.Options
	var input, want string
	cut := false
	for _, f := range archive.Files {
		switch f.Name {
		case "options":
			for _, word := range strings.Fields(string(f.Data)) {
				name, value, _ := strings.Cut(word, "=")
				switch name {
				case "chars":
					opts.Chars, err = strconv.Atoi(value)
				case "window":
					opts.Window = true
				case "cut":
					cut = true
				}
			}
		case "input":
			input = string(f.Data)
		case "input.go":
			input, err = expand(strings.TrimSpace(string(f.Data)))
		case "want":
			want = string(f.Data)
		}
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	var r io.Reader = strings.NewReader(input)
	if cut {
		r = io.MultiReader(r, iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	res, err := preview.Preview(context.Background(), r, opts)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s; %d bytes, verbatim %t, partial %t\n%s", res.Summary, res.Bytes, res.Verbatim, res.Partial, res.Text)
	if !strings.HasSuffix(got, "\n") {
		got += "(no newline)\n"
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("result differs (-want +got), -update accepts it\n%s", cmp.Diff(want, got))
	}
	for i := range archive.Files {
		if archive.Files[i].Name == "want" {
			archive.Files[i].Data = []byte(got)
		}
	}
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// expand reads lines of a number of times and a quoted string, %d in which is the number of the time.
func expand(source string) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(source) {
		times, quoted, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(times)
		if err != nil {
			return "", err
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			return "", fmt.Errorf("%s: %w", quoted, err)
		}
		for i := range n {
			b.WriteString(strings.ReplaceAll(text, "%d", strconv.Itoa(i)))
		}
	}
	return b.String(), nil
}

// check previews data and tests what must hold for any data and any budget.
func check(t *testing.T, data []byte, opts preview.Options) preview.Result {
	t.Helper()
	res, err := preview.Preview(context.Background(), bytes.NewReader(data), opts)
	if err != nil {
		t.Fatalf("error %v for %.200q", err, data)
	}
	if n := utf8.RuneCountInString(res.Text); n > max(opts.Chars, 0) && opts.Chars != 0 {
		t.Fatalf("%d characters in a budget of %d for %.200q\n%s", n, opts.Chars, data, res.Text)
	}
	if !utf8.ValidString(res.Text) {
		t.Fatalf("not valid UTF-8 for %.200q: %q", data, res.Text)
	}
	if res.Bytes != int64(len(data)) {
		t.Fatalf("got %d bytes, want %d", res.Bytes, len(data))
	}
	for _, r := range res.Text {
		if !res.Verbatim && r != '\n' && r != utf8.RuneError && !unicode.IsPrint(r) {
			t.Fatalf("character %U in the preview of %.200q\n%q", r, data, res.Text)
		}
	}
	if res.Verbatim && strings.TrimSuffix(res.Text, "\n") != strings.TrimSuffix(string(data), "\n") {
		t.Fatalf("verbatim text differs: got %q, want %q", res.Text, data)
	}
	if res.Summary == "" || strings.ContainsAny(res.Summary, "\n\x1b") {
		t.Fatalf("summary %q", res.Summary)
	}
	return res
}

func samples() map[string]string {
	rng := rand.New(rand.NewPCG(3, 3))
	all := map[string]string{
		"log":    logText(rng, 500),
		"mixed":  strings.Repeat("{\"a\":1}\nplain line\n", 100),
		"broken": `{"items":[` + strings.Repeat(`{"id":1,"name":"x"},`, 300) + `{"id":2,"na`,
		"deep":   strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
		"prose":  strings.Repeat("Some words of a text, and more of them.\n\nAnother paragraph\x1b[31m here.\n", 80),
		"line":   strings.Repeat("long ", 3000),
		"csv":    "id,name,note\n" + strings.Repeat("1,x,\"a, \"\"b\"\"\nc\"\n2,y,\n", 300),
		"tsv":    strings.Repeat("1\tx y\t2024-01-01\n", 300),
		"binary": "\x1f\x8b" + strings.Repeat("\x00\xff", 5000),
		"string": marshal(strings.Repeat("é", 9000)),
	}
	for _, set := range dataSets {
		all[set.name] = set.make(rng)
	}
	return all
}

func FuzzPreview(f *testing.F) {
	for _, data := range samples() {
		f.Add([]byte(data[:min(len(data), 3000)]), 700, true)
		f.Add([]byte(data[:min(len(data), 600)]), 90, false)
	}
	for _, seed := range []string{"", " ", "\ufeff{}", "\x1e{}\n\x1e[]", "NaN", "{'a':1}", "a=1 b=2\na=2 b=3", "\xff\xfe", "\u202e", "[1] x\n[2] y"} {
		f.Add([]byte(seed), 100, false)
		f.Add([]byte(strings.Repeat(seed, 500)), 100, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, chars int, window bool) {
		opts := preview.Options{Chars: chars % 4001, Window: window}
		first := check(t, data, opts)
		slow, err := preview.Preview(context.Background(), iotest.OneByteReader(bytes.NewReader(data)), opts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, slow); diff != "" {
			t.Fatalf("one-byte reads differ\n%s", diff)
		}
	})
}

func TestErrorsOfReaderAndContext(t *testing.T) {
	broken := errors.New("connection lost")
	for _, data := range []string{"", `{"a":`, strings.Repeat(`{"a":1}`+"\n", 30_000), strings.Repeat("text line\n", 30_000), "\x1f\x8b" + strings.Repeat("x", 200_000)} {
		_, err := preview.Preview(context.Background(), io.MultiReader(strings.NewReader(data), iotest.ErrReader(broken)), preview.Options{})
		if !errors.Is(err, broken) {
			t.Errorf("%.20q: got %v, want the reader's error", data, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	endless := &repeat{make: func(i int) string {
		if i == 100_000 {
			cancel()
		}
		return fmt.Sprintf(`{"id":%d}`+"\n", i)
	}, size: 1 << 40}
	if _, err := preview.Preview(ctx, endless, preview.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v, want %v", err, context.Canceled)
	}
}

func TestSecretsAreMasked(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, `{"id":%d,"api_key":"hunter%d","auth":{"Authorization":"Bearer hunter"},"secrets":{"a":["hunter"],"pin":77777},"next":{"x-token-id":"hunter"}}`+"\n", i, i)
	}
	var inside strings.Builder
	for i := range 100 {
		fmt.Fprintf(&inside, `{"a":"https://example.com/?access_token=hunter&b=%d","b":"password: hunter","c":"x%d api_key=hunter%d","d":"%s token=hunter"}`+"\n", i, i, i, strings.Repeat("words ", i%20))
	}
	folded := `{"keys":{`
	for i := range 400 {
		folded += fmt.Sprintf(`"k%d":"v","token%d":"hunter",`, i, i)
	}
	folded += `"z":"z"}}`
	text := strings.Repeat("login ok password=hunter user=a\nheader Authorization: Bearer hunter\nsaid \"secret\": \"hunter 2\" ok\n", 100)
	for _, data := range []string{b.String(), inside.String(), folded, text, text + "last line without pattern api-key: hunter"} {
		for _, chars := range []int{300, 1000, 20_000} {
			res := check(t, []byte(data), preview.Options{Chars: chars, Window: true})
			if strings.Contains(res.Text, "hunter") || strings.Contains(res.Text, "77777") {
				t.Errorf("a secret is shown\n%s", res.Text)
			}
		}
	}
}

func TestCountsOfTokensAreNoSecrets(t *testing.T) {
	data := strings.Repeat(`{"usage":{"input_tokens":812,"maxTokens":99,"access_tokens":77}}`+"\n", 100)
	res := check(t, []byte(data), preview.Options{Chars: 1000})
	for text, want := range map[string]bool{"812": true, "99": true, "77": false} {
		if got := strings.Contains(res.Text, text); got != want {
			t.Errorf("%s is shown: got %t, want %t\n%s", text, got, want, res.Text)
		}
	}
}

func TestZeroOptions(t *testing.T) {
	data := issues(rand.New(rand.NewPCG(1, 1)))
	for _, tt := range []struct {
		opts preview.Options
		want int
	}{
		{preview.Options{}, 3000},
		{preview.Options{Window: true}, 1200},
		{preview.Options{Chars: -1}, 0},
	} {
		res, err := preview.Preview(context.Background(), strings.NewReader(data), tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(res.Text); n > tt.want || n < tt.want/2 {
			t.Errorf("%+v: got %d characters, want at most %d and not much less", tt.opts, n, tt.want)
		}
	}
}
