package wire

import (
	"io"
	"sync"
)

// softLimit bounds the data that waits to be written: more waits for room.
const softLimit = 256 << 10

// hardLimits bound all that waits, by side. A message that needs more means that the peer does not read. All chains of a
// pipeline, each started four times at once, take less.
var hardLimits = map[side]int{gateway: 32 << 20, worker: 8 << 20}

// An outbox collects frames for one writer, so that nobody holds a lock while writing and small frames travel
// together.
type outbox struct {
	limit int // of pending

	mu      sync.Mutex
	changed sync.Cond // pending grew or shrank, or err was set
	pending []byte
	spare   []byte // the buffer that is not pending; nil while it is being written
	err     error
}

func newOutbox(limit int) *outbox {
	o := &outbox{limit: limit}
	o.changed.L = &o.mu
	return o
}

// data adds a data frame, waiting until there is room for it.
func (o *outbox) data(id uint32, payload []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.pending) >= softLimit {
		o.changed.Wait()
	}
	return o.add(kindData, id, payload)
}

// message adds any other frame and never waits.
func (o *outbox) message(k kind, id uint32, payload []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pending)+len(payload) > o.limit {
		return protocolError("the peer does not read what it asks for")
	}
	return o.add(k, id, payload)
}

// add needs mu.
func (o *outbox) add(k kind, id uint32, payload []byte) error {
	if o.err != nil {
		return o.err
	}
	o.pending = appendFrame(o.pending, k, id, payload)
	o.changed.Broadcast()
	return nil
}

// run writes what is added until writing fails or stop is called, and returns that error. Additions before stop
// may stay unwritten.
func (o *outbox) run(w io.Writer) error {
	for {
		batch, err := o.take()
		if err != nil {
			return err
		}
		_, err = w.Write(batch)
		o.give(batch)
		if err != nil {
			o.stop(err)
			return err
		}
	}
}

func (o *outbox) take() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.err == nil && len(o.pending) == 0 {
		o.changed.Wait()
	}
	if o.err != nil {
		return nil, o.err
	}
	batch := o.pending
	o.pending, o.spare = o.spare[:0], nil
	o.changed.Broadcast()
	return batch, nil
}

// give hands a written batch back for reuse, unless one large message has blown it up.
func (o *outbox) give(batch []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if cap(batch) <= 2*softLimit {
		o.spare = batch
	}
}

// stop makes everybody who waits or comes later fail with err, the first one given.
func (o *outbox) stop(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.changed.Broadcast()
}
