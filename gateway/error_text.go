package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/stages"
)

// samplePreview is how many characters an error shows of what the failed stage was given.
const samplePreview = 600

func errorText(err error) string {
	var e *stages.Error
	if !errors.As(err, &e) {
		e = stages.Errorf(stages.Internal, "", "%w", err)
	}
	return ErrorText(e)
}

// ErrorText writes the error of a run in the form of pipeline.md §6: where and what, the input of the stage, one
// concrete next step, and what was done before.
func ErrorText(e *stages.Error) string {
	var b strings.Builder
	b.WriteString(where(e, "failed") + ": " + string(e.Code) + "\n")
	fmt.Fprintf(&b, "%s\n", e.Msg)
	if text := sampleText(e); text != "" {
		b.WriteString(text)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "Try: %s\n", e.Hint)
	}
	b.WriteString(doneText(e))
	return b.String()
}

// doneText says what became of the items of a for_each that failed.
func doneText(e *stages.Error) string {
	if e.Item == 0 {
		return ""
	}
	rest := "; the rest was not tried"
	if e.Items > 0 { // the input had ended: all were started
		rest = ""
	}
	return fmt.Sprintf("Done before: %d %s succeeded, 1 failed, %d cancelled%s.\n", e.Done, plural(e.Done, "item"), e.Started-e.Done-1, rest)
}

func where(e *stages.Error, failed string) string {
	if e.Place == "" {
		return "The pipeline " + failed
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

// sampleText shows what the failed stage was given.
func sampleText(e *stages.Error) string {
	if len(e.Sample) == 0 {
		return ""
	}
	var r io.Reader = bytes.NewReader(e.Sample)
	if e.Cut {
		r = io.MultiReader(r, cutReader{})
	}
	result, err := preview.Preview(context.Background(), r, preview.Options{Chars: samplePreview})
	if err != nil {
		return ""
	}
	name := "Input of the stage"
	if e.Item > 0 {
		name = "The item"
	}
	return fmt.Sprintf("%s: %s\n%s\n", name, result.Summary, strings.TrimRight(result.Text, "\n"))
}

// cutReader says that the data went on.
type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// PlanErrorText writes everything that is wrong with a plan.
func PlanErrorText(errs []*stages.Error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The pipeline was not run: %d %s. Nothing was called.\n", len(errs), plural(len(errs), "mistake"))
	for i, e := range errs {
		fmt.Fprintf(&b, "%d. %s: %s\n", i+1, where(e, "is wrong"), e.Code)
		field := ""
		if e.Field != "" && !strings.Contains(e.Msg, e.Field) {
			field = e.Field + ": "
		}
		fmt.Fprintf(&b, "   %s%s\n", field, strings.ReplaceAll(e.Msg, "\n", "\n   "))
		if e.Hint != "" {
			fmt.Fprintf(&b, "   Try: %s\n", e.Hint)
		}
	}
	return b.String()
}

// PlanText writes what a pipeline would do.
func PlanText(p stages.Plan) string {
	var b strings.Builder
	b.WriteString("The plan is right. Nothing was called.\n")
	writePlan(&b, p.Stages, "")
	return b.String()
}

func writePlan(b *strings.Builder, list []stages.PlanStage, indent string) {
	for _, s := range list {
		effect := "only reads"
		if s.Changes {
			effect = "MAY CHANGE THINGS: runs only after every stage before it has succeeded"
		}
		fmt.Fprintf(b, "%sStage %s (%s): %s; %s; expects %s\n", indent, s.Place, s.Label, s.Does, effect, s.Expects)
		writePlan(b, s.Stages, indent+"  ")
	}
}
