package runs

import (
	"fmt"
	"time"
)

// verdict is what a reservation comes to.
type verdict int

const (
	granted verdict = iota
	onDisk          // there is no room in memory
	full            // there is no room
)

// reserve takes room for bytes of an output that is written, of which some are in memory. Runs that have ended give way.
func (s *Store) reserve(bytes, memory int64) verdict {
	s.mu.Lock()
	defer s.unlock()
	if memory > 0 && s.memory+memory > s.o.Memory {
		return onDisk
	}
	for s.used+bytes > s.o.Total && s.ended.Len() > 0 {
		s.forget(s.ended.Front().Value.(*run))
	}
	if s.closed || s.used+bytes > s.o.Total {
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
}

// lend counts memory of a writer that is no output.
func (s *Store) lend(bytes int64) { s.unreserve(0, -bytes) }

// giveBack returns a chunk that could not be written.
func (s *Store) giveBack(c chunk) {
	s.mu.Lock()
	defer s.unlock()
	s.unneeded = append(s.unneeded, s.disk.give([]chunk{c})...)
	s.used -= chunkSize
}

func (s *Store) fullText() string {
	return fmt.Sprintf("the store was full: runs that were under way took all of its %s", size(s.o.Total))
}

// hasEnded reports whether nothing is added to an output any more.
func (s *Store) hasEnded(o *output) bool {
	s.mu.Lock()
	defer s.unlock()
	return o.ended
}

// finish ends an output that was written.
func (s *Store) finish(o *output, incomplete string) {
	s.mu.Lock()
	defer s.unlock()
	o.ended, o.incomplete = true, incomplete
	if o.owners == 0 {
		s.empty(o)
	}
}

// free gives back what an output takes.
func (s *Store) free(o *output) {
	s.mu.Lock()
	defer s.unlock()
	s.empty(o)
}

func (s *Store) empty(o *output) {
	memory := int64(cap(o.mem))
	s.used -= memory + int64(len(o.chunks))*chunkSize
	s.memory -= memory
	if len(o.chunks) > 0 {
		s.unneeded = append(s.unneeded, s.disk.give(o.chunks)...)
	}
	o.mem, o.chunks, o.size = nil, nil, 0
}

// disown takes one owner from an output. One that is still written is emptied when it ends.
func (s *Store) disown(o *output) {
	if o.owners--; o.owners == 0 && o.ended {
		s.empty(o)
	}
}

// forget removes a run.
func (s *Store) forget(r *run) {
	delete(s.runs, r.id)
	if r.place != nil {
		s.ended.Remove(r.place)
	}
	for _, o := range r.outputs {
		s.disown(o)
	}
}

// expire removes the runs whose time is over.
func (s *Store) expire() {
	for s.ended.Len() > 0 {
		r := s.ended.Front().Value.(*run)
		if time.Since(r.used) < s.o.TTL {
			return
		}
		s.forget(r)
	}
}

// arm has the next run expire in time.
func (s *Store) arm() {
	if s.ended.Len() == 0 || s.closed {
		if s.timer != nil {
			s.timer.Stop()
			s.timer = nil
		}
		return
	}
	if s.timer != nil {
		return
	}
	left := s.o.TTL - time.Since(s.ended.Front().Value.(*run).used)
	s.timer = time.AfterFunc(max(left, 0), func() {
		s.mu.Lock()
		defer s.unlock()
		s.timer = nil
		s.expire()
		s.arm()
	})
}
