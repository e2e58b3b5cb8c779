package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf16"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// The exit statuses.
const (
	exitOK          = 0
	exitUsage       = 1 // wrong command line
	exitConfig      = 2 // wrong configuration file or set-up of the machine
	exitAuth        = 3 // a server requires or rejected credentials
	exitUnreachable = 4 // a server is unreachable
	exitFailed      = 5 // a pipeline or tool failed
	exitTimeout     = 124
	exitInterrupted = 130
)

// exitCodes maps the codes of errors to exit statuses other than exitFailed.
var exitCodes = map[stages.Code]int{
	stages.ServerUnavailable: exitUnreachable,
	stages.Timeout:           exitTimeout,
	stages.Cancelled:         exitInterrupted,
}

// A failure is an error with an exit status and a hint.
type failure struct {
	status int
	err    error
	hint   string // what to do next; may be empty
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usageError(hint, format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...), hint}
}

func configError(hint string, err error) error { return &failure{exitConfig, err, hint} }

// didYouMean returns a hint in a form with the known name that a wrong one probably means, or else another hint.
func didYouMean(form, wrong string, known []string, otherwise string) string {
	if near := nearest.Name(wrong, known); near != "" {
		return fmt.Sprintf(form, near)
	}
	return otherwise
}

// A reportedStatus is the exit status of a command that has already printed its errors.
type reportedStatus int

func (s reportedStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// A planError holds all mistakes of a pipeline.
type planError []*stages.Error

func (p planError) Error() string { return strings.TrimSuffix(gateway.PlanErrorText(p), "\n") }

// status returns the exit status that all mistakes share, or exitFailed.
func (p planError) status() int {
	first := statusOf(p[0])
	if slices.ContainsFunc(p, func(e *stages.Error) bool { return statusOf(e) != first }) {
		return exitFailed
	}
	return first
}

// report prints an error, with --json as JSON, and returns the exit status. It falls back to standard error if it cannot
// write to standard output.
func (p *program) report(err error) int {
	if err == nil {
		return exitOK
	}
	if status, ok := errors.AsType[reportedStatus](err); ok {
		return int(status)
	}
	shown, status := explain(err)
	if p.json {
		if writeJSON(p.stdout, shown) == nil {
			return status
		}
		status = exitFailed
	}
	fmt.Fprint(p.stderr, shown.text)
	return status
}

// An errorOutput is an error in its printed forms.
type errorOutput struct {
	Errors []errorJSON `json:"errors"`
	Report *reportJSON `json:"report,omitempty"` // of a failed run
	text   string      // for people
}

type errorJSON struct {
	Code    stages.Code     `json:"code,omitempty"`
	Message string          `json:"message"`
	Hint    string          `json:"hint,omitempty"`
	Fix     json.RawMessage `json:"fix,omitempty"`
	Stage   stages.Place    `json:"stage,omitempty"`
	Label   string          `json:"label,omitempty"`
	Field   string          `json:"field,omitempty"`
	Item    int             `json:"item,omitempty"`
	Items   int             `json:"items,omitempty"`
	Done    int             `json:"done,omitempty"`
}

func errorOf(e *stages.Error) errorJSON {
	return errorJSON{e.Code, e.Msg, e.Hint, e.Fix, e.Place, e.Label, e.Field, e.Item, e.Items, e.Done}
}

// explain returns the printed forms of an error and its exit status.
func explain(err error) (errorOutput, int) {
	var ran *runError
	var plan planError
	var stage *stages.Error
	var f *failure
	switch {
	case errors.As(err, &ran):
		t, status := explain(ran.err)
		t.Report = &ran.report
		if errors.As(ran.err, &stage) {
			t.text = gateway.ErrorText(forCommandLine(stage)) // for a joined error too: agents see it in this form
		}
		return t, status
	case errors.As(err, &plan):
		own := planError(convert(plan, forCommandLine))
		return errorOutput{Errors: convert(own, errorOf), text: own.Error() + "\n"}, plan.status()
	case errors.As(err, &f):
		return errorOutput{text: errorText(f.err, f.hint), Errors: []errorJSON{{Message: f.Error(), Hint: f.hint}}}, f.status
	case errors.As(err, &stage):
		own := forCommandLine(stage)
		t := errorOutput{Errors: []errorJSON{errorOf(own)}, text: gateway.ErrorText(own)}
		if own.Place == "" {
			t.text = errorText(errors.New(own.Msg), own.Hint)
		}
		return t, statusOf(stage)
	case errors.Is(err, context.Canceled):
		return errorOutput{text: "error: interrupted\n", Errors: []errorJSON{{Code: stages.Cancelled, Message: "interrupted"}}}, exitInterrupted
	}
	return errorOutput{text: errorText(err, "mcsh --help shows what there is"), Errors: []errorJSON{{Message: err.Error()}}}, exitUsage
}

func statusOf(e *stages.Error) int {
	if remote.NeedsSignIn(e) {
		return exitAuth
	}
	return cmp.Or(exitCodes[e.Code], exitFailed)
}

// errorText returns the text of an error outside of pipelines. Each of several joined errors begins with "error:";
// further lines of one, such as a traceback of a server, are indented.
func errorText(err error, hint string) string {
	var text strings.Builder
	for _, one := range splitJoined(err) {
		text.WriteString("error: " + strings.ReplaceAll(one, "\n", "\n       ") + "\n")
	}
	if hint != "" {
		text.WriteString("hint: " + strings.ReplaceAll(hint, "\n", "\n      ") + "\n")
	}
	return text.String()
}

// splitJoined returns the texts of errors that [errors.Join] joined at any depth.
func splitJoined(err error) []string {
	if f, ok := err.(*failure); ok {
		return splitJoined(f.err)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var all, texts []string
	for _, one := range joined.Unwrap() {
		all, texts = append(all, splitJoined(one)...), append(texts, one.Error())
	}
	if err.Error() != strings.Join(texts, "\n") { // the error adds its own words
		return []string{err.Error()}
	}
	return all
}

func writeJSON(w io.Writer, v any) error {
	_, err := io.WriteString(w, escapedJSON(texts.JSON(v))+"\n")
	return err
}

// print writes a result: v with --json, or else a text for people. A command may ignore the error of a write: the program
// reports it in the end.
func (p *program) print(v any, text string) error {
	if p.json {
		return writeJSON(p.stdout, v)
	}
	_, err := io.WriteString(p.text, text)
	return err
}

// commandLineWords replaces the words for agents by those of the command line.
var commandLineWords = strings.NewReplacer(
	"call list_all_tools", "see mcsh tools ls",
	"list_all_tools with server pipelines shows them", "mcsh pipeline ls lists them",
	"list_all_tools", "mcsh tools ls",
	"get_tool_details", "mcsh tools show",
	"list_available_shell_commands", "mcsh commands",
	`the argument "timeout"`, "--timeout",
)

// forCommandLine returns an error in the words of the command line. The words of a tool stay unchanged.
func forCommandLine(e *stages.Error) *stages.Error {
	own := *e
	own.Hint = commandLineWords.Replace(e.Hint)
	if !e.Answered && e.Code != stages.ToolError {
		own.Msg = commandLineWords.Replace(e.Msg)
	}
	return &own
}

// A stream is standard output or standard error. It keeps the error of a failed write.
type stream struct {
	w        io.Writer
	terminal bool
	colours  bool // in texts for people

	mu     sync.Mutex // guards the fields below: several goroutines write to standard error
	screen *screen    // erased before a write; nil: none
	err    error
	open   bool // the output does not end with a newline
}

func newStream(w io.Writer, env map[string]string) *stream {
	s := &stream{w: w, terminal: isTerminal(w)}
	s.colours = s.terminal && env["NO_COLOR"] == "" && env["TERM"] != "dumb" // https://no-color.org
	return s
}

// errReaderGone ends a run whose reader has closed standard output, which is not a failure.
var errReaderGone = fmt.Errorf("the reader of the output has what it wanted: %w", io.ErrClosedPipe)

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.stop()
	n, err := s.w.Write(b)
	if n > 0 {
		s.open = b[n-1] != '\n'
	}
	switch {
	case errors.Is(err, syscall.EPIPE):
		return n, errReaderGone
	case err != nil:
		s.err = err
	}
	return n, err
}

// show makes writes erase a screen on the same terminal.
func (s *stream) show(above *screen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		s.screen = above
	}
}

// result returns the outcome of a writer that ended with err.
func (s *stream) result(err error) error {
	switch {
	case errors.Is(err, errReaderGone):
		return nil
	case s.err != nil && (err == nil || errors.Is(err, s.err)):
		return &failure{exitFailed, fmt.Errorf("writing the output: %w", s.err), "free some space, or write elsewhere"}
	}
	return err
}

// plain writes texts for people to a stream. It removes terminal commands, which the texts of servers may contain. Each
// write must be whole text.
type plain struct{ *stream }

func (p plain) Write(text []byte) (int, error) {
	clean := texts.Plain(string(text), true)
	if p.colours {
		clean = colourize(clean)
	}
	if _, err := io.WriteString(p.stream, clean); err != nil {
		return 0, err
	}
	return len(text), nil
}

// colours are words that stand out at the beginning of a line, with their escape sequences.
var colours = []struct{ word, code string }{
	{"error:", "1;31"}, {"hint:", "36"}, {"Try:", "36"}, {"note:", "33"}, {"warning:", "33"}, {"failed", "1;31"}, {"warning", "33"}, {"ok", "32"},
}

// colourize colours the first word of each line.
func colourize(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		rest := strings.TrimLeft(line, " ")
		for _, c := range colours {
			if after, ok := strings.CutPrefix(rest, c.word); ok && (after == "" || strings.HasPrefix(after, " ") || strings.HasPrefix(after, "\n")) {
				line = line[:len(line)-len(rest)] + "\x1b[" + c.code + "m" + c.word + "\x1b[0m" + after
				break
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// escapedJSON escapes the characters that a terminal would act on or hide.
func escapedJSON(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		if !unprintable(c) {
			b.WriteRune(c)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, c) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// unprintable characters occur only in JSON strings.
func unprintable(c rune) bool { return !unicode.IsPrint(c) }
