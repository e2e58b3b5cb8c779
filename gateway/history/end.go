package history

import (
	"bytes"
	"time"
	"unsafe"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// Bounds of what is kept of one run, in bytes.
const (
	mostPlan   = 64 << 10
	mostOfOne  = 256 << 10
	mostText   = 4 << 10 // of a message or a sample
	mostWindow = 8 << 10
	ownSize    = 2 << 10 // of a run without stages
)

// An end is how a run has ended. It does not change.
type end struct {
	at       time.Time
	id       string // of the kept run
	state    string
	err      *control.RunError
	returned int64
	stages   []stages.StageReport
	windows  []stages.Window
	plan     int  // bytes of the plan, which is not kept if it is too long
	cut      bool // there was more

	elsewhere bool // at another gateway
	size      int64
}

func newEnd(report stages.Report, returned int64, err error) *end {
	e := &end{at: time.Now(), id: report.Run, returned: returned, stages: report.Stages, windows: report.Windows, state: control.RunOK}
	if err != nil {
		e.err = errorOf(err)
		e.state = stateOf(stages.Code(e.err.Code))
	}
	return e
}

// stateOf returns the state of a run that failed with a code.
func stateOf(code stages.Code) string {
	switch code {
	case stages.Cancelled:
		return control.RunCancelled
	case stages.Timeout:
		return control.RunTimedOut
	}
	return control.RunFailed
}

// errorOf copies what is to be seen of an error, which may hold much more.
func errorOf(err error) *control.RunError {
	e := stages.AsError(err)
	sample, _ := texts.Valid(e.Sample[:min(len(e.Sample), mostText)])
	r := &control.RunError{
		Code: string(e.Code), Place: texts.Cut(string(e.Place), mostText), Label: texts.Cut(e.Label, mostText), Item: e.Item,
		Message: texts.Cut(e.Msg, mostText), Hint: texts.Cut(e.Hint, mostText), Sample: sample,
	}
	if len(e.Fix) <= mostText {
		r.Fix = bytes.Clone(e.Fix) // it may be a part of the plan
	}
	return r
}

// fit leaves out what exceeds the bounds, and counts the rest beside so many bytes of what was known at the begin.
func (e *end) fit(begin int64) {
	if e.err != nil {
		begin += sizeOfError(e.err)
	}
	if len(e.windows) > 0 {
		e.stages = withoutWindows(e.stages)
	}
	for i, w := range e.windows {
		if len(w.Text) > mostWindow {
			e.windows = append(e.windows[:0:0], e.windows...)
			e.windows[i].Text, e.cut = texts.Cut(w.Text, mostWindow), true
		}
	}
	for _, leaveOut := range []func(){
		func() {},
		func() { e.windows = nil },
		func() { e.stages = withoutNested(e.stages) },
		func() { e.stages = nil },
	} {
		leaveOut()
		e.size = ownSize + begin + sizeOf(e.stages)
		for _, w := range e.windows {
			e.size += int64(unsafe.Sizeof(w)) + int64(len(w.Text))
		}
		if e.size <= mostOfOne {
			return
		}
		e.cut = true
	}
}

// sizeOfError returns how much memory the texts of an error take.
func sizeOfError(e *control.RunError) int64 {
	return int64(len(e.Place) + len(e.Label) + len(e.Message) + len(e.Hint) + len(e.Fix) + len(e.Sample))
}

// withoutWindows returns stages without the texts of their windows, which the report has, too.
func withoutWindows(list []stages.StageReport) []stages.StageReport {
	own := append(list[:0:0], list...)
	for i := range own {
		own[i].Window, own[i].Stages = nil, withoutWindows(own[i].Stages)
	}
	return own
}

// withoutNested returns stages without those within them and without texts; nil: there are too many.
func withoutNested(list []stages.StageReport) []stages.StageReport {
	if uintptr(len(list))*unsafe.Sizeof(stages.StageReport{}) > mostOfOne {
		return nil
	}
	short := append(list[:0:0], list...)
	for i := range short {
		short[i].Stages, short[i].Notes, short[i].Messages, short[i].LeftOut = nil, nil, nil, nil
	}
	return short
}

// sizeOf returns about how much memory reports of stages take.
func sizeOf(list []stages.StageReport) (n int64) {
	for _, s := range list {
		n += int64(unsafe.Sizeof(s)) + int64(len(s.Place)+len(s.Label.Server)+len(s.Label.Name)+len(s.Branch)+len(s.Input)+len(s.Tool.Message))
		for _, m := range s.Messages {
			n += int64(unsafe.Sizeof(m)) + int64(len(m.Text))
		}
		for _, list := range [][]string{s.Notes, s.LeftOut} {
			for _, text := range list {
				n += int64(unsafe.Sizeof(text)) + int64(len(text))
			}
		}
		n += sizeOf(s.Stages)
	}
	return n
}
