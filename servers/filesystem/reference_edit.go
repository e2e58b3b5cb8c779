package filesystem

import (
	"bytes"
	"context"
	"io/fs"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/workspace"
)

// edit makes the edits one after another, and returns a diff in a fence.
func (r *reference) edit(ctx context.Context, a editArgs) (*mcp.CallToolResult, error) {
	t, err := r.find(a.Path)
	if err != nil {
		return nil, err
	}
	if len(a.Edits) > maxEdits {
		return nil, workspace.Errorf(workspace.InvalidArgument, "", "there are %d edits, at most %d are made", len(a.Edits), maxEdits)
	}
	var diff string
	_, err = t.history.Change(ctx, t.rel, r.maxBytes, func(old []byte, info fs.FileInfo) ([]byte, error) {
		if info == nil {
			return nil, workspace.Errorf(workspace.NotFound, "", "%q does not exist", a.Path)
		}
		n := bytes.Count(old, []byte("\r\n"))
		crlf := n > 0 && n == bytes.Count(old, []byte("\n"))
		plain := unixLines
		if n > 0 && !crlf { // of both kinds, which stay
			plain = func(s string) string { return s }
		}
		before := plain(string(old))
		text := before
		for i, e := range a.Edits {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			var ok bool
			if text, ok = replaceOnce(text, plain(e.OldText), plain(e.NewText)); !ok {
				return nil, workspace.Errorf(workspace.NotFound, "read the file again", "could not find exact match for edit %d:\n%s", i+1, e.OldText)
			}
		}
		diff = unified(t.full(), []byte(before), []byte(text))
		if a.DryRun || text == before {
			return nil, nil
		}
		if crlf {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		return []byte(text), nil
	})
	if err != nil {
		return nil, err
	}
	fence := "```"
	for strings.Contains(diff, fence) {
		fence += "`"
	}
	return content(fence + "diff\n" + diff + fence + "\n\n")
}

func unixLines(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// replaceOnce replaces the first occurrence of old, or else the first lines that are equal to it but for white space at
// their ends; these keep the indentation of the file.
func replaceOnce(text, old, with string) (string, bool) {
	if before, after, ok := strings.Cut(text, old); ok {
		return before + with + after, true
	}
	lines, olds := strings.Split(text, "\n"), strings.Split(old, "\n")
	for at := 0; at+len(olds) <= len(lines); at++ {
		if !sameLines(lines[at:at+len(olds)], olds) {
			continue
		}
		indent := indentOf(lines[at])
		news := strings.Split(with, "\n")
		for i, line := range news {
			switch {
			case i == 0:
				news[i] = indent + strings.TrimLeft(line, " \t")
			case i < len(olds) && indentOf(olds[i]) != "" && indentOf(line) != "":
				deeper := max(0, len(indentOf(line))-len(indentOf(olds[i])))
				news[i] = indent + strings.Repeat(" ", deeper) + strings.TrimLeft(line, " \t")
			}
		}
		rest := append(news, lines[at+len(olds):]...)
		return strings.Join(append(lines[:at:at], rest...), "\n"), true
	}
	return text, false
}

func sameLines(a, b []string) bool {
	for i := range b {
		if strings.TrimSpace(a[i]) != strings.TrimSpace(b[i]) {
			return false
		}
	}
	return true
}

func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// anyFile permits every write.
func anyFile(fs.FileInfo) error { return nil }
