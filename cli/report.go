package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

type reportJSON struct {
	Millis float64              `json:"ms"`
	Stages []stages.StageReport `json:"stages"`
}

func jsonOf(r stages.Report) reportJSON {
	return reportJSON{Millis: float64(r.Elapsed.Microseconds()) / 1000, Stages: r.Stages}
}

// labelWidth bounds the label of a stage in a table.
const labelWidth = 44

// tableOf formats a report as columns, and a summary. The width is that of the terminal; 0: of none.
func tableOf(r stages.Report, width int) string { return stageTable(r.Stages, width) + summary(r) }

// stageTable formats stages as columns.
func stageTable(list []stages.StageReport, width int) string {
	return tableText(append([][]string{{"#", "stage", "items", "calls", "in", "out", "busy ms"}}, rowsOf(list, 0)...), 2, width)
}

// rowsOf flattens nested stages, indented.
func rowsOf(list []stages.StageReport, depth int) [][]string {
	var rows [][]string
	for _, s := range list {
		label := s.Label.String()
		if s.Branch != "" {
			label = s.Branch + ": " + label
		}
		if s.Input != "" {
			label = "@" + s.Input + ": " + label
		}
		label = strings.Repeat("  ", depth) + texts.Fit(texts.Plain(label, false), labelWidth)
		rows = append(rows, []string{string(s.Place), label, count(s.Items), count(s.Calls), size(s.BytesIn), size(s.BytesOut), busy(s.Busy)})
		rows = append(rows, rowsOf(s.Stages, depth+1)...)
	}
	return rows
}

// summary compares the output with the results of all tools, which an agent without a pipeline would read.
func summary(r stages.Report) string {
	text := fmt.Sprintf("%s, %d ms", texts.Count(len(r.Stages), "stage"), r.Elapsed.Round(time.Millisecond).Milliseconds())
	first, last := r.Stages[0], r.Stages[len(r.Stages)-1]
	switch seen := first.BytesIn + returned(r.Stages); {
	case seen == 0:
	case seen < last.BytesOut: // commands added data
		text += fmt.Sprintf("; %s out", size(last.BytesOut))
	default:
		text += fmt.Sprintf("; %s out of %s seen", size(last.BytesOut), size(seen))
	}
	return text + "\n"
}

// returned sums the bytes of tool results.
func returned(list []stages.StageReport) int64 {
	var n int64
	for _, s := range list {
		n += s.Returned + returned(s.Stages)
	}
	return n
}

func count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func busy(millis float64) string {
	if millis == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", millis)
}

// size formats a number of bytes for a column.
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

// The screen appears after screenAfter, and is redrawn every screenEvery with at most screenRows stages.
const (
	screenAfter = 300 * time.Millisecond
	screenEvery = 200 * time.Millisecond
	screenRows  = 12
)

// A screen shows the progress of a command in the last lines of a terminal: servers that start, and the stages of a run.
// stop erases it.
type screen struct {
	w       io.Writer
	size    func() (columns, rows int)
	servers func() []upstream.ServerStatus // called from one goroutine

	life  context.Context // until stop
	end   context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	begun  time.Time                   // of the run; guarded by mu
	stages func() []stages.StageReport // of the run; nil: not started; guarded by mu
}

// show starts a screen for the servers of a pool; nil without a terminal. A write of the program to a terminal stops it.
func (p *program) show(servers func() []upstream.ServerStatus) *screen {
	if !p.stderr.terminal || p.env["TERM"] == "dumb" {
		return nil
	}
	s := newScreen(p.stderr.w, func() (int, int) { return p.terminalSize(p.stderr.w) }, servers)
	go s.draw()
	p.stdout.show(s)
	p.stderr.show(s)
	return s
}

func newScreen(w io.Writer, size func() (columns, rows int), servers func() []upstream.ServerStatus) *screen {
	s := &screen{w: w, size: size, servers: servers, ended: make(chan struct{})}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// terminalSize returns the size of the terminal, or a default.
func (p *program) terminalSize(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		columns, rows, _ = term.GetSize(int(f.Fd())) // 0 if it is not known
	}
	fallback, _ := strconv.Atoi(p.env["COLUMNS"])
	return cmp.Or(columns, fallback, 80), cmp.Or(rows, 24)
}

// follow shows the stages of a run that began at a time. It works on nil.
func (s *screen) follow(begun time.Time, stages func() []stages.StageReport) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun, s.stages = begun, stages
	}
}

// stop erases the screen. It is idempotent, and works on nil.
func (s *screen) stop() {
	if s != nil {
		s.end()
		<-s.ended
	}
}

// draw redraws the lines until stop.
func (s *screen) draw() {
	defer close(s.ended)
	begun := time.Now()
	starting := map[string]time.Time{}
	select {
	case <-s.life.Done():
		return
	case <-time.After(screenAfter):
	}
	ticker := time.NewTicker(screenEvery)
	defer ticker.Stop()
	var lines []string // on the screen
	for {
		clear := s.clear(lines)
		lines = s.lines(begun, starting)
		io.WriteString(s.w, clear+strings.Join(lines, "\n"))
		select {
		case <-s.life.Done():
			io.WriteString(s.w, s.clear(lines))
			return
		case <-ticker.C:
		}
	}
}

// clear returns what erases lines. A terminal that has become narrower meanwhile shows a long one in several rows.
func (s *screen) clear(lines []string) string {
	columns, _ := s.size()
	up := len(lines) - 1
	for _, line := range lines {
		up += max(0, columnsOf(line)-1) / max(1, columns)
	}
	if up < 1 {
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
}

// lines returns the lines to show. starting holds the time at which each server was first seen starting.
func (s *screen) lines(begun time.Time, starting map[string]time.Time) []string {
	s.mu.Lock()
	report, since := s.stages, s.begun
	s.mu.Unlock()
	now := time.Now()
	lines := []string{"working for " + seconds(now.Sub(begun))}
	if text := startingText(s.servers(), starting, now); text != "" {
		lines[0] += ": " + text
	}
	columns, rows := s.size()
	if report != nil { // a line above the top of the screen could not be erased
		lines = append(lines, stageLines(report(), now.Sub(since), columns-1, min(screenRows, rows-3))...)
	}
	for i, line := range lines {
		lines[i] = fitting(texts.Plain(line, false), columns-1)
	}
	return lines
}

// startingText names the starting servers and for how long they have been starting.
func startingText(servers []upstream.ServerStatus, since map[string]time.Time, now time.Time) string {
	var names []string
	for _, server := range servers {
		if server.Status != upstream.StatusStarting {
			delete(since, server.Server)
			continue
		}
		if since[server.Server].IsZero() {
			since[server.Server] = now
		}
		names = append(names, server.Server)
	}
	if len(names) == 0 {
		return ""
	}
	slices.SortStableFunc(names, func(a, b string) int { return since[a].Compare(since[b]) }) // the slowest first
	for i, name := range names {
		names[i] = name + " " + seconds(now.Sub(since[name]))
	}
	return fmt.Sprintf("starting %s: %s", texts.Count(len(names), "server"), strings.Join(names, ", "))
}

// stageLines returns a line for each stage: its work, rate, busy time and the message of its tool. It cuts labels before
// figures, and counts the stages beyond most.
func stageLines(list []stages.StageReport, elapsed time.Duration, columns, most int) []string {
	if most < 1 {
		return nil
	}
	more := 0
	if len(list) > most+1 {
		more, list = len(list)-most, list[:most]
	}
	label, figures := 0, 0 // the largest widths
	for _, s := range list {
		label = max(label, columnsOf(texts.Plain(s.Label.String(), false)))
		figures = max(figures, len(figuresOf(s, elapsed)))
	}
	label = max(1, min(label, labelWidth, columns-figures-len("100 ")-len("  ")))
	var lines []string
	for _, s := range list {
		text := figuresOf(s, elapsed)
		if s.Tool.Message != "" {
			text += "  " + s.Tool.Message
		}
		lines = append(lines, fmt.Sprintf("%3s %s  %s", s.Place, padded(texts.Plain(s.Label.String(), false), label), text))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more stages", more))
	}
	return lines
}

// figuresOf returns the figures of a stage, in ASCII.
func figuresOf(s stages.StageReport, elapsed time.Duration) string {
	var cells []string
	switch n := s.OK + s.Failed + s.Resumed; {
	case s.Items > 0:
		cells = append(cells, texts.Count(n, "item")+" done")
		if s.Total > n {
			cells[0] = fmt.Sprintf("%d of %s  %s", n, texts.Count(s.Total, "item"), barOf(float64(n), float64(s.Total)))
		}
		rate := float64(n-s.Resumed) / elapsed.Seconds()
		if rate >= 1 {
			cells = append(cells, fmt.Sprintf("%.0f/s", rate))
		}
		if s.Total > n && rate > 0 {
			cells = append(cells, timeLeft(float64(s.Total-n)/rate))
		}
	case s.Calls > 0:
		cells = append(cells, texts.Count(s.Calls, "call"))
	}
	cells = append(cells, size(s.BytesOut))
	if s.Busy >= 100 {
		cells = append(cells, fmt.Sprintf("%.1f s", s.Busy/1000))
	}
	if t := s.Tool; t.Done > 0 && t.Total >= t.Done {
		cells = append(cells, fmt.Sprintf("%.6g of %.6g  %s", t.Done, t.Total, barOf(t.Done, t.Total)))
	}
	return strings.Join(cells, "  ")
}

// barWidth is the columns of a bar, without its ends.
const barWidth = 10

// barOf draws how much of something is done.
func barOf(done, total float64) string {
	n := int(barWidth * min(1, max(0, done/total)))
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", barWidth-n) + "]"
}

// timeLeft says how long something will still take, as far as its rate tells.
func timeLeft(seconds float64) string {
	if seconds > maxTimeLeft.Seconds() {
		return "hours left"
	}
	return (time.Duration(seconds) * time.Second).String() + " left"
}

// maxTimeLeft is the longest time that a rate tells anything of.
const maxTimeLeft = 10 * time.Hour

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }

// fitting cuts a line to a number of columns.
func fitting(line string, columns int) string {
	for i, c := range line {
		if columns -= runeColumns(c); columns < 0 {
			return line[:i]
		}
	}
	return line
}

// padded pads or cuts a text to a number of columns.
func padded(text string, columns int) string {
	if columnsOf(text) > columns {
		text = fitting(text, columns-1) + "…"
	}
	return text + strings.Repeat(" ", columns-columnsOf(text))
}

func columnsOf(text string) (n int) {
	for _, c := range text {
		n += runeColumns(c)
	}
	return n
}

// runeColumns returns the width of a character: many East Asian ones take two columns.
func runeColumns(c rune) int {
	const wide, punctuation, endPunctuation = 0x1100, 0x2000, 0x206f
	if c >= wide && (c < punctuation || c > endPunctuation) {
		return 2
	}
	return 1
}
