package servertest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A Session is a built-in server with flags, and calls that follow each other. Its text names the directory [ShownDir] and
// the address [ShownURL].
type Session struct {
	About string            `json:"about"` // a few words for the documents
	Flags []string          `json:"flags"` // of mcsh server NAME
	Files map[string]string `json:"files,omitempty"`
	Some  bool              `json:"some,omitempty"` // not every tool is called
	Calls []Call            `json:"calls"`
}

// A Call is one call with its result: the structured one, the text of a single block, or the blocks.
type Call struct {
	Tool   string          `json:"tool"`
	Args   json.RawMessage `json:"args"`
	Result json.RawMessage `json:"result"`
}

// A [Session] has these in place of the working directory of the server, which has the session's files, and of a web server
// that serves them too.
const (
	ShownDir  = "/srv/shop"
	ShownURL  = "https://shop.example"
	shownHost = "shop.example"
	shownTime = "2026-03-01T12:00:00Z" // of what the calls have changed
)

//go:embed calls/*.json
var calls embed.FS

// Sessions returns the sessions of a server. Together its calls show each of its tools.
func Sessions(t testing.TB, server string) []Session {
	t.Helper()
	data, err := calls.ReadFile("calls/" + server + ".json")
	if err != nil {
		t.Fatalf("no calls show the server %s: %v", server, err)
	}
	var sessions []Session
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := in.Decode(&sessions); err != nil {
		t.Fatalf("the calls of %s: %v", server, err)
	}
	return sessions
}

// Write replaces the sessions of a server in a copy of this package's source, a call on each line.
func Write(t testing.TB, source, server string, sessions []Session) {
	t.Helper()
	var b strings.Builder
	separator := "[\n"
	for _, s := range sessions {
		list := s.Calls
		s.Calls = []Call{}
		head := strings.TrimSuffix(encode(t, s), "[]}")
		fmt.Fprint(&b, separator, head, "[\n")
		for i, c := range list {
			c.Result = plain(t, c.Result)
			comma := ","
			if i == len(list)-1 {
				comma = ""
			}
			fmt.Fprintf(&b, "  %s%s\n", encode(t, c), comma)
		}
		b.WriteString("]}")
		separator = ",\n"
	}
	b.WriteString("\n]\n")
	if err := os.WriteFile(filepath.Join(source, "calls", server+".json"), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func encode(t testing.TB, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// plain writes JSON with its members sorted and without escapes that it does not need.
func plain(t testing.TB, text json.RawMessage) json.RawMessage {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(encode(t, v))
}

// A Place is where a session runs.
type Place struct{ Dir, URL string }

// Real replaces what stands for the place.
func (p Place) Real(text string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(p.URL, "http://"), ":")
	return strings.NewReplacer(ShownURL, p.URL, shownHost, host, ShownDir, p.Dir).Replace(text)
}

var (
	stamp  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	varies = regexp.MustCompile(`(\\?"(?:execution_time_ms|record_id)\\?": ?)[0-9.e+-]+`)
)

// Shown replaces the place by what stands for it, times of the last hour by one, and other numbers that no two calls share.
func (p Place) Shown(text string) string {
	text = strings.NewReplacer(p.URL, ShownURL, p.Dir, ShownDir).Replace(text)
	text = varies.ReplaceAllString(text, "${1}1")
	return stamp.ReplaceAllStringFunc(text, func(found string) string {
		if at, err := time.Parse(time.RFC3339, found); err == nil && time.Since(at).Abs() < time.Hour {
			return shownTime
		}
		return found
	})
}

// Dir makes a directory with the files of the session, all of the same age.
func (s Session) Dir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, filepath.Base(ShownDir))
	for name, text := range s.Files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err == nil {
			err = os.Chtimes(path, fileTime, fileTime)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fileTime is the age of the files.
var fileTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
