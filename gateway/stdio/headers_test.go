package stdio

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// behind returns messages, each behind a header.
func behind(header string, messages ...string) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, header+"\r\n\r\n%s", len(m), m)
	}
	return b.String()
}

const plainHeader = "Content-Length: %d"

// unframed returns the messages of an output with headers, a line each.
func unframed(t *testing.T, out []byte) []byte {
	t.Helper()
	var lines []byte
	for len(out) > 0 {
		head, rest, ok := bytes.Cut(out, []byte("\r\n\r\n"))
		n, err := strconv.Atoi(strings.TrimPrefix(string(head), "Content-Length: "))
		if !ok || err != nil || n > len(rest) || !json.Valid(rest[:n]) {
			t.Fatalf("%.300q is no message with a header", out)
		}
		lines = append(append(lines, rest[:n]...), '\n')
		out = rest[n:]
	}
	return lines
}

// serveAll serves an input to its end.
func serveAll(t *testing.T, input string) (out []byte, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		err = Serve(t.Context(), Options{Server: twoTools(), In: strings.NewReader(input), Out: &b})
		out = b.Bytes()
	})
	return out, err
}

// TestHeaders: messages with headers are answered with headers, whatever the headers hold besides.
func TestHeaders(t *testing.T) {
	open, started, _ := strings.Cut(handshake, "\n")
	for name, tt := range map[string]struct{ header, between string }{
		"plain":             {plainHeader, ""},
		"capitals":          {"CONTENT-LENGTH:%d", ""},
		"small letters":     {"content-length:   %d  ", ""},
		"newlines only":     {"Content-Length: %d", ""},
		"type first":        {"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d", ""},
		"type last":         {"Content-Length: %d\r\nContent-Type: application/json; charset=UTF8", ""},
		"a type unreadable": {"Content-Length: %d\r\nContent-Type: ;;", ""},
		"others":            {"Content-Length: %d\r\nX-One: 1\r\nX-One: 2\r\nX_Empty:", ""},
		"leading zeros":     {"Content-Length: 000%d", ""},
		"blank lines":       {plainHeader, "\r\n\n \r\n"},
		"just short enough": {"Content-Length: %d\r\nX: " + strings.Repeat("x", maxHeader-100), ""},
	} {
		t.Run(name, func(t *testing.T) {
			input := behind(tt.header, open) + tt.between + behind(tt.header, started, strings.TrimSpace(echoCall)) + tt.between
			if name == "newlines only" {
				input = strings.ReplaceAll(input, "\r", "")
			}
			out, err := serveAll(t, tt.between+input)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"1 0", "2 0"}, answers(t, unframed(t, out))); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHeadersRefusals: a message that is refused behind a header does not end the session.
func TestHeadersRefusals(t *testing.T) {
	lines := []string{"message on lines", "two on a line", "blank", "longest, CR"} // of which headers make something else
	for name, tt := range refusals {
		if slices.Contains(lines, name) || len(tt.input) > 1<<20 && name != "too long" { // one large message is enough
			continue
		}
		t.Run(name, func(t *testing.T) {
			open, started, _ := strings.Cut(handshake, "\n")
			out, err := serveAll(t, behind(plainHeader, open, started, tt.input, strings.TrimSpace(echoCall)))
			if err != nil {
				t.Error(err)
			}
			want := append([]string{"1 0", "2 0"}, tt.want...)
			slices.Sort(want)
			if diff := cmp.Diff(want, answers(t, unframed(t, out))); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
	out, err := serveAll(t, behind(plainHeader, "", "{\n\"jsonrpc\":\"2.0\",\n\"id\":7,\"method\":\"ping\"}\n", " "))
	if diff := cmp.Diff([]string{"7 0", "null -32700", "null -32700"}, answers(t, unframed(t, out))); diff != "" || err != nil {
		t.Errorf("empty messages, and one of several lines: %v (-want +got):\n%s", err, diff)
	}
}

// brokenHeaders are headers after which the place of the next message is unknown, with the text of the error.
var brokenHeaders = map[string]struct{ header, want string }{
	"negative":            {"Content-Length: -1\r\n\r\n", `"Content-Length: -1" does not give the length`},
	"signed":              {"Content-Length: +5\r\n\r\n", "does not give the length"},
	"NaN":                 {"Content-Length: NaN\r\n\r\n", "does not give the length"},
	"fraction":            {"Content-Length: 5.0\r\n\r\n", "does not give the length"},
	"hexadecimal":         {"Content-Length: 0x5\r\n\r\n", "does not give the length"},
	"two numbers":         {"Content-Length: 5, 5\r\n\r\n", "does not give the length"},
	"empty":               {"Content-Length:\r\n\r\n", "does not give the length"},
	"other digits":        {"Content-Length: \u0665\r\n\r\n", "does not give the length"},
	"huge":                {"Content-Length: 99999999999999999999999999\r\n\r\n", "a message has at most 16 MiB"},
	"more than is read":   {"Content-Length: 1073741825\r\n\r\n", "a message has at most 16 MiB"},
	"twice":               {"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "two lengths"},
	"missing":             {"Content-Type: application/json\r\n\r\n{}", "no Content-Length"},
	"endless line":        {"Content-Length: " + strings.Repeat("1", 1<<20), "longer than 8 KiB"},
	"endless header":      {"Content-Length: 5\r\n" + strings.Repeat("X: y\r\n", 1<<16), "longer than 8 KiB"},
	"no colon":            {"Content-Length 5\r\n\r\n", "no line of a header"},
	"a message":           {"Content-Type: x\r\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r\n\r\n", "no line of a header"},
	"continued":           {"Content-Length: 5\r\n folded: 6\r\n\r\n", "no line of a header"},
	"blank before colon":  {"Content-Length : 5\r\n\r\n", "no line of a header"},
	"wrong UTF-8":         {"Content-Length: 5\r\nX: \xff\xfe\r\n\r\n", "no line of a header"},
	"name in wrong UTF-8": {"Content-\xff: 5\r\n\r\n", "no line of a header"},
	"NUL":                 {"Content-Length\x00: 5\r\n\r\n", "no line of a header"},
	"other characters":    {"Content-Type: application/json; charset=utf-16\r\nContent-Length: 5\r\n\r\n", "messages are in UTF-8"},
	"half a header":       {"Content-Length: 5\r\n", "the input ended within a header"},
	"half a line":         {"Content-Length: 5", "the input ended within a header"},
	"half a message":      {"Content-Length: 50\r\n\r\n{}", "the input ended 48 bytes before the end"},
}

// TestHeadersBroken: a broken header is answered with an error, once, and ends the session with it; calls before it are answered.
func TestHeadersBroken(t *testing.T) {
	for name, tt := range brokenHeaders {
		t.Run(name, func(t *testing.T) {
			for begin, ids := range map[string][]string{"": nil, behind(plainHeader, strings.TrimSpace(echoCall)): {"2 0"}} {
				out, err := serveAll(t, begin+tt.header)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got the error %v, want %q in it", err, tt.want)
				}
				out = unframed(t, out)
				if diff := cmp.Diff(append(ids, "null -32700"), answers(t, out)); diff != "" || !bytes.Contains(out, []byte("parse error: ")) {
					t.Errorf("answers (-want +got):\n%s in %s", diff, out)
				}
			}
		})
	}
}

// TestHeadersDetected: a header begins with text that cannot begin a message on a line.
func TestHeadersDetected(t *testing.T) {
	for input, want := range map[string]bool{
		"": false, "{": false, "c": false, "content": false, "contents": false, " \r\n\t{": false, "hello": false, "\xff": false, "Content_Length: 1": false,
		"Content-": true, "\n cONTENT-x": true, "content-length: 1": true,
	} {
		in := bufio.NewReaderSize(strings.NewReader(input), 16)
		if got := hasHeaders(in); got != want {
			t.Errorf("%q: got %t", input, got)
		}
		if rest, err := io.ReadAll(in); err != nil || !strings.HasSuffix(input, string(rest)) || len(rest) < len(strings.TrimSpace(input)) {
			t.Errorf("%q: %q is left", input, rest)
		}
	}
}

// Whatever comes behind headers, and in whatever pieces, each message is given on or refused, and the input has an end.
func FuzzHeaders(f *testing.F) {
	for _, tt := range brokenHeaders {
		if len(tt.header) < 1<<13 {
			f.Add([]byte(behind(plainHeader, nested(5))+tt.header), uint64(len(tt.header)))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, seed uint64) {
		var out bytes.Buffer
		in := &pieces{in: bytes.NewReader(input), random: rand.New(rand.NewPCG(seed, 0))}
		c := newConn(t.Context(), nil, Options{In: in, Out: &out})
		c.in = bufio.NewReaderSize(in, 16)
		c.framed = true
		var err error
		for n := 0; err == nil; n++ {
			if _, err = c.next(); n > len(input) {
				t.Fatal("it does not end")
			}
		}
		if got := answers(t, unframed(t, out.Bytes())); err != io.EOF && !slices.Contains(got, "null -32700") {
			t.Errorf("%v is not answered, but %q", err, got)
		}
	})
}
