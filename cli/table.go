package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// leastCell is how narrow a cell with text becomes, in columns of the terminal.
const leastCell = 6

// columns is the width of a terminal; 0: the stream goes to none, and nothing is cut.
func (p *program) columns(s *stream) (columns int) {
	if s.terminal {
		columns, _ = p.terminalSize(s.w)
	}
	return columns
}

// printTable prints rows for people, on standard output; see aligned.
func (p *program) printTable(rows [][]string, left int) error {
	if p.json {
		return nil
	}
	_, err := io.WriteString(p.text, tableText(rows, left, p.columns(p.stdout)))
	return err
}

// tableText formats rows for people; see aligned.
func tableText(rows [][]string, left, width int) string {
	lines, more := aligned(rows, left, width)
	if more > 0 {
		lines = append(lines, fmt.Sprintf("… a wider terminal shows %s more", texts.Count(more, "column")))
	}
	return strings.Join(append(lines, ""), "\n")
}

// aligned formats rows as columns, a line for each: the first ones, with text, to the left, and the others, with numbers, to the
// right. Where a width is given and they are wider, it cuts text, but never the name in the first column, and leaves out columns at
// the end if that is not enough.
func aligned(rows [][]string, left, width int) (lines []string, more int) {
	var widths []int
	for _, row := range rows {
		widths = append(widths, make([]int, max(0, len(row)-len(widths)))...)
		for i, cell := range row {
			widths[i] = max(widths[i], columnsOf(texts.Plain(cell, false)))
		}
	}
	fit := widths
	if width > 0 {
		fit = fitColumns(widths, left, width)
	}
	for _, row := range rows {
		cells := make([]string, min(len(row), len(fit)))
		for i := range cells {
			if cells[i] = texts.Plain(row[i], false); i < left {
				cells[i] = padded(cells[i], fit[i])
			} else {
				cells[i] = strings.Repeat(" ", fit[i]-columnsOf(cells[i])) + cells[i]
			}
		}
		lines = append(lines, strings.TrimRight(strings.Join(cells, "  "), " "))
	}
	return lines, len(widths) - len(fit)
}

// fitColumns returns the widths of as many columns as fit. The narrowest one with cut text is the next to become wider.
func fitColumns(widths []int, left, width int) (fit []int) {
	spare := width + len("  ")
	for i, most := range widths {
		least := most
		if i > 0 && i < left {
			least = min(most, leastCell)
		}
		if spare -= least + len("  "); spare < 0 && i > 0 {
			spare += least + len("  ")
			break
		}
		fit = append(fit, least)
	}
	for ; spare > 0; spare-- {
		next := -1
		for i := range fit {
			if fit[i] < widths[i] && (next < 0 || fit[i] < fit[next]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		fit[next]++
	}
	return fit
}
