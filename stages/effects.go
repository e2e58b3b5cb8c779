package stages

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// takenName is the output of a run that says which of its stages are not to be run again.
const takenName = "taken"

// A taken stage has changed something, or may have, and cannot be taken up where it stopped.
type taken struct {
	Stage int    `json:"stage"`
	Done  string `json:"done"` // who it is, and what it has called

	Acts []actKey `json:"acts,omitempty"`
}

// effects counts the calls of a stage, and of those within it, that may have taken effect: all but those that the tool
// said to have failed.
func (m *Meter) effects() (n int64) {
	for inner := range m.all() {
		n += inner.took.Load()
	}
	return n
}

// takenStages lists the stages that must not be run again as they are, so that a run is continued from none before them.
// A for_each of the pipeline is not among them as long as its items are known one by one: it is taken up.
func (p *Pipeline) takenStages(rec past, meters []*Meter) (list []taken) {
	for i, s := range p.steps {
		m := meterOf(meters, s)
		if m == nil || m.effects() == 0 {
			continue
		}
		if isEach(p.list[i]) && !changingInputs([]*Step{s}) {
			_, incomplete, release := rec.runs.Open(rec.id, itemsName(i+1))
			release()
			if incomplete == "" {
				continue
			}
		}
		list = append(list, taken{i + 1, doneBy(s, m), m.acted()})
	}
	return list
}

func meterOf(meters []*Meter, s *Step) *Meter {
	for _, m := range meters {
		if m.step == s {
			return m
		}
	}
	return nil
}

// doneBy says what a stage has changed: "stage 2 (parallel) has run demo/write (3 times)".
func doneBy(s *Step, m *Meter) string {
	return fmt.Sprintf("stage %s (%s) has run %s", s.place, s.Label, strings.Join(m.takers(), ", "))
}

// takers names what has taken effect, or may have, and how often.
func (m *Meter) takers() (list []string) {
	for inner := range m.all() {
		n := inner.took.Load()
		if n == 0 {
			continue
		}
		times := "once"
		if n > 1 {
			times = fmt.Sprintf("%d times", n)
		}
		list = append(list, fmt.Sprintf("%s (%s)", strings.TrimPrefix(inner.step.Label, "tool "), times))
	}
	return list
}

// standing says why one cannot begin before a stage that is not to be run again, and what to do instead.
func (p past) standing(t taken) string {
	_, why := p.whole(t.Stage)
	text := t.Done + ", which may have taken effect and would be repeated, and its output is not kept"
	if why != "" {
		text += ": " + why
	}
	text += ". Find out what was changed (with a tool that reads), and run only what is left"
	if whole, _ := p.whole(t.Stage - 1); whole && t.Stage > 1 {
		text += fmt.Sprintf(`; what came to stage %d is kept, for that: {"type": "from", "run": %q, "stage": %d}`, t.Stage, p.id, t.Stage-1)
	}
	return text
}

// keepTaken writes down which stages are not to be run again, for whoever wants to begin before them.
func (rec *record) keepTaken(list []taken) {
	if len(list) == 0 {
		return
	}
	out, end := rec.runs.Create(rec.id, takenName, false)
	text, err := json.Marshal(list)
	if err == nil {
		_, err = out.Write(text)
	}
	if err != nil {
		end("what was done cannot be written down")
		return
	}
	end("")
}

// takenStages returns what keepTaken has written.
func (p past) takenStages() (list []taken) {
	data, _, release := p.runs.Open(p.id, takenName)
	defer release()
	if data == nil {
		return nil
	}
	text, err := io.ReadAll(data)
	if err == nil {
		_ = json.Unmarshal(text, &list) // it was written by this process
	}
	return list
}
