package stages

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"reflect"
	"slices"
	"sync"
)

// resumption is the for_each of an earlier run that a for_each takes up again.
type resumption struct {
	past
	stage int
}

func itemsName(stage int) string { return outputName(stage) + " items" }

// open returns what is kept of the items, nil if there is nothing.
func (p *resumption) open() (data *io.SectionReader, incomplete string, release func()) {
	return p.runs.Open(p.id, itemsName(p.stage))
}

// takeUp finds the for_each stages behind a from stage that stood there in the run that it names too: completed items
// of theirs are not run again. It refuses those that may have changed something for items that nothing is known of.
func takeUp(list List, steps []*Step) error {
	if len(steps) == 0 || steps[0].origin == nil {
		return nil
	}
	src := steps[0].origin
	var errs []error
	for i := 1; i < len(steps) && src.wanted+i <= len(src.Stages); i++ {
		raw, before := list[i], src.Stages[src.wanted+i-1]
		switch {
		case sameEach(raw, before):
			steps[i].resume = &resumption{src.past, src.wanted + i}
			errs = append(errs, located(steps[i].resume.check(src, steps[i], i == 1), steps[i].place, steps[i].Label))
		case isEach(raw) || !sameStage(raw, before):
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// check refuses to take up a for_each with effects where they could be had twice: an item whose result was not kept,
// or items that are read anew and may be others.
func (p *resumption) check(src *source, step *Step, next bool) error {
	if step.Effect != Changes {
		return nil
	}
	const hint = "find out what was changed (with a tool that reads), and give for_each only the items that are left"
	_, incomplete, release := p.open()
	release()
	if incomplete != "" {
		return Errorf(InvalidPipeline, hint, "not all results of the items that this for_each has completed were kept (%s); "+
			"to run those items again could repeat what they have changed", incomplete)
	}
	if next && slices.ContainsFunc(src.replay, func(s *Step) bool { return !s.replays }) {
		return Errorf(InvalidPipeline, hint, "the items of this for_each were not kept, and would have to be read again; "+
			"others than before could change things twice")
	}
	return nil
}

// sameStage reports whether two stages are equal.
func sameStage(a, b json.RawMessage) bool {
	x, y := decoded(a), decoded(b)
	return x != nil && reflect.DeepEqual(x, y)
}

// itemLog knows the items of a for_each that an earlier run has completed, and keeps those that this one completes. Its
// methods may be called concurrently; a nil log knows and keeps nothing.
type itemLog struct {
	known   map[int]knownItem
	data    *io.SectionReader
	release func()
	create  func() (io.Writer, func(string)) // nil: nothing is kept
	dry     bool                             // what runs is no result

	mu  sync.Mutex // also while a result is written: that is what it is for
	out io.Writer
	end func(string)
	buf []byte
}

// knownItem is where the result of a completed item is.
type knownItem struct {
	key    itemKey
	offset int64
	size   int64
}

// itemKey stands for the bytes of an item, among items of the same place in other runs of this process: nobody can make
// one whose key is that of another.
type itemKey uint64

var itemSeed = maphash.MakeSeed()

func itemKeyOf(it item) itemKey {
	key := itemKey(maphash.Bytes(itemSeed, it.data))
	if it.text {
		return ^key
	}
	return key
}

// entryHead is what stands before a result: the item's number, its key and the size of the result.
const entryHead = 4 + 8 + 8

// newItemLog returns the log of a step of this run, nil if it needs none.
func (r *Run) newItemLog(s *Step) (*itemLog, error) {
	l := &itemLog{dry: r.dry != nil && s.Effect == Changes}
	if stage := r.record.number(s); stage > 0 {
		l.create = func() (io.Writer, func(string)) { return r.record.runs.Create(r.record.id, itemsName(stage), true) }
	}
	if s.resume != nil {
		if err := l.read(s.resume); err != nil {
			return nil, err
		}
	} else if l.create == nil {
		return nil, nil
	}
	r.logs = append(r.logs, l)
	return l, nil
}

// read finds the results that are kept, and keeps them for this run as well: it may end before it comes to their items,
// and be taken up itself.
func (l *itemLog) read(from *resumption) error {
	if _, err := findRun(from.runs, from.id); err != nil {
		return Errorf(UnknownRun, "run its stages again", "what run %s produced had to give way after this pipeline was checked", from.id)
	}
	l.data, _, l.release = from.open()
	l.known = map[int]knownItem{}
	if l.data == nil {
		return nil
	}
	var head [entryHead]byte
	for at := int64(0); at+int64(len(head)) <= l.data.Size(); {
		if _, err := l.data.ReadAt(head[:], at); err != nil {
			return fmt.Errorf("reading the results of an earlier run: %w", err)
		}
		k := knownItem{offset: at + int64(len(head)), size: int64(binary.BigEndian.Uint64(head[entryHead-8:]))}
		k.key = itemKey(binary.BigEndian.Uint64(head[4:]))
		if at = k.offset + k.size; at > l.data.Size() {
			return nil // the disk was full within it
		}
		l.known[int(binary.BigEndian.Uint32(head[:]))] = k
		if err := l.copy(io.NewSectionReader(l.data, at-k.size-int64(entryHead), int64(entryHead)+k.size)); err != nil {
			return err
		}
	}
	return nil
}

// answer writes the result of an item that is known, and reports whether it is.
func (l *itemLog) answer(s *slot) (bool, error) {
	if l == nil {
		return false, nil
	}
	k, ok := l.known[s.number]
	if !ok || k.key != itemKeyOf(s.item) {
		return false, nil
	}
	var result bytes.Buffer
	if _, err := io.Copy(&result, io.NewSectionReader(l.data, k.offset, k.size)); err != nil {
		return false, fmt.Errorf("reading the results of an earlier run: %w", err)
	}
	if _, err := s.out.Write(result.Bytes()); err != nil {
		return false, err
	}
	return true, nil
}

// copy adds an entry as it is.
func (l *itemLog) copy(entry io.Reader) error {
	if l.create == nil {
		return nil
	}
	all, err := io.ReadAll(entry)
	if err != nil {
		return fmt.Errorf("reading the results of an earlier run: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(all)
	return nil
}

// write adds an entry. The caller has mu.
func (l *itemLog) write(entry []byte) {
	if l.out == nil {
		l.out, l.end = l.create()
	}
	_, _ = l.out.Write(entry) // it does not fail
}

// keep adds the result of an item that has succeeded.
func (l *itemLog) keep(s *slot) {
	if l == nil || l.create == nil || l.dry {
		return
	}
	key := itemKeyOf(s.item)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = binary.BigEndian.AppendUint32(l.buf[:0], uint32(s.number))
	l.buf = binary.BigEndian.AppendUint64(l.buf, uint64(key))
	l.buf = binary.BigEndian.AppendUint64(l.buf, uint64(s.out.buf.Len()))
	l.buf = append(l.buf, s.out.buf.Bytes()...)
	l.write(l.buf)
	if cap(l.buf) > 1<<20 {
		l.buf = nil // such results are rare
	}
}

// close ends the log.
func (l *itemLog) close() {
	if l.release != nil {
		l.release()
	}
	if l.end != nil {
		l.end("")
	}
}
