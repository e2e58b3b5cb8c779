package gateway

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// listed returns head and entries within n characters. A last line counts the entries that do not fit; noun names one.
func listed(head string, entries []string, n int, noun string) string {
	all := head + strings.Join(entries, "")
	if utf8.RuneCountInString(all) <= n {
		return all
	}
	left := n - utf8.RuneCountInString(head+leftOut(len(entries), noun))
	var b strings.Builder
	b.WriteString(head)
	for i, e := range entries {
		size := utf8.RuneCountInString(e)
		if size > left && left >= 2*smallestPart { // show its beginning
			b.WriteString(shorten(e, left))
			i, size = i+1, left+1
		}
		if size > left {
			if i < len(entries) {
				b.WriteString(leftOut(len(entries)-i, noun))
			}
			break
		}
		b.WriteString(e)
		left -= size
	}
	return prefix(b.String(), n)
}

// leftOut counts the things that a reply does not show.
func leftOut(n int, noun string) string {
	return fmt.Sprintf("and %s that %s not fit in the reply (max_output)\n", texts.Count(n, "more "+noun), choose(n == 1, "does", "do"))
}

const (
	smallestPart = 100 // a shorter part of a text is not worth showing, in characters
	leftOutRoom  = 200 // characters of leftOut at most
)

// share fits texts into n characters together: it shortens each text that is longer than its part. It returns nil for texts
// with too few characters left, and counts them.
func share(texts []string, n int, shorten func(text string, n int) (string, error)) (kept []*string, out int, err error) {
	total := 0
	for _, text := range texts {
		total += utf8.RuneCountInString(text)
	}
	left := n
	kept = make([]*string, len(texts))
	for i, text := range texts {
		part := min(left, max(left/(len(texts)-i), 5*smallestPart))
		if total <= n {
			part = left
		}
		switch {
		case utf8.RuneCountInString(text) <= part:
		case part < smallestPart:
			out++
			continue
		default:
			if text, err = shorten(text, part); err != nil {
				return nil, 0, err
			}
		}
		kept[i] = &text
		left -= utf8.RuneCountInString(text)
	}
	return kept, out, nil
}

// shorten cuts text to n characters and ends it with a sentence about the rest.
func shorten(text string, n int) string {
	total := utf8.RuneCountInString(text)
	if total <= n {
		return text
	}
	note := func(rest int) string {
		return fmt.Sprintf(" ... and %d more characters that do not fit in the reply (max_output)\n", rest)
	}
	keep := max(0, n-utf8.RuneCountInString(note(total)))
	return prefix(prefix(text, keep)+note(total-keep), n)
}

// prefix returns the first n characters of text.
func prefix(text string, n int) string {
	for at := range text {
		if n <= 0 {
			return text[:at]
		}
		n--
	}
	return text
}

// fence begins each line that quotes a tool, a server, a command or data, so that no reader takes it for the gateway's.
const fence = "  | "

// lineEnds are the characters that some readers take for the end of a line.
const lineEnds = "\n\v\f\r\u0085\u2028\u2029"

// Fenced puts each line of a foreign text behind the fence.
func Fenced(text string) string { return fence + fencedRest(text) }

// fencedRest fences all lines but the first, which follows words of ours.
func fencedRest(text string) string {
	lines := strings.Map(func(c rune) rune {
		if strings.ContainsRune(lineEnds, c) {
			return '\n'
		}
		return c
	}, strings.ReplaceAll(text, "\r\n", "\n"))
	return strings.ReplaceAll(lines, "\n", "\n"+fence) + "\n"
}
