package stages

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a shard: a part of the items of a for_each that a worker runs as a run of its own.
const (
	shardLeast  = 16
	shardItems  = 10_000           // at most
	shardWork   = 2 * time.Second  // that it is made for, as far as the first items tell
	shardBytes  = 4 << 20          // of items, and fewer where more than 8 shards run at once
	shardTime   = 45 * time.Second // after which it begins no item; the others become another shard
	shardOutput = 16 << 20         // bytes, likewise
	shardAtOnce = 8                // items, where the for_each allows so many
)

// Workers continue runs in other processes.
type Workers interface {
	// Continue continues a submitted run with these choices until it ends. When a process dies, another one goes on. An error
	// leaves open how the run ended; the end of ctx cancels it.
	Continue(ctx context.Context, run string, choices Overrides) (Ended, error)
}

// Ended says how a run ended that workers have continued.
type Ended struct {
	Run    string // that has the outputs
	Stages []StageReport
	Err    *Error // nil: it succeeded
	Before bool   // it had ended before it was to be continued
}

// A shard is what the plan of a run has besides its stages, if the run does a part of a for_each.
type shard struct {
	Before int      `json:"before"` // items of the for_each that precede its own
	Output int64    `json:"output"` // see [Spread]
	Calls  int64    `json:"calls"`  // of tools, after which it begins no item; nor after as many items
	Marks  []string `json:"marks"`  // see [Pipeline.Marks], in the order of the stages
}

// A lane is some successive items. One shard runs them; the next shard runs those that it leaves.
type lane struct {
	before int
	items  []element
	bytes  int64
	start  int    // items before the lane; before grows as shards end
	sum    []byte // of all its items

	runs []string // with the outputs
	done chan struct{}
}

// spreading is one for_each whose items are run by workers.
type spreading struct {
	*each
	q       *queue // that has begun the items; its counts and its failure are those of all items
	out     *collector
	raw     json.RawMessage // of the stage
	choices Overrides       // of the for_each, for shards that were submitted with others
	size    int             // items of a shard
	shards  int             // that run at the same time
	calls   int64           // that the shards under way may make before they begin no item; guarded by q.mu
	read    int             // bytes of the input behind the items of the lanes; of fill
}

// spread runs the items that the queue has not begun.
func (e *each) spread(ctx context.Context, q *queue, out *collector) error {
	shards, items := e.r.deps.Spread.concurrency(e.forEach)
	s := &spreading{each: e, q: q, out: out, shards: shards, read: q.in.r.Buffered()}
	s.choices = Overrides{Concurrency: items, OnError: e.OnError, Retries: e.Retries}
	s.size = cmp.Or(e.r.deps.Spread.Items, s.sizeFor(items))
	s.raw = completed(e.m.step.raw, fmt.Appendf(nil, `{"concurrency": %d}`, items))
	lanes, slots := make(chan *lane, 4*shards), make(chan struct{}, shards)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		defer close(lanes)
		s.fail(s.fill(ctx, lanes, slots, &running))
	})
	for l := range lanes {
		select {
		case <-l.done:
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			s.fail(s.collect(ctx, l))
		}
	}
	running.Wait()
	return s.failure(ctx)
}

// sizeFor returns how many items a shard gets, of which concurrency run at the same time. It goes by the pace of the items that have run here.
func (s *spreading) sizeFor(concurrency int) int {
	if s.q.ran == 0 {
		return spreadLeast
	}
	perItem := max(s.q.until.Sub(s.q.since)*time.Duration(s.each.concurrency)/time.Duration(s.q.ran*concurrency), 1)
	return max(shardLeast, min(int(shardWork/perItem), shardItems))
}

// fill reads the items and starts lanes.
func (s *spreading) fill(ctx context.Context, lanes chan<- *lane, slots chan struct{}, running *sync.WaitGroup) (err error) {
	defer recovered(&err)
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		l, err := s.next()
		if l == nil || err != nil {
			return err
		}
		lanes <- l
		running.Go(func() {
			defer func() { <-slots }()
			defer close(l.done)
			s.fail(s.run(ctx, l))
			s.r.release(l.bytes)
		})
	}
	return nil
}

// next reads the items of the next lane; nil: there are no more.
func (s *spreading) next() (*lane, error) {
	l := &lane{before: s.q.begun, done: make(chan struct{})}
	size := s.log.shards.size(l.before, s.size)
	most := min(shardBytes, 8*shardBytes/int64(s.shards))
	for len(l.items) < size && l.bytes < most {
		el, err := s.q.in.next()
		if err == io.EOF {
			break
		}
		if err == nil && s.q.begun == s.r.deps.Limits.Items {
			err = s.r.deps.Limits.tooMany()
		}
		if err == nil {
			err = s.r.hold(int64(len(el.data)))
		}
		if err != nil {
			s.r.release(l.bytes)
			return nil, err
		}
		s.q.begun++
		l.items = append(l.items, el)
		l.bytes += int64(len(el.data))
	}
	if len(l.items) == 0 {
		return nil, nil
	}
	l.start, l.sum = l.before, sumOf(l.items)
	read := s.q.in.r.Buffered()
	more := int64(read - s.read + bytesOf(l.items))
	s.m.count(func(r *StageReport) { r.ahead += more })
	s.read = read
	return l, nil
}

// bytesOf is how many bytes of the input items are, with their separators.
func bytesOf(list []element) (n int) {
	for _, el := range list {
		n += len(el.data) + 1
	}
	return n
}

// run has workers run the items of a lane.
func (s *spreading) run(ctx context.Context, l *lane) (err error) {
	defer recovered(&err)
	for len(l.items) > 0 {
		run, calls, err := s.submit(ctx, l)
		if err != nil {
			return err
		}
		ended, err := s.r.deps.Spread.Workers.Continue(ctx, run, s.choices)
		if err != nil {
			return err
		}
		var report StageReport
		if len(ended.Stages) > 0 {
			report = ended.Stages[len(ended.Stages)-1]
		}
		if ended.Before {
			report = report.resumed()
		}
		n := int(report.Items)
		if err := s.count(report, bytesOf(l.items[:max(0, min(n, len(l.items)))]), calls); err != nil {
			return err
		}
		if ended.Err != nil {
			return s.located(ended.Err)
		}
		if n < 1 || n > len(l.items) {
			return Errorf(Internal, "", "a shard of %d items has run %d", len(l.items), n)
		}
		l.items, l.before, l.runs = l.items[n:], l.before+n, append(l.runs, ended.Run)
	}
	l.items = nil // the lane may wait for those before it
	return nil
}

// submit stores the items of a lane as a run that has not begun, unless an earlier run has submitted the same items there. calls is how many
// it may make; they are reserved until it ends.
func (s *spreading) submit(ctx context.Context, l *lane) (run string, calls int64, err error) {
	if s.changes {
		s.r.effects.setChanged()
	}
	s.q.mu.Lock()
	calls = max(1, (int64(s.r.deps.Limits.Calls)-s.r.calls.Load()-s.calls)/int64(s.shards))
	s.calls += calls
	s.q.mu.Unlock()
	if run, err = s.submitted(ctx, l); run == "" && err == nil {
		run, err = s.store(ctx, l, calls)
	}
	return run, calls, err
}

// store stores the items of a lane as a run that has not begun.
func (s *spreading) store(ctx context.Context, l *lane, calls int64) (run string, err error) {
	runs := s.r.deps.Runs
	p := storedRun{runs: runs}
	p.Shard = &shard{
		Before: l.before, Output: cmp.Or(s.r.deps.Spread.Output, shardOutput), Calls: calls, Marks: slices.Collect(marksOf(s.body)),
	}
	var end func()
	p.id, end = runs.Begin()
	p.Stages = List{json.RawMessage(fmt.Sprintf(`{"type":"from","run":%q}`, p.id)), s.raw}
	out, whole := runs.Create(p.id, outputName(1), false)
	writeFrames(out, l.items)
	whole("")
	p.write(aboutName(outputName(1)), about{Kind: Values})
	p.write(planName, p.plan)
	end()
	defer runs.Forget(p.id)
	if kept, why := p.whole(1); !kept {
		return "", ofRun(Errorf(LimitExceeded, "try again when less is running, or ask the operator for more room (--keep-total, --memory)",
			"the items could not be kept for workers: %s", why))
	}
	if err := runs.Publish(ctx, p.id); err != nil {
		return "", storeError(err)
	}
	s.log.shards.note(shardLine{l.before, len(l.items), p.id, l.start, l.sum})
	if s.changes {
		s.r.effects.write(pastEffect{List: p.id, Each: s.m.step.place})
	}
	if err := runs.Flush(ctx, s.r.record.id); err != nil { // else a continuation of this run could submit the items again
		return "", storeError(err)
	}
	return p.id, nil
}

// submitted returns the run with the items of a lane that an earlier run has submitted; empty: there is none.
func (s *spreading) submitted(ctx context.Context, l *lane) (run string, err error) {
	known, ok := s.log.shards.known[l.before]
	if !ok {
		return "", nil
	}
	_, err = findRun(ctx, s.r.deps.Runs, known.Run)
	switch {
	case Unkept(err):
		return "", err
	case err == nil && bytes.Equal(known.Sum, l.sum):
		return known.Run, nil
	case s.changes:
		return "", known.unusable()
	}
	return "", nil
}

// collect writes the results of a lane.
func (s *spreading) collect(ctx context.Context, l *lane) error {
	for _, run := range l.runs {
		data, release, err := OpenOutput(ctx, s.r.deps.Runs, run, 2)
		if err == nil {
			err = s.out.splice(data)
			release()
			s.r.deps.Runs.Forget(run)
		}
		if err != nil {
			return err
		}
	}
	return s.out.Flush()
}

// count adds what a shard has done, with items of so many bytes, to the report of the for_each. calls are those that it might make.
func (s *spreading) count(r StageReport, bytes int, calls int64) error {
	s.q.mu.Lock()
	s.q.ok, s.q.failed = s.q.ok+int(r.OK+r.Resumed), s.q.failed+int(r.Failed)
	made := s.r.calls.Add(Report{Stages: []StageReport{r}}.AllCalls())
	s.calls -= calls
	s.q.mu.Unlock()
	s.m.absorb(r, bytes)
	s.r.items.Add(r.OK + r.Resumed + r.Failed)
	if made > int64(s.r.deps.Limits.Calls) {
		return s.r.called()
	}
	if s.r.progress != nil {
		s.r.progress(Progress{Items: s.r.items.Load(), Calls: s.r.calls.Load()})
	}
	return nil
}

// located returns the failure of a shard as one of the for_each.
func (s *spreading) located(e *Error) *Error {
	own := *e
	if e.Place != "" {
		own.Place = e.Place.movedTo(s.m.step.place)
	}
	own.Run, own.Resume, own.Continue, own.Changed = "", false, 0, nil
	return &own
}

// fail keeps the first failure and ends everything else.
func (s *spreading) fail(err error) {
	if err != nil {
		s.q.fail(err)
	}
}

// failure returns why not all items have a result that is written, once nothing runs any more.
func (s *spreading) failure(ctx context.Context) error {
	q := s.q
	if e, ok := errors.AsType[*Error](q.err); ok && e.Item > 0 {
		e.Done, e.Failed, e.Started = q.ok, q.failed, max(e.Item, q.ok+q.failed)
		if e.Items = 0; q.in.atEnd {
			e.Items = q.begun
		}
	}
	if q.err == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return q.err
}

// writeFrames writes items so that frame reads the same.
func writeFrames(out io.Writer, list []element) {
	var b []byte
	for _, el := range list {
		b = el.frame(b[:0])
		_, _ = out.Write(b) // it does not fail
	}
}

// frame appends the item to b.
func (el element) frame(b []byte) []byte {
	size := uint64(len(el.data)) << 1
	if el.text {
		size |= 1
	}
	return append(binary.AppendUvarint(b, size), el.data...)
}

// frame reads an item of a shard.
func (s *items) frame() (element, error) {
	size, err := binary.ReadUvarint(s.r)
	if err != nil {
		return element{}, err
	}
	if size>>1 > uint64(s.max) {
		return element{}, s.tooLong()
	}
	el := element{data: make([]byte, size>>1, size>>1+1), text: size&1 == 1}
	if _, err := io.ReadFull(s.r, el.data); err != nil {
		return element{}, io.ErrUnexpectedEOF
	}
	return el, nil
}

// splice writes the results that a collector of the same form has written.
func (c *collector) splice(data *io.SectionReader) error {
	size := data.Size()
	switch {
	case size == 0:
		return nil
	case c.raw:
		if c.open {
			c.WriteByte('\n')
		}
		var last [1]byte
		if _, err := data.ReadAt(last[:], size-1); err != nil {
			return unreadable(err)
		}
		c.open = last[0] != '\n'
	case !c.lines:
		if size <= int64(len("[]\n")) {
			return nil
		}
		data = io.NewSectionReader(data, 1, size-int64(len("[]\n")))
		separator := "["
		if c.n > 0 {
			separator = ",\n"
		}
		c.WriteString(separator)
	}
	c.n++
	_, err := io.Copy(c.Writer, data)
	return err
}

// absorb adds the report of a shard to that of the for_each, whose bytes are counted here.
func (m *Meter) absorb(r StageReport, bytes int) {
	r = r.movedTo(m.step.place)
	r.BytesIn, r.BytesOut, r.Millis = 0, 0, 0
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.ahead -= int64(bytes)
	if m.spread == nil {
		m.spread = &r
		return
	}
	m.spread.add(r)
}

// resumed returns what the report on a for_each of an earlier run is in the run that uses its results.
func (r StageReport) resumed() StageReport {
	return StageReport{
		Place: r.Place, Label: r.Label, Items: r.Items, Resumed: r.OK + r.Resumed,
		Failed: r.Failed, Skipped: r.Skipped, Messages: r.Messages, OtherMessages: r.OtherMessages,
	}
}

// movedTo returns the report on a stage of a shard with the places of the run that it is a part of.
func (r StageReport) movedTo(place Place) StageReport {
	r.Place = r.Place.movedTo(place)
	r.Stages = slices.Clone(r.Stages)
	for i, s := range r.Stages {
		r.Stages[i] = s.movedTo(place)
	}
	return r
}

// movedTo returns a place in the last stage of a shard as one in the stage that it is a part of.
func (p Place) movedTo(stage Place) Place {
	_, below, nested := strings.Cut(string(p), ".")
	if !nested {
		return stage
	}
	return Place(below).In(stage)
}

// encodeReport encodes a report for decodeReport, which JSON could not restore.
func encodeReport(r StageReport) []byte {
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(r); err != nil {
		panic(err) // it has only values that gob knows
	}
	return data.Bytes()
}

// decodeReport reads what encodeReport has written; nil: nothing.
func decodeReport(data []byte) (r *StageReport, err error) {
	if data == nil {
		return nil, nil
	}
	r = new(StageReport)
	return r, gob.NewDecoder(bytes.NewReader(data)).Decode(r)
}
