package clients

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// tomlEditor edits TOML: an entry is a table of its own, at the end of the file.
type tomlEditor struct{}

func (t tomlEditor) put(old []byte, key, name string, entry []member, own []string, there bool) ([]byte, error) {
	block := "[" + key + "." + name + "]\n" // such a name needs no quotes
	for _, m := range entry {
		block += m.name + " = " + m.value + "\n"
	}
	if !there {
		return t.add(old, block), nil
	}
	start, end := t.block(old, key, name)
	for line := range bytes.Lines(old[start:end]) {
		name, _, _ := bytes.Cut(line, []byte("="))
		name = bytes.TrimSpace(name)
		if own != nil && len(name) > 0 && name[0] != '[' && !slices.Contains(own, string(name)) {
			return nil, fmt.Errorf("%w: the entry has other members than were written there, such as %s", ErrForm, name)
		}
	}
	return slices.Concat(old[:start], []byte(block), old[end:]), nil
}

func (tomlEditor) add(old []byte, block string) []byte {
	text := string(old)
	if strings.Contains(text, "\r\n") {
		block = strings.ReplaceAll(block, "\n", "\r\n")
	}
	switch {
	case isBlank(old):
		text = ""
	case strings.HasSuffix(text, "\n"):
		text += "\n"
	default:
		text += "\n\n"
	}
	return []byte(text + block)
}

func (t tomlEditor) adds(data, backup []byte, key, name string) bool {
	start, end := t.block(data, key, name)
	if from, to := t.block(backup, key, name); to > 0 {
		return end > 0 && bytes.Equal(slices.Concat(backup[:from], data[start:end], backup[to:]), data)
	}
	return bytes.Equal(t.add(backup, strings.ReplaceAll(string(data[start:end]), "\r\n", "\n")), data)
}

func (t tomlEditor) drop(data []byte, key, name string, _ bool) ([]byte, error) {
	start, end := t.block(data, key, name)
	before := data[:start]
	for _, blank := range []string{"\r\n\r\n", "\n\n"} {
		if bytes.HasSuffix(before, []byte(blank)) {
			before = before[:len(before)-len(blank)/2]
			break
		}
	}
	return slices.Concat(before, data[end:]), nil
}

// header matches a line that begins a table.
var header = lazy.Regexp(`^\s*\[+([^\]]*)\]`)

// block is the part of a file with the table of an entry and those below it, without the comments before the next table.
// It is empty if none is found. A line in a multi-line text may look like a header: the comparison of the file before
// and after the edit finds that.
func (tomlEditor) block(data []byte, key, name string) (start, end int) {
	offset, inside := 0, false
	for line := range bytes.Lines(data) {
		if m := header().FindSubmatch(line); m != nil {
			path := strings.NewReplacer(" ", "", "\t", "", `"`, "", "'", "").Replace(string(m[1]))
			ours := path == key+"."+name || strings.HasPrefix(path, key+"."+name+".")
			if ours && !inside && end == 0 {
				start = offset
			}
			if inside && !ours {
				return start, end
			}
			inside = ours
		}
		offset += len(line)
		if text := bytes.TrimSpace(line); inside && len(text) > 0 && text[0] != '#' {
			end = offset
		}
	}
	return start, end
}
