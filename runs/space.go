package runs

import (
	"fmt"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/store"
)

// reservation is the outcome of reserve.
type reservation int

const (
	granted reservation = iota
	onDisk              // the memory is full
	full                // the store is full
)

// reserve counts bytes of an output that is being written, and those of them in memory. It evicts ended runs to make room.
func (s *Store) reserve(bytes, memory int64) reservation {
	s.mu.Lock()
	defer s.unlock()
	if memory > 0 && (s.memory+memory > s.o.Memory || !s.o.Share.Try(memory)) {
		return onDisk
	}
	for s.used+bytes > s.o.Total && s.ended.Len() > 0 {
		s.forget(s.ended.Front().Value.(*run))
	}
	if s.closed || s.used+bytes > s.o.Total {
		s.o.Share.Give(memory)
		return full
	}
	s.used += bytes
	s.memory += memory
	return granted
}

func (s *Store) unreserve(bytes, memory int64) {
	s.mu.Lock()
	defer s.unlock()
	s.used -= bytes
	s.memory -= memory
	s.o.Share.Give(memory)
}

// reserveBuffer counts the memory of a writer's buffer, and reports whether there is room.
func (s *Store) reserveBuffer(bytes int64) bool {
	if !s.o.Share.Try(bytes) {
		return false
	}
	s.mu.Lock()
	defer s.unlock()
	s.memory += bytes
	return true
}

// releaseChunk frees a chunk that could not be written.
func (s *Store) releaseChunk(c chunk) {
	s.mu.Lock()
	defer s.unlock()
	s.unneeded = append(s.unneeded, s.disk.give([]chunk{c})...)
	s.used -= chunkSize
}

func (s *Store) fullText() string {
	return fmt.Sprintf("the store was full: runs that were under way took all of its %s", texts.Bytes(s.o.Total))
}

// finish completes an output.
func (s *Store) finish(o *output, incomplete string) {
	s.mu.Lock()
	defer s.unlock()
	o.ended, o.incomplete = true, incomplete
	if o.owners == 0 {
		s.empty(o)
	}
}

// free empties an output.
func (s *Store) free(o *output) {
	s.mu.Lock()
	defer s.unlock()
	s.empty(o)
}

func (s *Store) empty(o *output) {
	memory := int64(cap(o.mem))
	s.used -= memory + int64(len(o.chunks))*chunkSize
	s.memory -= memory
	s.o.Share.Give(memory)
	if len(o.chunks) > 0 {
		s.unneeded = append(s.unneeded, s.disk.give(o.chunks)...)
	}
	o.mem, o.chunks, o.size = nil, nil, 0
}

// disown removes one owner from an output. Without owners it is emptied, at once or when its writer ends it.
func (s *Store) disown(o *output) {
	if o.owners--; o.owners == 0 && o.ended {
		s.empty(o)
	}
}

// release removes one owner from each output.
func (s *Store) release(outputs ...*output) {
	s.mu.Lock()
	defer s.unlock()
	for _, o := range outputs {
		s.disown(o)
	}
}

// forget removes a run from the store.
func (s *Store) forget(r *run) {
	delete(s.runs, r.id)
	if r.inEnded != nil {
		s.ended.Remove(r.inEnded)
	}
	for _, o := range r.outputs {
		s.disown(o)
	}
}

// expire removes the runs that have outlived their TTL.
func (s *Store) expire() {
	for s.ended.Len() > 0 {
		r := s.ended.Front().Value.(*run)
		if time.Since(r.used) < s.o.TTL {
			return
		}
		s.forget(r)
	}
}

// arm sets the timer for the run that expires next.
func (s *Store) arm() {
	if s.ended.Len() > 0 && !s.closed {
		left := s.o.TTL - time.Since(s.ended.Front().Value.(*run).used)
		s.timer.Reset(max(left, 0))
	}
}

// tick is called by the timer.
func (s *Store) tick() {
	s.mu.Lock()
	defer s.unlock()
	s.expire()
	s.arm()
}

// Memory returns the share that the memory of outputs is taken from, for what others keep of the same runs; nil: none bounds it.
func (s *Store) Memory() *memory.Share { return s.o.Share }

// Shared returns the store where other gateways find the runs; nil: there is none.
func (s *Store) Shared() store.Store { return s.o.Shared }

// TTL returns how long a run is kept after its last use.
func (s *Store) TTL() time.Duration { return s.o.TTL }

// Has reports whether a run is kept, of any caller. It is no use of the run.
func (s *Store) Has(id string) bool {
	s.mu.Lock()
	defer s.unlock()
	s.expire()
	return s.runs[id] != nil
}
