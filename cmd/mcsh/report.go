package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/stages"
)

// reportJSON is a report as --json prints it.
type reportJSON struct {
	Millis float64              `json:"ms"`
	Stages []stages.StageReport `json:"stages"`
}

func jsonOf(r stages.Report) reportJSON {
	return reportJSON{Millis: float64(r.Elapsed.Microseconds()) / 1000, Stages: r.Stages}
}

// writeReport writes the windows and the table of stages.
func writeReport(w io.Writer, r stages.Report) {
	writeWindows(w, r.Windows)
	if len(r.Stages) == 0 {
		return
	}
	io.WriteString(w, table(r))
}

func writeWindows(w io.Writer, windows []stages.Window) {
	for _, window := range windows {
		fmt.Fprintf(w, "Stage %s sees:\n%s\n", window.Place, strings.TrimRight(window.Text, "\n"))
	}
}

// labelWidth is how much of a stage's label a line shows.
const labelWidth = 44

// table writes a report as columns, words to the left and numbers to the right, and a last line that sums it up.
func table(r stages.Report) string {
	rows := append([]row{{place: "#", label: "stage"}}, rowsOf(r.Stages, 0)...)
	var places, labels int
	for _, row := range rows {
		places, labels = max(places, utf8.RuneCountInString(row.place)), max(labels, utf8.RuneCountInString(row.label))
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, len(gap), ' ', tabwriter.AlignRight)
	for i, row := range rows {
		// The words are one cell, padded here: tabwriter aligns all cells to the same side.
		fmt.Fprintf(t, "%-*s%s%-*s\t", places, row.place, gap, labels, row.label)
		if i == 0 {
			fmt.Fprint(t, "items\tcalls\tin\tout\tms\t\n")
			continue
		}
		s := row.stage
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.1f\t\n", count(s.Items), count(s.Calls), size(s.BytesIn), size(s.BytesOut), s.Millis)
	}
	t.Flush()
	text := strings.ReplaceAll("\n"+b.String(), "\n"+gap, "\n") // the first cells are equally wide: only their gap is left
	return text[1:] + summary(r)
}

// gap stands between columns.
const gap = "  "

type row struct {
	place, label string
	stage        stages.StageReport
}

// rowsOf flattens nested stages, indented.
func rowsOf(list []stages.StageReport, depth int) []row {
	var rows []row
	for _, s := range list {
		label := s.Label
		if s.Branch != "" {
			label = s.Branch + ": " + label
		}
		if s.Input != "" {
			label = "@" + s.Input + ": " + label
		}
		label = strings.Repeat("  ", depth) + cut(label, labelWidth)
		rows = append(rows, row{string(s.Place), label, s})
		rows = append(rows, rowsOf(s.Stages, depth+1)...)
	}
	return rows
}

func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// summary compares what came out with what the tools returned, which somebody without a pipeline would have read.
func summary(r stages.Report) string {
	text := fmt.Sprintf("%d %s, %d ms", len(r.Stages), plural(len(r.Stages), "stage"), r.Elapsed.Round(time.Millisecond).Milliseconds())
	first, last := r.Stages[0], r.Stages[len(r.Stages)-1]
	if seen := first.BytesIn + returned(r.Stages); seen > 0 {
		text += fmt.Sprintf("; %s out of %s seen", size(last.BytesOut), size(seen))
	}
	return text + "\n"
}

// returned sums what tool calls returned.
func returned(list []stages.StageReport) int64 {
	var n int64
	for _, s := range list {
		switch {
		case len(s.Stages) > 0:
			n += returned(s.Stages)
		case s.Calls > 0:
			n += s.BytesOut
		}
	}
	return n
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// count leaves a column empty where there is nothing to count.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// size writes a number of bytes as people read it.
func size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB"} {
		value /= 1000
		if value < 999.95 {
			return fmt.Sprintf("%.1f %s", value, unit)
		}
	}
	return fmt.Sprintf("%.1f PB", value/1000)
}
