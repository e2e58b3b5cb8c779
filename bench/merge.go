package main

import (
	"fmt"
	"strings"
)

// A section is the lines of one row in a table, without the bars.
type section struct {
	name  string
	lines [][]string
}

// readTable reads a table that writeTable wrote, and returns what stands before and behind it.
func readTable(text string) (before string, table []section, behind string) {
	start := strings.Index(text, "| row ")
	if start < 0 {
		return text, nil, ""
	}
	before, text = text[:start], text[start:]
	for n := 0; strings.HasPrefix(text, "|"); n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if n < 2 {
			continue // the columns, and the rule below
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] != "" {
			table = append(table, section{name: cells[0]})
		}
		if last := len(table) - 1; last >= 0 {
			table[last].lines = append(table[last].lines, cells)
		}
	}
	return before, table, text
}

// merge puts rows that were measured alone into the results of all: in the order of the rows, those that are gone left
// out, and with a line that says which they are.
func merge(old string, outcomes []outcome, o options) string {
	head, figures, rest := readTable(old)
	_, compared, tail := readTable(rest)
	var names []string
	for _, out := range outcomes {
		names = append(names, out.row.name)
		figures = append(figures, section{out.row.name, out.lines()})
		compared = append(compared, section{out.row.name, [][]string{out.comparedWith()}})
	}
	var b strings.Builder
	shared := ""
	if o.shared {
		shared = ", on a shared machine"
	}
	fmt.Fprintf(&b, "%s\nLater, by `%s`%s: %s.\n\n", strings.TrimRight(head, "\n"), o.command(), shared, strings.Join(names, "; "))
	writeTable(&b, ordered(columns, figures))
	b.WriteString(legend + "\n")
	writeTable(&b, ordered(comparedColumns, compared))
	return b.String() + tail
}

// ordered is a table of the newest section of each row, in the order of the rows.
func ordered(columns []string, sections []section) [][]string {
	newest := map[string][][]string{}
	for _, s := range sections {
		newest[s.name] = s.lines
	}
	table := [][]string{columns}
	for _, r := range rows() {
		table = append(table, newest[r.name]...)
	}
	return table
}
