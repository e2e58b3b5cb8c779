package preview

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxLine   = 64 << 10 // bytes of a line that are looked at
	headLines = 200      // lines kept from the beginning
	tailLines = 50       // lines kept from the end
	keptLine  = 1000     // bytes kept of each
	shortLine = 20       // characters below which a line says nothing
	minWidth  = 200      // characters of a line that are always shown, if there is room
)

// textReading is what one pass over lines of text found.
type textReading struct {
	lines, blank int64
	longest      int64 // bytes
	invalid      int64 // lines that are not UTF-8
	head         []string
	tail         []string // a ring, the next line goes to lines modulo its size
	patterns     *clusters
	kind, note   string
}

// carriageReturns reads CR as LF.
type carriageReturns struct{ io.Reader }

// Read reads at least one byte.
func (c carriageReturns) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	for i := range p[:n] {
		if p[i] == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

// readText profiles all lines of src.
func readText(src io.Reader) (*textReading, error) {
	t := &textReading{tail: make([]string, tailLines), patterns: newClusters()}
	r := bufio.NewReaderSize(src, maxLine)
	for {
		line, size, err := readLine(r)
		if size > 0 {
			t.add(bytes.TrimRight(line, "\r\n"), size)
		}
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// readLine returns the beginning of a line, and its length in bytes with the line feed.
func readLine(r *bufio.Reader) (line []byte, size int64, err error) {
	line, err = r.ReadSlice('\n')
	size = int64(len(line))
	if err != bufio.ErrBufferFull {
		return line, size, err
	}
	line = bytes.Clone(line)
	for err == bufio.ErrBufferFull {
		var more []byte
		more, err = r.ReadSlice('\n')
		size += int64(len(more))
	}
	return line, size, err
}

func (t *textReading) add(line []byte, size int64) {
	t.lines++
	t.longest = max(t.longest, size)
	if !isPlain(line) || bytes.IndexByte(line, '\t') >= 0 {
		if !utf8.Valid(line) && len(line) < maxLine {
			t.invalid++
		}
		line = []byte(clean(line))
	}
	kept := cutRunes(line, keptLine)
	if len(t.head) < headLines {
		t.head = append(t.head, string(kept))
	} else {
		t.tail[t.lines%tailLines] = string(kept)
	}
	if len(bytes.TrimSpace(line)) == 0 {
		t.blank++
		return
	}
	t.patterns.add(line)
}

// last returns the lines from the end that are not in head, in order.
func (t *textReading) last() []string {
	n := min(t.lines-int64(len(t.head)), tailLines)
	lines := make([]string, 0, n)
	for i := t.lines - n + 1; i <= t.lines; i++ {
		lines = append(lines, t.tail[i%tailLines])
	}
	return lines
}

func (t *textReading) summary() string { return "text, " + count(t.lines, "line") }

func (t *textReading) header(in *source) (string, []string) {
	main := fmt.Sprintf("%s: %s, %s, the longest has %s.", t.kind, count(t.lines, "line"), in.size(), count(t.longest, "byte"))
	var notes []string
	if t.note != "" {
		notes = append(notes, t.note)
	}
	if t.blank > 0 {
		notes = append(notes, fmt.Sprintf("Blank lines: %d.", t.blank))
	}
	if t.invalid > 0 {
		notes = append(notes, fmt.Sprintf("Lines that are not valid UTF-8: %d.", t.invalid))
	}
	if t.repeats() {
		found := t.patterns.repeated()
		notes = append(notes, fmt.Sprintf("%s (count, pattern; what varies stands in <>):", count(int64(len(found)), "line pattern")))
	}
	return main, notes
}

// repeats reports whether most lines follow patterns, as those of logs do.
func (t *textReading) repeats() bool {
	var covered int64
	found := t.patterns.repeated()
	for _, c := range found {
		covered += c.n
	}
	written := t.lines - t.blank
	return len(found) > 0 && 10*covered >= 6*written && int64(len(found)) <= max(1, written/3)
}

func (t *textReading) body(budget int) string {
	if t.repeats() {
		return t.patternBody(budget)
	}
	return t.proseBody(budget)
}

// patternBody prints patterns first, and all of them shortened before any is left out.
func (t *textReading) patternBody(budget int) string {
	found := t.patterns.repeated()
	var b strings.Builder
	var tail []string
	if first := "first: " + maskText(t.begin()); !t.patterns.begins() {
		tail = append(tail, first)
	} else if room := budget/4 - 1; room > shortLine { // it may be the header of a table
		b.WriteString(cut(first, room) + "\n")
		budget -= runes(b.String())
	}
	kept := fitLines(patternLines(found, false), budget)
	if len(kept) < len(found) || len(kept) > 0 && strings.HasSuffix(kept[0], "…") {
		kept = fitLines(patternLines(found, true), budget)
	}
	rest, left := t.lines-t.blank, budget
	for i, line := range kept {
		b.WriteString(line + "\n")
		left -= runes(line) + 1
		rest -= found[i].n
	}
	if rest > 0 {
		tail = slices.Insert(tail, 0, fmt.Sprintf("… %s of other patterns", count(rest, "line")))
	}
	tail = append(tail, "last: "+maskText(t.end()))
	for i, line := range tail {
		if room := left/(len(tail)-i) - 1; room >= min(shortLine, runes(line)) {
			line = cut(line, room)
			b.WriteString(line + "\n")
			left -= runes(line) + 1
		}
	}
	return b.String()
}

func patternLines(found []*cluster, short bool) []string {
	lines := make([]string, len(found))
	for i, c := range found {
		lines[i] = fmt.Sprintf("%d %s", c.n, maskText(c.spell(short)))
	}
	return lines
}

// begin is the first line that is not blank.
func (t *textReading) begin() string {
	for _, line := range t.head {
		if strings.TrimSpace(line) != "" {
			return line
		}
	}
	return ""
}

// end is the last line.
func (t *textReading) end() string {
	if last := t.last(); len(last) > 0 {
		return last[len(last)-1]
	}
	return t.head[len(t.head)-1]
}

// fitLines cuts lines to one width so that they fit; where that would leave too little of them, the last ones go.
func fitLines(lines []string, budget int) []string {
	for n := len(lines); n > 0; n-- {
		lo, hi := 0, budget
		for lo < hi {
			mid := (lo + hi + 1) / 2
			if widthSum(lines[:n], mid) <= budget {
				lo = mid
			} else {
				hi = mid - 1
			}
		}
		if lo >= shortLine || n == 1 && lo > 0 {
			kept := make([]string, n)
			for i := range kept {
				kept[i] = cut(lines[i], lo)
			}
			return kept
		}
	}
	return nil
}

func widthSum(lines []string, width int) (sum int) {
	for _, line := range lines {
		sum += min(runes(line), width) + 1
	}
	return sum
}

// proseBody prints the beginning and the end, and between them how many lines are left out.
func (t *textReading) proseBody(budget int) string {
	width := max(minWidth, budget/2)
	head := takeLines(t.head, budget*2/3, width)
	ends := t.last()
	if t.lines == int64(len(t.head)+len(ends)) { // every line was kept
		ends = append(slices.Clone(t.head), ends...)[len(head):]
	}
	slices.Reverse(ends)
	left := budget - widthSum(head, budget)
	tail := takeLines(ends, left-runes(omitted(t.lines)), width)
	slices.Reverse(tail)
	if hidden := t.lines - int64(len(head)+len(tail)); hidden > 0 && runes(omitted(hidden)) <= left {
		head = append(head, omitted(hidden))
	}
	var b strings.Builder
	for _, line := range append(head, tail...) {
		b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

func omitted(lines int64) string { return fmt.Sprintf("… %s …\n", count(lines, "line")) }

// takeLines takes lines, cut to width, as long as they fit. The first is cut to fit.
func takeLines(lines []string, budget, width int) (taken []string) {
	for i, line := range lines {
		line = maskText(line)
		if i == 0 {
			line = cut(line, min(width, budget-1))
		}
		line = cut(line, width)
		if budget -= runes(line) + 1; budget < 0 {
			return taken
		}
		taken = append(taken, line)
	}
	return taken
}
