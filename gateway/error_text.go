package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/stages"
)

// samplePreview is how many characters an error shows of what the failed stage was given.
const samplePreview = 600

// pipelineSubject is what errors of execute_pipeline are about where no stage is named.
const pipelineSubject = "The pipeline"

// errorText writes why something failed, within n characters.
func errorText(subject string, err error, n int) string {
	var wrong wrongCall
	if errors.As(err, &wrong) {
		return mistakesText(subject, "The call", wrong, n)
	}
	return failureText(subject, asError(err), n)
}

// asError returns the error that says most; what has no code is INTERNAL.
func asError(err error) *stages.Error {
	var e *stages.Error
	if !errors.As(err, &e) {
		e = stages.Errorf(stages.Internal, "", "%w", err)
	}
	return e
}

// ErrorText writes the error of a run in the form of pipeline.md §6: where and what, the input of the stage, one
// concrete next step, and what was done before.
func ErrorText(e *stages.Error) string { return failureText(pipelineSubject, e, math.MaxInt) }

// failureText is ErrorText within n characters: a message that is too long gives way to what follows it.
func failureText(subject string, e *stages.Error, n int) string {
	head := where(subject, e, "failed") + ": " + string(e.Code) + "\n"
	tail := sampleText(e)
	tail += tryText(e)
	if e.RetryAfter > 0 {
		tail += fmt.Sprintf("The server asks to wait %s before another try.\n", e.RetryAfter.Round(time.Millisecond))
	}
	tail += doneText(e)
	if len(e.Changed) > 0 {
		tail += fmt.Sprintf("Calls that may have changed something, failed ones included: %s.\n", strings.Join(e.Changed, ", "))
	}
	left := n - utf8.RuneCountInString(head+tail)
	return shorten(head+shorten(e.Msg+"\n", max(left, smallestPart))+tail, n)
}

// fixMax is the size in bytes up to which a corrected stage is shown. A longer one is mended by its hint.
const fixMax = 2000

// tryText is one concrete next step, with the stage corrected where that is known.
func tryText(e *stages.Error) string {
	fix := ""
	if n := len(e.Fix); n > 0 && n <= fixMax {
		fix = string(e.Fix)
	}
	switch {
	case e.Hint != "" && fix != "":
		return fmt.Sprintf("Try: %s; write %s\n", e.Hint, fix)
	case e.Hint != "" || fix != "":
		return fmt.Sprintf("Try: %s\n", e.Hint+fix)
	}
	return ""
}

// doneText says what was done before, and how to continue from there.
func doneText(e *stages.Error) string {
	var parts []string
	if text := itemsText(e); text != "" {
		parts = append(parts, text)
	}
	switch {
	case e.Run != "" && e.Continue > 0:
		parts = append(parts, "Continue with "+fromStage(e.Run, e.Continue))
	case e.Standing != "":
		parts = append(parts, "Nothing to continue from: "+e.Standing)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " ") + "\n"
}

// itemsText says what became of the items of a for_each that failed.
func itemsText(e *stages.Error) string {
	if e.Item == 0 {
		return ""
	}
	rest := "; the rest was not tried"
	switch left := e.Items - e.Started; {
	case e.Items > 0 && left == 0: // the input had ended: all were started
		rest = ""
	case left > 0:
		rest = fmt.Sprintf(", %d not tried", left)
	}
	return fmt.Sprintf("Done before: %d %s succeeded, %d failed, %d cancelled%s.", e.Done, plural(e.Done, "item"), e.Failed, e.Started-e.Done-e.Failed, rest)
}

// where says what went wrong: a stage, or the subject where none is named.
func where(subject string, e *stages.Error, failed string) string {
	if e.Place == "" {
		return subject + " " + failed
	}
	text := fmt.Sprintf("Stage %s", e.Place)
	if e.Label != "" {
		text += fmt.Sprintf(" (%s)", e.Label)
	}
	text += " " + failed
	switch {
	case e.Item > 0 && e.Items > 0:
		text += fmt.Sprintf(" at item %d of %d", e.Item, e.Items)
	case e.Item > 0:
		text += fmt.Sprintf(" at item %d", e.Item)
	}
	return text
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// noProgram keeps proposals out of a preview: an error has a next step of its own.
func noProgram(string) bool { return false }

// sampleText shows what the failed stage was given.
func sampleText(e *stages.Error) string {
	if len(e.Sample) == 0 {
		return ""
	}
	var r io.Reader = bytes.NewReader(e.Sample)
	if e.Cut {
		r = io.MultiReader(r, cutReader{})
	}
	result, err := preview.Preview(context.Background(), r, preview.Options{Chars: samplePreview, Check: noProgram})
	if err != nil {
		return ""
	}
	what := result.Summary
	switch {
	case e.Item > 0:
		what = "item: " + what
	case e.Cut:
		what = "it begins with: " + what
	}
	return fmt.Sprintf("Input of the stage: %s\n%s\n", what, strings.TrimRight(result.Text, "\n"))
}

// cutReader says that the data went on.
type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
