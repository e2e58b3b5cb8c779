package stages

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
	Place    Place   `json:"stage"`
	Label    Label   `json:"label"`
	Branch   string  `json:"branch,omitempty"`
	Input    string  `json:"input,omitempty"`    // of a command, whose output it becomes
	Changes  bool    `json:"changes,omitempty"`  // whether its calls may have changed something
	Items    int64   `json:"items,omitempty"`    // items of a for_each that were started
	Calls    int64   `json:"calls,omitempty"`    // tool calls that were sent, each attempt of an item
	Refused  int64   `json:"refused,omitempty"`  // of those, where they may change something, answered with an error
	Unknown  int64   `json:"unknown,omitempty"`  // of those, not answered: they may have taken effect
	Returned int64   `json:"returned,omitempty"` // bytes that they returned
	BytesIn  int64   `json:"bytes_in"`
	BytesOut int64   `json:"bytes_out"`
	Millis   float64 `json:"ms"` // from its start to its end, waiting for other stages included

	// Busy is the time in milliseconds in which calls of the stage's tool were in flight, or the processor time of its command.
	Busy float64 `json:"busy_ms,omitempty"`

	LeftOut []string `json:"left_out,omitempty"` // fields of the data that the tool does not take
	Untaken bool     `json:"untaken,omitempty"`  // of some object the tool took no field at all, and its items are not in the output

	// Of the items of a for_each that have ended:
	OK            int64          `json:"ok,omitempty"`             // succeeded
	Failed        int64          `json:"failed,omitempty"`         // failed for good
	Skipped       int64          `json:"skipped,omitempty"`        // of those, left out of the output
	Retried       int64          `json:"retried,omitempty"`        // succeeded after a retry
	Retries       int64          `json:"retries,omitempty"`        // extra attempts
	Shared        int64          `json:"shared,omitempty"`         // answered by an equal call
	Resumed       int64          `json:"resumed,omitempty"`        // not run: an earlier run had completed them
	Messages      []FailureGroup `json:"messages,omitempty"`       // what failures said, the most frequent first
	OtherMessages int64          `json:"other_messages,omitempty"` // failures that said something else

	// Of a tool stage that fetches all pages:
	Pages   int64 `json:"pages,omitempty"`   // pages with items
	Fetched int64 `json:"fetched,omitempty"` // items on them
	More    bool  `json:"more,omitempty"`    // the most pages were fetched that may be, and there are more

	// Total is how many items there are, those that have not begun included: exact when all have begun, else estimated from the bytes
	// of the input; 0: not known yet.
	Total int64 `json:"-"`
	ahead int64 // bytes of the input that were read for items to come

	Tool ToolProgress `json:"-"` // what its tool says, summed over its calls

	Complete          bool  `json:"complete,omitempty"` // all lists were fetched to their ends
	lists, listsEnded int64 // lists of pages: begun, and fetched to the end

	Notes []string `json:"notes,omitempty"` // what its author should look at: fields that did nothing, words of a command

	Stages []StageReport `json:"stages,omitempty"` // stages within this one, summed over all items

	Window *string `json:"-"` // the text of a window, the latest where it looked more than once
}

// A FailureGroup is failures that say the same but for numbers and quoted words.
type FailureGroup struct {
	Text  string `json:"text"`
	Count int64  `json:"count"`
}

// Window is the text of a preview stage through which data passed on.
type Window struct {
	Place Place  `json:"stage"`
	Text  string `json:"text"`
}

// Meter counts what one stage did in one run, over all of its calls. Its methods may be called concurrently.
type Meter struct {
	step   *Step
	nested []*Meter    // one per step of Step.Nested, in order
	broke  atomic.Bool // whether a call of the filter ended with an error

	mu       sync.Mutex
	counts   StageReport             // so far, without what report derives; guarded by mu, as is everything below
	elapsed  time.Duration           // of all calls of the filter
	busy     time.Duration           // of its command, or in which calls were in flight, before since
	calling  int                     // calls of a tool in flight
	since    time.Time               // when calling was last 0
	waiting  int                     // calls that wait, see [Call].Waits
	why      string                  // the last one of them waits
	sample   []byte                  // the beginning of the input
	failures failureGroups           // of items
	ran      []StageReport           // of the pipelines that calls have run, see [Meter.nests]
	running  []*func() []StageReport // of those that calls run now
	spread   *StageReport            // of its shards; nil: it has none
	uses     map[string]use          // of the fields that can do nothing without anybody seeing it, by name
}

func newMeter(step *Step) *Meter { return &Meter{step: step} }

// count changes the counts.
func (m *Meter) count(change func(r *StageReport)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.counts)
}

// waits notes that a call waits, until over is called.
func (m *Meter) waits(why string) (over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting++
	m.why = why
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.waiting--
	}
}

// waitsFor says why calls of m and of everything within it wait, or have waited when their run ended; empty: none does.
func (m *Meter) waitsFor() string {
	m.mu.Lock()
	why, nested := m.why, m.nested
	if m.waiting == 0 {
		why = ""
	}
	m.mu.Unlock()
	for i := 0; why == "" && i < len(nested); i++ {
		why = nested[i].waitsFor()
	}
	return why
}

// report returns the counts of m and of everything within it. Of a stage with the flag for_each, calls are those of the
// stage that runs once per item.
func (m *Meter) report() StageReport {
	r := m.here()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spread != nil {
		r.add(*m.spread)
	}
	return r
}

// here is [Meter.report] without what workers have counted.
func (m *Meter) here() StageReport {
	r := m.own()
	if m.step.flag && len(m.nested) == 1 {
		calls := m.nested[0].report()
		r.Calls, r.Refused, r.Unknown, r.Returned, r.Shared = calls.Calls, calls.Refused, calls.Unknown, calls.Returned, calls.Shared
		r.Pages, r.Fetched, r.More, r.Complete = calls.Pages, calls.Fetched, calls.More, calls.Complete
		r.LeftOut, r.Untaken, r.Tool, r.Busy, r.Stages = calls.LeftOut, calls.Untaken, calls.Tool, calls.Busy, calls.Stages
		r.Notes = append(r.Notes, calls.Notes...)
		return r
	}
	if len(m.nested) == 0 {
		r.Stages = m.inner()
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

// own returns the counts of the stage itself.
func (m *Meter) own() StageReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.counts
	r.Place, r.Label, r.Changes = m.step.place, m.step.Label, m.step.Changes
	r.LeftOut = slices.Sorted(slices.Values(r.LeftOut))
	r.Complete = r.lists > 0 && r.lists == r.listsEnded
	r.Messages, r.OtherMessages = m.failures.most(shownMessages)
	busy := m.busy
	if m.calling > 0 {
		busy += time.Since(m.since)
	}
	r.Millis, r.Busy = millis(m.elapsed), millis(busy)
	for _, field := range slices.Sorted(maps.Keys(m.uses)) {
		if u := m.uses[field]; !u.worked {
			r.Notes = append(r.Notes, u.idle)
		}
	}
	return r
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// reports are those of the meters of a pipeline.
func reports(meters []*Meter) (list []StageReport) {
	for i, m := range meters {
		list = append(list, m.report())
		list[i].Total = list[i].total(i > 0 && list[i-1].Millis > 0)
	}
	return list
}

// total returns [StageReport.Total]. whole: the stage before has ended, so all of the input has been read.
func (r *StageReport) total(whole bool) int64 {
	begun := r.BytesIn - r.ahead
	switch {
	case r.Millis > 0:
		return r.Items
	case !whole || r.Items == 0 || begun <= 0:
		return 0
	}
	return int64(math.Round(float64(r.Items) * float64(r.BytesIn+1) / float64(begun+1))) // a separator is read with the next item
}

// windows returns those of stages, in their order.
func windows(stages []StageReport) (list []Window) {
	for _, s := range stages {
		if s.Window != nil {
			list = append(list, Window{s.Place, *s.Window})
		}
		list = append(list, windows(s.Stages)...)
	}
	return list
}

// A use is whether a field of a stage has done anything, and what to say if it has not.
type use struct {
	worked bool
	idle   string
}

// used notes whether a field of the stage has done something this time.
func (m *Meter) used(field string, worked bool, idle string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(field, worked, idle)
}

// note is [Meter.used] for a caller that holds mu.
func (m *Meter) note(field string, worked bool, idle string) {
	if m.uses == nil {
		m.uses = map[string]use{}
	}
	m.uses[field] = use{worked || m.uses[field].worked, idle}
}

// maxLeftOut bounds how many left-out fields a report names: data can have any number.
const maxLeftOut = 50

// leave notes fields that were left out of a tool's arguments, once each; none: they were all that an object had.
func (m *Meter) leave(fields []string, none bool) {
	m.count(func(r *StageReport) {
		r.Untaken = r.Untaken || none
		for _, f := range fields {
			if len(r.LeftOut) < maxLeftOut && !slices.Contains(r.LeftOut, f) {
				r.LeftOut = append(r.LeftOut, f)
			}
		}
	})
}

// add counts what a command used.
func (m *Meter) add(u Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.BytesIn += u.BytesIn
	m.counts.BytesOut += u.BytesOut
	m.elapsed += u.Elapsed
	m.busy += u.CPU
	if _, again := m.uses[standardError]; u.Said != "" && !again {
		m.note(standardError, false, "it wrote to standard error: "+strconv.Quote(u.Said))
	}
}

// standardError stands for what a command writes besides its output, among the fields of a stage.
const standardError = "standard error"

// time counts one call of the filter from now until the returned function is called.
func (m *Meter) time() (stop func()) {
	start := time.Now()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.elapsed += time.Since(start)
	}
}

// call counts one call of a tool as in flight from now until the returned function is called.
func (m *Meter) call() (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calling++; m.calling == 1 {
		m.since = time.Now()
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.calling--; m.calling == 0 {
			m.busy += time.Since(m.since)
		}
	}
}

// failed counts an item that failed.
func (m *Meter) failed(msg string, skipped bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.Failed++
	if skipped {
		m.counts.Skipped++
	}
	m.failures.add(msg, 1)
}

// sampleSize is how many bytes of the input of a stage are remembered for its errors.
const sampleSize = 32 << 10

// head returns the beginning of the stage's input, and whether that is not all of it.
func (m *Meter) head() (sample []byte, cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sample, m.counts.BytesIn > int64(len(m.sample))
}

// A meteredReader counts what is read, and remembers its beginning where keep is set.
type meteredReader struct {
	r    io.Reader
	m    *Meter
	keep bool
}

func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.m.counts.BytesIn += int64(n)
	if r.keep {
		room := sampleSize - len(r.m.sample)
		r.m.sample = append(r.m.sample, p[:min(room, n)]...)
	}
	return n, err
}

// left is how many bytes are still to be read of an item, which is in memory; 0 where that is not known.
func (r *meteredReader) left() int {
	if item, ok := r.r.(*bytes.Reader); ok {
		return item.Len()
	}
	return 0
}

// CloseWithError passes the end of reading on to the pipe behind the meter.
func (r *meteredReader) CloseWithError(error) error {
	stopReading(r.r)
	return nil
}

// A meteredWriter counts what is written.
type meteredWriter struct {
	w io.Writer
	m *Meter
}

func (w *meteredWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.m.count(func(r *StageReport) { r.BytesOut += int64(n) })
	return n, err
}
