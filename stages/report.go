package stages

import (
	"encoding/json"
	"slices"
	"time"
)

// Report says what a run did, stage by stage.
type Report struct {
	Run     string // the run's id, by which a later pipeline continues from it; empty where nothing is kept
	Elapsed time.Duration
	Stages  []StageReport

	// Windows holds what preview stages that are not the output saw, in the order of their stages.
	Windows []Window

	// DryRun is set when a dry run has succeeded.
	DryRun *DryRun

	// Blocks is set when the last stage is a tool whose result is not all text: its content blocks, as MCP writes them.
	Blocks []json.RawMessage
}

// StageReport is one line of a report.
type StageReport struct {
	Place    Place         `json:"stage"`
	Label    string        `json:"label"`
	Branch   string        `json:"branch,omitempty"`
	Input    string        `json:"input,omitempty"`   // of a command, whose output it becomes
	Changes  bool          `json:"changes,omitempty"` // whether its calls may have changed something
	Items    int64         `json:"items,omitempty"`   // items of a for_each that were started
	Calls    int64         `json:"calls,omitempty"`   // tool calls
	BytesIn  int64         `json:"bytes_in"`
	BytesOut int64         `json:"bytes_out"`
	Elapsed  time.Duration `json:"-"`
	Millis   float64       `json:"ms"`
	LeftOut  []string      `json:"left_out,omitempty"` // fields of the data that the tool does not take

	// Of the items of a for_each that have ended:
	OK            int64      `json:"ok,omitempty"`             // succeeded
	Failed        int64      `json:"failed,omitempty"`         // failed for good
	Skipped       int64      `json:"skipped,omitempty"`        // of those, left out of the output
	Retried       int64      `json:"retried,omitempty"`        // succeeded after a retry
	Retries       int64      `json:"retries,omitempty"`        // extra attempts
	Shared        int64      `json:"shared,omitempty"`         // answered by an equal call
	Resumed       int64      `json:"resumed,omitempty"`        // not run: an earlier run had completed them
	Messages      []Messages `json:"messages,omitempty"`       // what failures said, the most frequent first
	OtherMessages int64      `json:"other_messages,omitempty"` // failures that said something else

	// Of a tool stage that fetches all pages:
	Pages   int64 `json:"pages,omitempty"`   // pages with items
	Fetched int64 `json:"fetched,omitempty"` // items on them
	More    bool  `json:"more,omitempty"`    // the most pages were fetched that may be, and there are more

	Complete bool `json:"complete,omitempty"` // all lists were fetched to their ends

	Notes []string `json:"notes,omitempty"` // which of its fields did nothing, though they should have

	Stages []StageReport `json:"stages,omitempty"` // stages within this one, summed over all items
}

// Messages are failures that say the same but for numbers and quoted words.
type Messages struct {
	Text  string `json:"text"`
	Count int64  `json:"count"`
}

// Window is the text of a preview stage through which data passed on.
type Window struct {
	Place Place
	Text  string
}

// report takes the counts of m and of everything within it.
func (m *Meter) report() StageReport {
	m.mu.Lock()
	leftOut := slices.Sorted(slices.Values(m.leftOut))
	notes := m.idle()
	m.mu.Unlock()
	elapsed := time.Duration(m.elapsed.Load())
	r := StageReport{
		Place: m.step.place, Label: m.step.Label, Changes: m.step.Effect == Changes,
		Items: m.items.Load(), Calls: m.calls.Load(), Shared: m.shared.Load(), Resumed: m.resumed.Load(),
		Pages: m.pages.Load(), Fetched: m.fetched.Load(), More: m.more.Load(),
		Complete: m.lists.Load() > 0 && m.lists.Load() == m.ended.Load(),
		BytesIn:  m.bytesIn.Load(), BytesOut: m.bytesOut.Load(),
		Elapsed: elapsed, Millis: float64(elapsed.Microseconds()) / 1000,
		LeftOut: leftOut, Notes: notes,
	}
	m.tally.report(&r)
	if m.step.mapped != nil && len(m.nested) == 1 {
		inner := m.nested[0].report()
		r.Calls, r.Shared, r.LeftOut, r.Stages = inner.Calls, inner.Shared, inner.LeftOut, inner.Stages
		r.Notes = append(r.Notes, inner.Notes...)
		r.Pages, r.Fetched, r.More, r.Complete = inner.Pages, inner.Fetched, inner.More, inner.Complete
		return r
	}
	if len(m.nested) == 0 {
		return r
	}
	i := 0
	for _, n := range m.step.Nested {
		for range n.Steps {
			inner := m.nested[i].report()
			inner.Branch, inner.Input = n.names()
			r.Stages = append(r.Stages, inner)
			i++
		}
	}
	return r
}
