package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A unit writes a value for people.
type unit func(float64) string

func duration(v float64) string {
	d := time.Duration(v)
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", d.Seconds()*1e6)
	case d < 10*time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func rate(v float64) string  { return significant(v) }
func count(v float64) string { return significant(v) }
func size(v float64) string  { return fmt.Sprintf("%.1f MB", v/1e6) }

// significant writes three digits, or all that stand before the point.
func significant(v float64) string {
	switch {
	case v < 0.1:
		return fmt.Sprintf("%.2g", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

var columns = []string{"row", "figure", "mcsh", "baseline", "ratio", "range", "goal", "met", "reference"}

// lines returns the lines of a row.
func (o outcome) lines() [][]string {
	name := o.row.name
	switch {
	case o.skipped != "":
		return [][]string{{name, "skipped: " + o.skipped, "", "", "", "", "", "", ""}}
	case o.err != nil:
		return [][]string{{name, "failed", "", "", "", "", "", "no", ""}}
	}
	var list [][]string
	for _, f := range o.figures {
		list = append(list, o.line(f))
	}
	if len(list) > 0 {
		list[0][0], list[0][8] = name, o.row.reference
	}
	return list
}

// line is one figure of a row, without the row's name.
func (o outcome) line(f figure) []string {
	line := []string{"", f.name, f.unit(median(f.ours)), "", "", "", "", "", ""}
	if len(f.base) > 0 {
		ratios := f.ratios()
		line[3], line[4] = f.unit(median(f.base)), significant(median(ratios))+"x"
		line[5] = significant(slices.Min(ratios)) + "-" + significant(slices.Max(ratios))
	}
	for _, g := range o.row.goals {
		if g.figure == f.name {
			line[6], line[7] = g.text(f), yesNo(g.met(f))
		}
	}
	return line
}

func (g goal) text(f figure) string {
	sign, limit := "≤ ", fmt.Sprintf("%gx", g.limit)
	if g.atLeast {
		sign = "≥ "
	}
	if len(f.base) == 0 {
		limit = f.unit(g.limit)
	}
	if g.worst {
		limit += " in every run"
	}
	return sign + limit
}

func yesNo(v bool) string {
	if v {
		return "yes"
	}
	return "no"
}

// summary is what is printed of a row as soon as it is measured.
func summary(o outcome) string {
	var b strings.Builder
	for _, line := range o.lines() {
		fmt.Fprintln(&b, strings.TrimRight(strings.Join(line, "\t"), "\t"))
	}
	if o.err != nil {
		fmt.Fprintln(&b, o.err)
	}
	return b.String()
}

// report is the whole text.
func report(outcomes []outcome, o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# mcsh compared\n\nMade by `%s` with %s.\n", o.command(), strings.Join(machine(), ", "))
	if o.shared {
		b.WriteString("Measured on a shared machine.\n")
	}
	b.WriteString("\n")
	table := [][]string{columns}
	for _, out := range outcomes {
		table = append(table, out.lines()...)
	}
	writeTable(&b, table)
	b.WriteString(legend)
	b.WriteString("\n")
	compared := [][]string{comparedColumns}
	for _, out := range outcomes {
		compared = append(compared, out.comparedWith())
	}
	writeTable(&b, compared)
	return b.String()
}

var comparedColumns = []string{"row", "compared with", "runs"}

// comparedWith is the line of a row that says what its baseline is.
func (o outcome) comparedWith() []string {
	return []string{o.row.name, o.row.baseline, fmt.Sprint(o.runs)}
}

const legend = `
Both sides run in turn. Each figure is the median of the runs; the ratio is the median of the ratios of the runs, mcsh over
baseline, and the range is from the lowest to the highest. Times of one machine are no goals; ratios are. CPU is that of
all processes of a side, where a peak RSS is that of the one process named. For a rate, more is better. The reference is
Model Context Shell, the Python gateway of the same idea, whose ratio was measured elsewhere, over HTTP.
`

// command is the command that makes these results.
func (o options) command() string {
	text := fmt.Sprintf("go run ./bench -runs %d -big %d", o.runs, o.big)
	if o.only != "" {
		text += fmt.Sprintf(" -only %q", o.only)
	}
	return text
}

// machine says what the results depend on, and not which machine it is.
func machine() []string {
	facts := []string{fmt.Sprintf("%d CPUs", runtime.NumCPU()), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		number, _, _ := bytes.Cut(bytes.TrimSpace(release), []byte("-"))
		facts = append(facts, "kernel "+string(number))
	}
	return facts
}

// writeTable writes Markdown that can be read as it is.
func writeTable(b *strings.Builder, table [][]string) {
	widths := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range table {
		for i, cell := range line {
			fmt.Fprintf(b, "| %s%s ", cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)))
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, w := range widths {
				b.WriteString("|" + strings.Repeat("-", w+2))
			}
			b.WriteString("|\n")
		}
	}
}
