package preview

import "strings"

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
