package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/upstream"
)

const askForMore = "Names only above: ask again with server (one or several) or query (words) to see parameters and results.\n"

// section is a server in an overview.
type section struct {
	brief string // with a line per tool
	names string // with its names on one line
	full  bool   // it is shown in brief
}

// overview writes all tools in brief where they fit; else the names of all, and in brief the smallest servers while they
// fit.
func (l *toolList) overview() string {
	sections := make([]section, len(l.listings))
	room, unknown := l.most-utf8.RuneCountInString(unknownShapes), false
	size := 0
	for i := range l.listings {
		sections[i], unknown = newSection(&l.listings[i], unknown)
		size += utf8.RuneCountInString(sections[i].brief)
	}
	if size <= room {
		return l.joined(sections, true, unknown)
	}
	room -= utf8.RuneCountInString(askForMore)
	size = 0
	for i := range sections {
		size += utf8.RuneCountInString(sections[i].names)
	}
	if size > room {
		l.shortenNames(sections, room)
		return l.joined(sections, false, false)
	}
	order := make([]*section, len(sections))
	for i := range sections {
		order[i] = &sections[i]
	}
	slices.SortStableFunc(order, func(a, b *section) int { return cmp.Compare(len(a.brief), len(b.brief)) })
	for _, s := range order {
		more := utf8.RuneCountInString(s.brief) - utf8.RuneCountInString(s.names)
		if size+more > room {
			break
		}
		size += more
		s.full = true
	}
	return l.joined(sections, false, unknown)
}

// newSection writes one server both ways.
func newSection(l *upstream.Listing, unknown bool) (section, bool) {
	var brief, names strings.Builder
	for i := range l.Tools {
		t := listedTool{l, &l.Tools[i]}
		brief.WriteString(briefForm(t, false))
		names.WriteString(nameForm(t, false))
		unknown = unknown || !t.tool.Result.Known()
	}
	head := serverHead(l)
	if len(l.Tools) == 0 {
		return section{brief: head, names: head}, unknown
	}
	return section{brief: head + brief.String(), names: head + strings.TrimRight(names.String(), " ") + "\n"}, unknown
}

// shortenNames gives every server its part of the room; what is left out is counted.
func (l *toolList) shortenNames(sections []section, room int) {
	for i := range sections {
		part := max(room/(len(sections)-i), 0)
		s := &sections[i]
		if n := len(l.listings[i].Tools); utf8.RuneCountInString(s.names) > part {
			more := fmt.Sprintf(" … %d tools\n", n)
			keep := prefix(s.names, max(0, part-utf8.RuneCountInString(more)))
			if at := strings.LastIndexByte(keep, ' '); at > 0 && strings.Contains(keep, "\n") {
				keep = keep[:at]
			}
			s.names = prefix(strings.TrimRight(keep, "\n")+more, part)
		}
		room -= utf8.RuneCountInString(s.names)
	}
}

func (l *toolList) joined(sections []section, all, unknown bool) string {
	var b strings.Builder
	for _, s := range sections {
		if all || s.full {
			b.WriteString(s.brief)
		} else {
			b.WriteString(s.names)
		}
	}
	if !all {
		b.WriteString(askForMore)
	}
	if unknown {
		b.WriteString(unknownShapes)
	}
	return prefix(b.String(), l.most)
}
