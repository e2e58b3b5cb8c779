package stages

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"sync"
)

// itemLog knows the items of a for_each that an earlier run has completed, and keeps those that this one completes, and
// which others may have taken effect. Its methods may be called concurrently; a nil log knows and keeps nothing.
type itemLog struct {
	stage   int // of the pipeline; 0: one within another
	known   map[int]entry
	calls   map[callRef]entry
	tools   int // tool stages with effects that were bound
	data    *io.SectionReader
	release func()
	create  func() (io.Writer, func(string)) // nil: nothing is kept
	dry     bool                             // what runs is no result

	mu  sync.Mutex // also while a result is written: that is what it is for
	out io.Writer
	end func(string)
	buf []byte

	unsure []int  // items of this run that may have taken effect
	added  bool   // something has become known in this run
	giveUp func() // gives up the claim on the for_each that is taken up
}

// An entry of a log is something that is known of an item or a call.
type entry struct {
	kind         byte
	number       int // of the item; of a call, of the tool stage within the for_each
	key          itemKey
	start        int64 // of the entry
	offset, size int64 // of its data
}

// The kinds of entries.
const (
	entryResult byte = iota + 1 // an item that succeeded; the data is its result
	entryUnsure                 // an item that did not, and may have taken effect
	entryCall                   // a call that is to be made once; the data is its key and its result
)

// callRef names a call that is to be made once.
type callRef struct {
	tool int
	key  callKey
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

// entryHead is what stands before the data of an entry: its kind, its number, its key and the size of the data.
const entryHead = 1 + 4 + 8 + 8

// eachEntry reads the heads of the entries in data, which may be nil.
func eachEntry(data *io.SectionReader, do func(entry) error) error {
	if data == nil {
		return nil
	}
	var head [entryHead]byte
	for at := int64(0); at+entryHead <= data.Size(); {
		if _, err := data.ReadAt(head[:], at); err != nil {
			return unreadable(err)
		}
		e := entry{
			kind: head[0], number: int(binary.BigEndian.Uint32(head[1:])), key: itemKey(binary.BigEndian.Uint64(head[5:])),
			start: at, offset: at + entryHead, size: int64(binary.BigEndian.Uint64(head[13:])),
		}
		if at = e.offset + e.size; at > data.Size() {
			return nil // the disk was full within it
		}
		if err := do(e); err != nil {
			return err
		}
	}
	return nil
}

func unreadable(err error) error { return fmt.Errorf("reading the results of an earlier run: %w", err) }

// newItemLog returns the log of a step of this run, nil if it needs none.
func (r *Run) newItemLog(s *Step) (*itemLog, error) {
	l := &itemLog{dry: r.dry != nil && s.Effect == Changes}
	if stage := r.record.number(s); stage > 0 {
		l.stage = stage
		l.create = func() (io.Writer, func(string)) { return r.record.runs.Create(r.record.id, itemsName(stage), true) }
	}
	if s.resume == nil && l.create == nil {
		return nil, nil
	}
	r.logs = append(r.logs, l)
	if s.resume == nil {
		return l, nil
	}
	if s.Effect == Changes && !l.dry {
		holder, release := s.resume.claim(r.record.id)
		if holder != "" && holder != r.record.id { // where nobody has it, that run is gone: read says so
			return nil, s.resume.claimed(holder)
		}
		l.giveUp = release
	}
	return l, l.read(s.resume)
}

// read finds the results that are kept, and keeps them for this run as well: it may end before it comes to their items,
// and be taken up itself.
func (l *itemLog) read(from *resumption) error {
	if _, err := findRun(from.runs, from.id); err != nil {
		return Errorf(UnknownRun, "run its stages again", "what run %s produced had to give way after this pipeline was checked", from.id)
	}
	l.data, _, l.release = from.open()
	l.known, l.calls = map[int]entry{}, map[callRef]entry{}
	return eachEntry(l.data, func(e entry) error {
		switch e.kind {
		case entryResult:
			l.known[e.number] = e
		case entryCall:
			ref := callRef{tool: e.number}
			if _, err := l.data.ReadAt(ref.key[:], e.offset); err != nil {
				return unreadable(err)
			}
			e.offset, e.size = e.offset+int64(len(ref.key)), e.size-int64(len(ref.key))
			l.calls[ref] = e
		}
		return l.copy(io.NewSectionReader(l.data, e.start, e.offset+e.size-e.start))
	})
}

// verify refuses an item that is another than the one whose result is known.
func (l *itemLog) verify(number int, it item) error {
	if l == nil {
		return nil
	}
	if e, ok := l.known[number]; ok && e.key != itemKeyOf(it) {
		return ofRun(Errorf(InvalidPipeline, "give for_each only the items that are left",
			"item %d is another than in the run that is resumed; to run what that run has completed could repeat what it has changed", number))
	}
	return nil
}

// answer writes the result of an item that is known, and reports whether it is.
func (l *itemLog) answer(s *slot) (bool, error) {
	if l == nil {
		return false, nil
	}
	e, ok := l.known[s.number]
	if !ok || e.key != itemKeyOf(s.item) {
		return false, nil
	}
	result, err := l.dataOf(e)
	if err != nil {
		return false, err
	}
	if _, err := s.out.Write(result); err != nil {
		return false, err
	}
	return true, nil
}

func (l *itemLog) dataOf(e entry) ([]byte, error) {
	var data bytes.Buffer
	if _, err := io.Copy(&data, io.NewSectionReader(l.data, e.offset, e.size)); err != nil {
		return nil, unreadable(err)
	}
	return data.Bytes(), nil
}

// nextTool numbers a tool stage with effects within the for_each, while its stages are bound.
func (l *itemLog) nextTool() int {
	if l == nil {
		return 0
	}
	l.tools++
	return l.tools
}

// called returns the result of a call that an earlier run has made, and is to be made once.
func (l *itemLog) called(ref callRef) (result []byte, ok bool, err error) {
	if l == nil {
		return nil, false, nil
	}
	e, ok := l.calls[ref]
	if !ok {
		return nil, false, nil
	}
	result, err = l.dataOf(e)
	return result, true, err
}

// copy adds an entry as it is.
func (l *itemLog) copy(entry io.Reader) error {
	if l.create == nil {
		return nil
	}
	all, err := io.ReadAll(entry)
	if err != nil {
		return unreadable(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(all)
	return nil
}

// keeps reports whether the log keeps what becomes of items.
func (l *itemLog) keeps() bool { return l != nil && l.create != nil && !l.dry }

// write adds an entry. The caller has mu.
func (l *itemLog) write(entry []byte) {
	if l.out == nil {
		l.out, l.end = l.create()
	}
	_, _ = l.out.Write(entry) // it does not fail
}

// keep adds the result of an item that has succeeded.
func (l *itemLog) keep(s *slot) {
	if l.keeps() {
		l.add(entryResult, s.number, itemKeyOf(s.item), s.out.buf.Bytes())
	}
}

// doubt adds that an item has not succeeded, and may have taken effect.
func (l *itemLog) doubt(s *slot) {
	if !l.keeps() {
		return
	}
	l.add(entryUnsure, s.number, itemKeyOf(s.item), nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsure = append(l.unsure, s.number)
}

// keepCall adds the result of a call that is to be made once.
func (l *itemLog) keepCall(ref callRef, result []byte) {
	if l.keeps() {
		l.add(entryCall, ref.tool, 0, ref.key[:], result)
	}
}

func (l *itemLog) add(kind byte, number int, key itemKey, data ...[]byte) {
	size := 0
	for _, d := range data {
		size += len(d)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf[:0], kind)
	l.buf = binary.BigEndian.AppendUint32(l.buf, uint32(number))
	l.buf = binary.BigEndian.AppendUint64(l.buf, uint64(key))
	l.buf = binary.BigEndian.AppendUint64(l.buf, uint64(size))
	for _, d := range data {
		l.buf = append(l.buf, d...)
	}
	l.added = true
	l.write(l.buf)
	if cap(l.buf) > 1<<20 {
		l.buf = nil // such results are rare
	}
}

// doubted says which items of this run may have taken effect although they did not succeed.
func (r *Run) doubted() string {
	var parts []string
	for _, l := range r.logs {
		l.mu.Lock()
		if len(l.unsure) > 0 {
			parts = append(parts, fmt.Sprintf("%s of stage %d", itemsOf(slices.Clone(l.unsure)), l.stage))
		}
		l.mu.Unlock()
	}
	return strings.Join(parts, ", ")
}

// close ends the log.
func (l *itemLog) close() {
	if l.release != nil {
		l.release()
	}
	if l.end != nil {
		l.end("")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.giveUp != nil && !l.added {
		l.giveUp()
	}
}
