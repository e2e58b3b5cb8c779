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

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/stages"
)

// samplePreview bounds the characters that an error shows of the input of the failed stage.
const samplePreview = 600

// pipelineSubject is the subject of errors of execute_pipeline that name no stage.
const pipelineSubject = "The pipeline"

// errorText describes a failure within n characters.
func errorText(subject string, err error, n int) string {
	if wrong, ok := errors.AsType[wrongCall](err); ok {
		return mistakesText(subject, "The call", wrong, n)
	}
	return failureText(subject, stages.AsError(err), n)
}

// ErrorText writes the error of a run in the form of docs/pipeline.md, Errors: the stage and the error, the input of the stage, one
// concrete next step, and the calls that succeeded before.
func ErrorText(e *stages.Error) string { return failureText(pipelineSubject, e, math.MaxInt) }

// failureText is ErrorText within n characters. It shortens the message first.
func failureText(subject string, e *stages.Error, n int) string {
	head := where(subject, e, "failed") + ": " + string(e.Code) + "\n"
	tail := sampleText(e)
	tail += tryText(e)
	if e.RetryAfter > 0 {
		tail += fmt.Sprintf("The server asks to wait %s before another try.\n", e.RetryAfter.Round(time.Millisecond))
	}
	if e.Backoff > e.RetryAfter {
		tail += fmt.Sprintf("The gateway tries the server again in %s.\n", e.Backoff.Round(time.Millisecond))
	}
	tail += doneText(e)
	if len(e.Changed) > 0 {
		tail += fmt.Sprintf("Calls that may have changed something, failed ones included: %s.\n", texts.Plain(strings.Join(e.Changed, ", "), false))
	}
	left := n - utf8.RuneCountInString(head+tail)
	return shorten(head+shorten(messageText("", e), max(left, smallestPart))+tail, n)
}

// messageText returns the field of an error and its message. Foreign words in it are behind the fence, and ours before and
// after them are not. Of other messages it fences all lines but the first.
func messageText(field string, e *stages.Error) string {
	words, end := e.Msg, ""
	if rest, ok := strings.CutSuffix(words, e.Own); ok && e.Own != "" && (e.Foreign || e.Said != "") {
		words, end = rest, strings.TrimSpace(e.Own)+"\n"
	}
	if field == "" && (e.Foreign || e.Code == stages.Internal) { // an internal error may quote foreign text
		return Fenced(words) + end
	}
	if head, ok := strings.CutSuffix(words, e.Said); ok && e.Said != "" {
		return fencedRest(field+strings.TrimRight(head, " ")) + Fenced(e.Said) + end
	}
	return fencedRest(field + e.Msg)
}

// fixMax is the size of the largest corrected stage that an error shows, in bytes. A larger one has only its hint.
const fixMax = 2000

// tryText returns the next step, with the corrected stage if it is known.
func tryText(e *stages.Error) string {
	text := texts.Plain(e.Hint, false)
	if n := len(e.Fix); n > 0 && n <= fixMax {
		if text != "" {
			text += "; write "
		}
		text += string(e.Fix)
	}
	if text == "" {
		return ""
	}
	return "Try: " + text + "\n"
}

// doneText lists the calls that succeeded, and says how to continue.
func doneText(e *stages.Error) string {
	text := itemsText(e)
	switch {
	case e.Resume && e.Code == stages.Denied: // the item would be refused again
		text += " Continue with " + stages.ResumeStage(e.Run, `"on_error": "skip"`)
	case e.Resume:
		text += " Continue with " + stages.ResumeStage(e.Run)
	case e.Continue > 0:
		text += " Continue with " + fromStage(e.Run, e.Continue)
	}
	if text == "" {
		return ""
	}
	return strings.TrimPrefix(text, " ") + "\n"
}

// itemsText counts the outcomes of the items of a failed for_each.
func itemsText(e *stages.Error) string {
	if e.Item == 0 {
		return ""
	}
	rest := "; the rest was not tried"
	switch left := e.Items - e.Started; {
	case e.Items > 0 && left == 0: // the input had ended, so all items had started
		rest = ""
	case left > 0:
		rest = fmt.Sprintf(", %d not tried", left)
	}
	return fmt.Sprintf("Done before: %s succeeded, %d failed, %d cancelled%s.", texts.Count(e.Done, "item"), e.Failed, e.Started-e.Done-e.Failed, rest)
}

// where names the failed stage, or the subject if the error names no stage.
func where(subject string, e *stages.Error, failed string) string {
	if e.Place == "" {
		return subject + " " + failed
	}
	text := "Stage " + texts.Plain(string(e.Place), false)
	if e.Label != "" {
		text += fmt.Sprintf(" (%s)", texts.Plain(e.Label, false))
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

// noProgram drops the proposals of a preview: an error has its own next step.
func noProgram(string) bool { return false }

// sampleText shows the input of the failed stage.
func sampleText(e *stages.Error) string {
	if len(e.Sample) == 0 {
		return ""
	}
	var r io.Reader = bytes.NewReader(e.Sample)
	if e.Cut {
		r = io.MultiReader(r, failing{io.ErrUnexpectedEOF}) // the data went on
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
	return fmt.Sprintf("Input of the stage: %s\n%s", texts.Plain(what, false), Fenced(strings.TrimRight(result.Text, "\n")))
}
