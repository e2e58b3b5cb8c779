package filesystem

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/tool"
	"github.com/mcsh-dev/mcsh/workspace"
)

const (
	maxEdits = 1000
	// maxDiffLines bounds the memory of a diff, which takes about 200 bytes for each line of both texts.
	maxDiffLines = 2_000_000

	maxDiff = 1 << 20 // bytes of a diff; the rest of it is left out
)

const editInput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "The file, relative to the root."},
    "edits": {"type": "array", "minItems": 1, "maxItems": 1000, "description": "All are made, or none.", "items": {
      "type": "object",
      "properties": {
        "oldText": {"type": "string", "description": "Text that occurs in the file exactly once."},
        "newText": {"type": "string", "description": "The text in its place."}
      },
      "required": ["oldText", "newText"],
      "additionalProperties": false
    }},
    "dryRun": {"type": "boolean", "default": false, "description": "Only return the diff; the file stays as it is."}
  },
  "required": ["path", "edits"],
  "additionalProperties": false
}`

const editOutput = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Relative to the root, links resolved."},
    "diff": {"type": "string", "description": "Unified; empty if nothing changes."},
    "changed": {"type": "boolean", "description": "Whether the file has changed; false in a dry run."}
  },
  "required": ["path", "diff", "changed"],
  "additionalProperties": false
}`

type editArgs struct {
	Path   string `json:"path"`
	Edits  []edit `json:"edits"`
	DryRun bool   `json:"dryRun"`
}

type edit struct {
	OldText string `json:"oldText"`
	NewText string `json:"newText"`
}

type edited struct {
	Path    string `json:"path"`
	Diff    string `json:"diff"`
	Changed bool   `json:"changed"`
}

func (s *server) editFile() tool.Tool {
	return tool.Tool{
		Name: "edit_file",
		Description: "Replaces parts of a text file, all or none, and returns a unified diff. Each oldText is looked for in the file " +
			"as it was before the call, and must occur exactly once; line ends of the file are kept.",
		Input:       editInput,
		Output:      editOutput,
		Annotations: tool.Changing(true, false),
		Call:        tool.New(s.edit),
	}
}

func (s *server) edit(ctx context.Context, a editArgs) (*mcp.CallToolResult, error) {
	if len(a.Edits) == 0 || len(a.Edits) > maxEdits {
		return nil, workspace.Errorf(workspace.InvalidArgument, "", "there are %d edits, want 1 to %d", len(a.Edits), maxEdits)
	}
	var out edited
	rel, err := s.history.Change(ctx, a.Path, s.maxBytes, func(old []byte, info fs.FileInfo) ([]byte, error) {
		if info == nil {
			return nil, workspace.Errorf(workspace.NotFound, "make it with create_file", "%q does not exist", a.Path)
		}
		if i := bytes.IndexByte(old, 0); i >= 0 {
			return nil, workspace.Errorf(workspace.InvalidArgument, "only text files can be edited", "%q is a binary file (a NUL byte at offset %d)", a.Path, i)
		}
		data, err := apply(ctx, a.Path, old, a.Edits)
		if err != nil || bytes.Equal(data, old) {
			return nil, err
		}
		out.Diff = unified(a.Path, old, data)
		if out.Changed = !a.DryRun; a.DryRun {
			return nil, nil
		}
		return data, nil
	})
	if err != nil {
		return nil, err
	}
	out.Path = rel
	return withText(out, cmp.Or(out.Diff, "nothing changes\n"))
}

// span is the place of an edit in the old text.
type span struct {
	edit     int // from 1
	from, to int
	text     string
}

// apply returns the text of a file after all edits.
func apply(ctx context.Context, path string, old []byte, edits []edit) ([]byte, error) {
	spans := make([]span, 0, len(edits))
	for i, e := range edits {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s, err := find(path, old, i+1, e)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	size := len(old)
	for _, s := range spans {
		size += len(s.text)
	}
	data := make([]byte, 0, size)
	at := 0
	for i, s := range spans {
		if s.from < at {
			return nil, workspace.Errorf(workspace.InvalidArgument, "join them to one edit", "edits %d and %d overlap", spans[i-1].edit, s.edit)
		}
		data = append(append(data, old[at:s.from]...), s.text...)
		at = s.to
	}
	return append(data, old[at:]...), nil
}

// find looks for the text of an edit. In a file with CRLF line ends, a text with plain newlines means those.
func find(path string, old []byte, n int, e edit) (span, error) {
	if e.OldText == "" {
		return span{}, workspace.Errorf(workspace.InvalidArgument, "give the text to replace", "edit %d: oldText is empty", n)
	}
	text, with := []byte(e.OldText), e.NewText
	at := bytes.Index(old, text)
	if (at < 0 || !strings.Contains(e.OldText, "\n")) && bytes.Contains(old, []byte("\r\n")) && !strings.Contains(e.OldText+e.NewText, "\r") {
		crlf := strings.NewReplacer("\n", "\r\n")
		text, with = []byte(crlf.Replace(e.OldText)), crlf.Replace(e.NewText)
		at = bytes.Index(old, text)
	}
	if at < 0 {
		return span{}, workspace.Errorf(workspace.NotFound, "read the file again: blanks and line ends count", "edit %d: oldText does not occur in %q", n, path)
	}
	if bytes.Contains(old[at+1:], text) {
		return span{}, workspace.Errorf(workspace.InvalidArgument, "add text around it that makes it unique", "edit %d: oldText occurs more than once in %q", n, path)
	}
	return span{n, at, at + len(text), with}, nil
}

// unified returns a diff without the line of its command. In repeated lines the changes may be found near the ends of the part
// that is compared: then a larger part is, so that lines are shown around each.
func unified(path string, old, data []byte) string {
	var text []byte
	for around, complete := diffContext, false; !complete; around *= 32 {
		before, from, to, after := changedPart(old, data, around)
		if n := bytes.Count(from, newline) + bytes.Count(to, newline); n > maxDiffLines {
			if text == nil {
				return fmt.Sprintf("… no diff of %d lines\n", n)
			}
			break
		}
		text = diff.Diff(path, from, path, to)
		_, text, _ = bytes.Cut(text, newline)
		complete = (before == 0 || shownFirst.Match(text)) && (after == 0 || shownLast(text))
		text = shiftHunks(text, before)
	}
	if rest := len(text) - maxDiff; rest > 0 {
		cut := bytes.LastIndexByte(text[:maxDiff], '\n') + 1
		text = fmt.Appendf(text[:cut:cut], "… %d more bytes of this diff\n", len(text)-cut)
	}
	valid, _ := texts.Valid(text)
	return valid
}

// diffContext is how many lines a diff shows around a change.
const diffContext = 3

// shownFirst matches a diff with so many lines before the first change.
var shownFirst = regexp.MustCompile(fmt.Sprintf(`\A--- .*\n\+\+\+ .*\n@@ .*\n(?: .*\n){%d}`, diffContext))

// shownLast reports whether a diff has so many lines after the last change.
func shownLast(text []byte) bool {
	text = bytes.TrimSuffix(text, newline)
	for range diffContext {
		at := bytes.LastIndexByte(text, '\n')
		if !bytes.HasPrefix(text[at+1:], []byte(" ")) {
			return false
		}
		text = text[:at]
	}
	return true
}

var newline = []byte("\n")

// changedPart cuts off the lines at the beginning and the bytes at the end, which it counts, that are further than around lines
// from every change: a diff takes much longer than a comparison.
func changedPart(a, b []byte, around int) (before int, from, to []byte, after int) {
	equal := same(a, b, func(s []byte, from, n int) []byte { return s[from : from+n] })
	start := a[:equal]
	for range around + 1 {
		start = start[:max(0, bytes.LastIndexByte(start, '\n'))]
	}
	if len(start) > 0 {
		start = a[:len(start)+1]
	}
	end := a[len(a)-same(a[equal:], b[equal:], func(s []byte, from, n int) []byte { return s[len(s)-from-n:][:n] }):]
	for range around + 1 {
		_, end, _ = bytes.Cut(end, newline)
	}
	return bytes.Count(start, newline), a[len(start) : len(a)-len(end)], b[len(start) : len(b)-len(end)], len(end)
}

// same returns how many bytes a and b have in common, of which part returns n behind the first ones.
func same(a, b []byte, part func(s []byte, from, n int) []byte) int {
	at, longest := 0, min(len(a), len(b))
	for _, n := range []int{4096, 1} {
		for at+n <= longest && bytes.Equal(part(a, at, n), part(b, at, n)) {
			at += n
		}
	}
	return at
}

var hunk = regexp.MustCompile(`(?m)^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$`)

// shiftHunks adds a number to those of the first lines of hunks.
func shiftHunks(text []byte, by int) []byte {
	if by == 0 {
		return text
	}
	return hunk.ReplaceAllFunc(text, func(head []byte) []byte {
		var n [4]int
		_, _ = fmt.Sscanf(string(head), "@@ -%d,%d +%d,%d @@", &n[0], &n[1], &n[2], &n[3]) // the pattern has matched
		return fmt.Appendf(nil, "@@ -%d,%d +%d,%d @@", n[0]+by, n[1], n[2]+by, n[3])
	})
}
