package stages

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync"
)

// itemLog keeps the results of the items of a for_each that have succeeded, and knows those of the run that is continued.
// Its methods may be called concurrently; a nil log knows and keeps nothing.
type itemLog struct {
	place   Place
	data    *io.SectionReader
	release func()
	record  *record
	dry     bool      // what runs is no result
	shards  *shardLog // nil: workers run none of the items

	mu    sync.Mutex    // also while a result is written
	known map[int]entry // guarded by mu, as is everything below
	out   io.Writer
	end   func(string)
	buf   []byte
}

// An entry of a log is an item that has succeeded.
type entry struct {
	entryHead
	offset int64 // of its result
}

// entryHead is what stands before the result of an item.
type entryHead struct {
	Number int64
	Key    itemKey
	Size   int64 // of the result
}

// itemKey stands for the bytes of an item, among items of the same place in other runs, also of other gateways: nobody can make
// one whose key is that of another.
type itemKey [16]byte

func itemKeyOf(el element) itemKey {
	sum := sha256.Sum256(el.data)
	key := itemKey(sum[:16])
	if el.text {
		key[0] ^= 1
	}
	return key
}

// eachEntry reads the heads of the entries in data, which may be nil.
func eachEntry(data *io.SectionReader, do func(entry)) error {
	if data == nil {
		return nil
	}
	var e entry
	head := make([]byte, binary.Size(e.entryHead))
	for at := int64(0); at+int64(len(head)) <= data.Size(); {
		if _, err := data.ReadAt(head, at); err != nil {
			return unreadable(err)
		}
		_, _ = binary.Decode(head, binary.BigEndian, &e.entryHead) // it has the size
		e.offset = at + int64(len(head))
		if at = e.offset + e.Size; at > data.Size() {
			return nil // the disk was full within it
		}
		do(e)
	}
	return nil
}

func unreadable(err error) error { return fmt.Errorf("reading what an earlier run has kept: %w", err) }

// itemsName is the output of a run that holds the log of the for_each at a place.
func itemsName(place Place) string { return string(place) + " items" }

// newItemLog returns the log of a for_each of this run that is bound; nil where nothing is kept.
func (r *Run) newItemLog(s *Step) (*itemLog, error) {
	if r.record == nil || s.each.inner || r.logOf(s.place) != nil { // long names of branches may make equal places
		return nil, nil
	}
	l := &itemLog{place: s.place, record: r.record, dry: r.dry != nil && s.Changes}
	r.logs = append(r.logs, l)
	if r.resumed == nil {
		return l, nil
	}
	return l, l.read(r.resumed.storedRun)
}

// logOf returns the log of the for_each at a place.
func (r *Run) logOf(place Place) *itemLog {
	if i := slices.IndexFunc(r.logs, func(l *itemLog) bool { return l.place == place }); i >= 0 {
		return r.logs[i]
	}
	return nil
}

// read finds the results that are kept, and keeps them for this run as well: it may end before it comes to their items,
// and be continued itself.
func (l *itemLog) read(from storedRun) error {
	l.data, _, l.release = from.runs.Open(from.id, itemsName(l.place))
	l.known = map[int]entry{}
	err := eachEntry(l.data, func(e entry) { l.known[int(e.Number)] = e })
	if err != nil || l.data == nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.known {
		result, err := l.result(e)
		if err != nil {
			return err
		}
		l.write(int(e.Number), e.Key, result)
	}
	return nil
}

// verify forgets the result of an item that is another now. It is called for all items before the first that may change
// something.
func (l *itemLog) verify(number int, el element) {
	if e, ok := l.entry(number); ok && e.Key != itemKeyOf(el) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.known, number)
	}
}

// last returns the number of the last item that an earlier run has kept, or 0.
func (l *itemLog) last() (n int) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for number := range l.known {
		n = max(n, number)
	}
	return n
}

// entry returns what is kept of an item, if it is.
func (l *itemLog) entry(number int) (e entry, ok bool) {
	if l == nil {
		return entry{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok = l.known[number]
	return e, ok
}

// answer writes the result of an item that is known, and reports whether it is.
func (l *itemLog) answer(it *item) (bool, error) {
	e, ok := l.entry(it.number)
	if !ok || e.Key != itemKeyOf(it.element) {
		return false, nil
	}
	result, err := l.result(e)
	if err != nil {
		return false, err
	}
	a, result, err := decodeAbout(result)
	if err != nil {
		return false, err
	}
	it.out.describe(a)
	_, err = it.result.Write(result)
	return err == nil, err
}

func (l *itemLog) result(e entry) ([]byte, error) {
	var data bytes.Buffer
	if _, err := io.Copy(&data, io.NewSectionReader(l.data, e.offset, e.Size)); err != nil {
		return nil, unreadable(err)
	}
	return data.Bytes(), nil
}

// keep adds the result of an item that has succeeded.
func (l *itemLog) keep(it *item) {
	if l == nil || l.dry {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(it.number, itemKeyOf(it.element), append(it.out.get().encode(), it.result.buf.Bytes()...))
}

// write adds an entry. The caller has mu.
func (l *itemLog) write(number int, key itemKey, result []byte) {
	if l.out == nil {
		l.out, l.end = l.record.runs.Create(l.record.id, itemsName(l.place), true)
	}
	l.buf, _ = binary.Append(l.buf[:0], binary.BigEndian, entryHead{int64(number), key, int64(len(result))}) // has a fixed size
	l.buf = append(l.buf, result...)
	_, _ = l.out.Write(l.buf) // it does not fail
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
	if l.shards != nil {
		l.shards.end("")
	}
}
