package ui

import (
	"cmp"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// A box is a stage in the picture of a plan.
type box struct {
	Place, Kind, Name string
	Does              string // of a plan
	Changes           bool
	State             string // of a run: waiting, running, done, failed, stopped, not run; empty: it is a plan
	Figures           []string
	Done, Total       int64  // of the bar; Total 0: there is none
	Link              string // to the stage alone
	Current           bool
	Lanes             []lane
}

// A lane is a row of boxes within a box.
type lane struct {
	Name  string // of the branch or of the input; empty: the stages of a for_each
	Input bool   // its output becomes an input of the command
	Boxes []box
}

// Badge is the kind of the badge with the state.
func (b box) Badge() string {
	return map[string]string{"running": "busy", "done": "good", "failed": "bad", "stopped": "warn"}[b.State]
}

// lanes puts boxes into lanes by the names of their branches or inputs, which their neighbours share.
func lanes[S any](list []S, show func(S) (b box, branch, input string)) (all []lane) {
	for _, s := range list {
		b, branch, input := show(s)
		name := cmp.Or(branch, input)
		if n := len(all); n == 0 || all[n-1].Name != name {
			all = append(all, lane{Name: name, Input: input != ""})
		}
		last := &all[len(all)-1]
		last.Boxes = append(last.Boxes, b)
	}
	return all
}

// titled splits the label of a stage into its kind and what it is about.
func titled(label string) (kind, name string) {
	kind, name, _ = strings.Cut(label, " ")
	return kind, name
}

// planPicture is the picture of a checked plan.
func planPicture(list []stages.PlanStage) []lane {
	return lanes(list, func(s stages.PlanStage) (box, string, string) {
		b := box{Place: string(s.Place), Does: texts.Fit(s.Does, 240), Changes: s.Changes, Lanes: planPicture(s.Stages)}
		b.Kind, b.Name = titled(s.Label)
		return b, s.Branch, s.Input
	})
}

// runPicture is the picture of a run. current is the place of the stage that is looked at.
func runPicture(d *control.RunDetail, current string) []lane { return runLanes(d, d.Stages, current) }

func runLanes(d *control.RunDetail, list []control.RunStage, current string) []lane {
	return lanes(list, func(s control.RunStage) (box, string, string) {
		b := box{
			Place: s.Place, Changes: s.Changes, State: stateOf(d, &s), Figures: figures(&s), Done: min(s.OK+s.Failed+s.Resumed, s.Total), Total: s.Total,
			Link: "runs/" + url.PathEscape(d.Request) + "?stage=" + url.QueryEscape(s.Place) + "#stage", Current: s.Place == current,
			Lanes: runLanes(d, s.Stages, current),
		}
		if s.Total == 0 && s.ToolTotal > 0 && !s.Ended {
			b.Done, b.Total = int64(s.ToolDone), int64(math.Ceil(s.ToolTotal))
		}
		if s.Ended {
			b.Total = 0
		}
		b.Kind, b.Name = titled(s.Label)
		return b, s.Branch, s.Input
	})
}

// stateOf says how a stage of a run stands.
func stateOf(d *control.RunDetail, s *control.RunStage) string {
	begun := s.BytesIn > 0 || s.BytesOut > 0 || s.Items > 0 || s.Calls > 0 || s.Millis > 0
	switch {
	case d.Error != nil && d.Error.Place != "" && (d.Error.Place == s.Place || strings.HasPrefix(d.Error.Place, s.Place+".")):
		return "failed"
	case !d.Live() && d.State != control.RunOK && begun && !s.Ended, !d.Live() && d.State != control.RunOK && s.Ended && s.BytesOut == 0:
		return "stopped"
	case s.Ended, !d.Live() && begun, !d.Live() && d.State == control.RunOK && !d.DryRun:
		return "done"
	case !d.Live():
		return "not run"
	case begun, !s.Changes && !strings.Contains(s.Place, "."): // all stages run at the same time, but for those that may change something
		return "running"
	}
	return "waiting"
}

// figures are the counts of a stage for people, those that say something.
func figures(s *control.RunStage) (list []string) {
	add := func(n int64, text string) {
		if n > 0 {
			list = append(list, text)
		}
	}
	items := number(s.OK + s.Failed + s.Resumed)
	if s.Total > 0 && !s.Ended {
		items += " of " + number(s.Total)
	}
	add(s.Items+s.Resumed, items+" items")
	add(s.Failed, number(s.Failed)+" failed")
	add(s.Calls, plural(s.Calls, "call"))
	add(s.Retries, plural(s.Retries, "retry"))
	add(s.BytesIn+s.BytesOut, texts.Bytes(s.BytesIn)+" → "+texts.Bytes(s.BytesOut))
	add(int64(s.Millis*1000), Duration(time.Duration(s.Millis*float64(time.Millisecond))))
	return list
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if rest, ok := strings.CutSuffix(noun, "y"); ok {
		return number(n) + " " + rest + "ies"
	}
	return number(n) + " " + noun + "s"
}

// stageAt finds a stage of a run by its place.
func stageAt(list []control.RunStage, place string) *control.RunStage {
	for i := range list {
		if list[i].Place == place {
			return &list[i]
		}
		if found := stageAt(list[i].Stages, place); found != nil {
			return found
		}
	}
	return nil
}
