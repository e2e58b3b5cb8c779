package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/stages"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestResults runs the rules over results that real servers have sent, with their images shortened, and over those of
// our own making. The golden files say what each becomes.
func TestResults(t *testing.T) {
	for _, name := range []string{"recorded_results", "own_results"} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var cases []struct {
				Name, Why string
				Wrapped   bool
				Result    json.RawMessage
			}
			if err := json.Unmarshal(b, &cases); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, c := range cases {
				res, err := Of(c.Result, c.Wrapped)
				fmt.Fprintf(&got, "-- %s: %s --\n", c.Name, c.Why)
				var e *stages.Error
				var started Started
				switch {
				case errors.As(err, &started):
					fmt.Fprintf(&got, "task %s, %s, every %s\n", started.Task.ID, started.Task.Status, started.Task.interval)
				case errors.As(err, &e):
					fmt.Fprintf(&got, "error %s: %s\nhint: %s\n", e.Code, e.Msg, e.Hint)
				case err != nil:
					t.Errorf("%s: %v is no *stages.Error", c.Name, err)
				default:
					fmt.Fprintf(&got, "%s\n(%d bytes%s)\n", res.Data, len(res.Data), traits(res))
				}
				for _, b := range res.Blocks {
					fmt.Fprintf(&got, "block %s\n", b)
				}
			}
			golden(t, filepath.Join("testdata", name+".golden"), got.String())
		})
	}
}

// traits says what is known of a result beside its bytes.
func traits(res stages.Result) string {
	text := ", text"
	switch {
	case res.None:
		text = ", none"
	case res.Kind == stages.Values:
		text = ", values"
	}
	if len(res.Spans) > 0 {
		text += fmt.Sprintf(", blocks %v", res.Spans)
	}
	return text
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":"x"}}`), true)
	f.Add([]byte(`{"isError":true,"content":[{"type":"text","text":"{\"error\":{\"error\":{}}}"}]}`), false)
	f.Add([]byte(`{"inputRequests":{"a":null}}`), false)
	f.Fuzz(func(t *testing.T, raw []byte, wrapped bool) {
		res, err := Of(bytes.Clone(raw), wrapped)
		var e *stages.Error
		if err != nil && !errors.As(err, new(Started)) && (!errors.As(err, &e) || e.Msg == "") {
			t.Errorf("error %v has no words", err)
		}
		if len(res.Spans) <= 1 && res.Kind == stages.Values && !json.Valid(res.Data) {
			t.Errorf("%q is not JSON", res.Data)
		}
		at := int64(0)
		for _, s := range res.Spans {
			if s.From < at || s.To < s.From || s.To > int64(len(res.Data)) {
				t.Errorf("%q: the blocks are %v", res.Data, res.Spans)
			}
			at = s.To
		}
	})
}

// TestNullResult: a result that is null is no empty result.
func TestNullResult(t *testing.T) {
	if res, err := Of(json.RawMessage(" null "), false); err == nil {
		t.Errorf("got %q, want an error", res.Data)
	}
}
