package preview

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxLine   = 64 << 10 // bytes read of a line
	headLines = 200      // lines kept from the beginning
	tailLines = 50       // lines kept from the end
	keptLine  = 1000     // bytes kept of each
	shortLine = 20       // characters of the shortest line worth printing
	minWidth  = 200      // characters of a line to print if there is room
)

// textStats is the result of one pass over lines of text.
type textStats struct {
	lines, blank int64
	longest      int64 // bytes
	invalid      int64 // lines that are not UTF-8
	head         []string
	tail         []string // the last lines that are not in head
	patterns     *clusters
}

// carriageReturns reads each CR as LF.
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
func readText(src io.Reader) (*textStats, error) {
	t := &textStats{patterns: newClusters()}
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

// readLine returns the beginning of a line and the length of all of it in bytes, with the line feed.
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

func (t *textStats) add(line []byte, size int64) {
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
		t.tail = append(t.tail, string(kept))
		t.tail = t.tail[max(0, len(t.tail)-tailLines):]
	}
	if len(bytes.TrimSpace(line)) == 0 {
		t.blank++
		return
	}
	t.patterns.add(line)
}

func (t *textStats) describe(in *source, kind, note string) description {
	var all notes
	all.add(note != "", "%s", note)
	all.add(t.blank > 0, "Blank lines: %d.", t.blank)
	all.add(t.invalid > 0, "Lines that are not valid UTF-8: %d.", t.invalid)
	patterns := texts.Count(len(t.patterns.repeated()), "line pattern")
	all.add(t.repeats(), "%s (count, pattern; what varies stands in <>):", patterns)
	lines := texts.Count(t.lines, "line")
	header := fmt.Sprintf("%s: %s, %s, the longest has %s.", kind, lines, in.size(), texts.Count(t.longest, "byte"))
	return description{summary: "text, " + lines, header: header, notes: all, body: t.body}
}

// repeats reports whether most lines follow patterns, like those of logs.
func (t *textStats) repeats() bool {
	var covered int64
	found := t.patterns.repeated()
	for _, c := range found {
		covered += c.n
	}
	written := t.lines - t.blank
	return len(found) > 0 && 10*covered >= 6*written && int64(len(found)) <= max(1, written/3)
}

func (t *textStats) body(budget int) string {
	if t.repeats() {
		return t.patternBody(budget)
	}
	return t.proseBody(budget)
}

// patternBody prints the patterns. It shortens all before it leaves one out.
func (t *textStats) patternBody(budget int) string {
	found := t.patterns.repeated()
	var b strings.Builder
	var tail []string
	if first := "first: " + maskText(t.begin()); !t.patterns.begins() {
		tail = append(tail, first)
	} else if room := budget/4 - 1; room > shortLine { // it may be the header of a table
		b.WriteString(texts.Fit(first, room) + "\n")
		budget -= runes(b.String())
	}
	record := t.record()
	if runes(record) > budget/2 {
		record = ""
	}
	if record != "" {
		tail = nil // the record holds the first line
	}
	rare := fitLines(t.rareLines(), min(budget-runes(record), budget/4))
	budget -= runes(record) + widthSum(rare, budget)
	rest, left := t.lines-t.blank-int64(len(rare)), budget
	for i, line := range fitPatterns(found, budget) {
		if line != "" {
			b.WriteString(line + "\n")
			left -= runes(line) + 1
			rest -= found[i].n
		}
	}
	for _, line := range rare {
		b.WriteString(line + "\n")
	}
	if rest > 0 {
		tail = slices.Insert(tail, 0, fmt.Sprintf("… %s of other patterns", texts.Count(rest, "line")))
	}
	b.WriteString(record)
	tail = append(tail, "last: "+maskText(t.end()))
	for i, line := range tail {
		if room := left/(len(tail)-i) - 1; room >= min(shortLine, runes(line)) {
			line = texts.Fit(line, room)
			b.WriteString(line + "\n")
			left -= runes(line) + 1
		}
	}
	return b.String()
}

// fitPatterns prints as many patterns as fit, and shortens all before it leaves one out. It leaves out those in the
// middle first, since rare lines often matter: these are empty.
func fitPatterns(found []*cluster, budget int) (lines []string) {
	for _, short := range []bool{false, true} {
		var spelled []string
		for i := range found {
			spelled = append(spelled, fmt.Sprintf("%d %s", found[i].n, maskText(found[i].text(short))))
		}
		half := (len(found) + 1) / 2
		slices.Reverse(spelled[half:])
		kept := fitLines(spelled, budget)
		if len(kept) == len(found) && !strings.HasSuffix(kept[0], "…") || short {
			lines = append(kept, make([]string, len(found)-len(kept))...)
			slices.Reverse(lines[half:])
			return lines
		}
	}
	return nil
}

// squeezed returns a line with single spaces, as in patterns.
func squeezed(line string) string { return maskText(strings.Join(strings.Fields(line), " ")) }

// maxRare is the largest number of lines without a pattern that are printed.
const maxRare = 3

// rareLines returns the lines without a pattern, if they are few. It omits the first and the last line, which are printed
// anyway.
func (t *textStats) rareLines() (lines []string) {
	for _, c := range t.patterns.all {
		if c.n > 1 {
			continue
		}
		line := maskText(c.text(false))
		if line == squeezed(t.begin()) || line == squeezed(t.end()) {
			continue
		}
		if lines = append(lines, "1 "+line); len(lines) > maxRare {
			return nil
		}
	}
	return lines
}

// begin returns the first line that is not blank.
func (t *textStats) begin() string { return written(slices.All(t.head)) }

// end returns the last kept line that is not blank.
func (t *textStats) end() string { return written(slices.Backward(slices.Concat(t.head, t.tail))) }

func written(lines iter.Seq2[int, string]) string {
	for _, line := range lines {
		if strings.TrimSpace(line) != "" {
			return line
		}
	}
	return ""
}

// fitLines cuts lines to a common width so that they fit. It drops the last lines if the width would be too small.
func fitLines(lines []string, budget int) []string {
	for n := len(lines); n > 0; n-- {
		width := sort.Search(budget, func(w int) bool { return widthSum(lines[:n], w+1) > budget })
		if width >= shortLine || n == 1 && width > 0 {
			kept := make([]string, n)
			for i := range kept {
				kept[i] = texts.Fit(lines[i], width)
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

// proseBody prints the beginning and the end, and between them the number of lines left out.
func (t *textStats) proseBody(budget int) string {
	width := max(minWidth, budget/2)
	head := takeLines(t.head, budget*2/3, width)
	ends := slices.Clone(t.tail)
	if t.lines == int64(len(t.head)+len(t.tail)) { // every line was kept
		ends = slices.Concat(t.head, t.tail)[len(head):]
	}
	slices.Reverse(ends)
	left := budget - widthSum(head, budget)
	tail := takeLines(ends, left-runes(omitted(t.lines)), width)
	slices.Reverse(tail)
	text := strings.Join(append(head, ""), "\n")
	if hidden := t.lines - int64(len(head)+len(tail)); hidden > 0 && runes(omitted(hidden)) <= left {
		text += omitted(hidden)
	}
	return text + strings.Join(append(tail, ""), "\n")
}

func omitted(lines int64) string { return fmt.Sprintf("… %s …\n", texts.Count(lines, "line")) }

// takeLines returns the first lines, cut to width, while they fit. It cuts the first line so that it fits.
func takeLines(lines []string, budget, width int) (taken []string) {
	for i, line := range lines {
		line = maskText(line)
		if i == 0 {
			line = texts.Fit(line, min(width, budget-1))
		}
		line = texts.Fit(line, width)
		if budget -= runes(line) + 1; budget < 0 {
			return taken
		}
		taken = append(taken, line)
	}
	return taken
}

const (
	minRecords = 3 // of the lines that are kept
	minRecord  = 3 // lines from the beginning of a record to that of the next
)

// record returns the first record of a text whose records have several lines, such as git log or blocks of "Key: value":
// the first word of the text begins other lines too, with lines between them. It returns "" for other text.
func (t *textStats) record() string {
	word := recordWord(t.begin())
	if word == "" {
		return ""
	}
	var starts []int
	for i, line := range t.head {
		if recordWord(line) != word {
			continue
		}
		if n := len(starts); n > 0 && i-starts[n-1] < minRecord {
			return ""
		}
		starts = append(starts, i)
	}
	if len(starts) < minRecords {
		return ""
	}
	var lines []string
	for _, line := range t.head[starts[0]:starts[1]] {
		lines = append(lines, maskText(line))
	}
	return "one record:\n" + strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// recordWord returns the first word of a line if the first lines of all records can share it, that is, without digits.
func recordWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	if strings.ContainsAny(word, "0123456789") {
		return ""
	}
	return word
}
