package stages

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"hash"
	"io"
	"maps"
	"slices"
	"sync"
)

// A shardLog names the shards of a for_each, for the run that continues this one.
type shardLog struct {
	known  map[int]shardLine // of the run that is continued, by the items before them
	starts []int             // the keys of known, sorted

	mu  sync.Mutex
	out io.Writer // guarded by mu
	end func(string)
}

// A shardLine is a line of the log of shards.
type shardLine struct {
	Before int    `json:"before"` // items of the for_each that precede its own
	Items  int    `json:"items"`
	Run    string `json:"run"`
	Lane   int    `json:"lane"` // items that precede its lane, which ends as the shard does
	Sum    []byte `json:"sum"`  // of the items of the lane
}

// unusable says that what a shard came to cannot be used, and its calls could be repeated.
func (l shardLine) unusable() *Error {
	return ofRun(Errorf(Denied, "find out what was changed (with a tool that reads), and do the rest in a pipeline without from",
		"workers have run the items from %d on; these items have changed or are not kept any more, so their calls could be repeated", l.Before+1))
}

// sumOf returns a cryptographic hash of items.
func sumOf(list []element) []byte {
	sum := sha256.New()
	writeFrames(sum, list)
	return sum.Sum(nil)
}

// A shardCheck compares items with those that shards have run, before any of them may change something again.
type shardCheck struct {
	lanes map[int]shardLine // by the items before them
	lane  shardLine         // under way
	sum   hash.Hash         // of its items so far; nil: none is under way
	buf   []byte
}

// shardCheck returns a check of all items, which without known shards checks nothing.
func (e *each) shardCheck() *shardCheck {
	c := &shardCheck{lanes: map[int]shardLine{}}
	if e.spreads {
		for _, line := range e.log.shards.known {
			c.lanes[line.Lane] = line
		}
	}
	return c
}

// add checks an item, behind so many others.
func (c *shardCheck) add(before int, el element) error {
	if lane, known := c.lanes[before]; known {
		c.lane, c.sum = lane, sha256.New()
	}
	if c.sum == nil {
		return nil
	}
	c.buf = el.frame(c.buf[:0])
	_, _ = c.sum.Write(c.buf) // it does not fail
	if before+1 < c.lane.Before+c.lane.Items {
		return nil
	}
	if !bytes.Equal(c.sum.Sum(nil), c.lane.Sum) {
		return c.lane.unusable()
	}
	delete(c.lanes, c.lane.Lane)
	c.sum = nil
	return nil
}

// end returns an error if the input has ended before all items of the known lanes.
func (c *shardCheck) end() error {
	for _, lane := range c.lanes {
		return lane.unusable()
	}
	return nil
}

func shardsName(place Place) string { return string(place) + " shards" }

// knownShards reads the log of the run that is continued; nil: it has none.
func (r *Run) knownShards(place Place) (known map[int]shardLine, err error) {
	if r.resumed == nil {
		return nil, nil
	}
	data, _, release := r.deps.Runs.Open(r.resumed.id, shardsName(place))
	defer release()
	if data == nil || data.Size() == 0 {
		return nil, nil
	}
	known = map[int]shardLine{}
	for lines := json.NewDecoder(data); ; {
		var l shardLine
		if err := lines.Decode(&l); err == io.EOF || err == io.ErrUnexpectedEOF {
			return known, nil
		} else if err != nil {
			return nil, unreadable(err)
		}
		known[l.Before] = l
	}
}

// newShardLog begins a log with the known shards: the run may end before it comes to their items, and be continued itself.
func (r *Run) newShardLog(place Place, known map[int]shardLine) *shardLog {
	l := &shardLog{known: known, starts: slices.Sorted(maps.Keys(known))}
	l.out, l.end = r.deps.Runs.Create(r.record.id, shardsName(place), true)
	for _, before := range l.starts {
		l.note(known[before])
	}
	return l
}

func (l *shardLog) note(line shardLine) {
	text, _ := json.Marshal(line) // it has no values that JSON lacks
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(append(text, '\n'))
}

// size returns how many items the next shard has. A known shard keeps its size; another one has at most most items, and ends before the
// next known one.
func (l *shardLog) size(before, most int) int {
	at, known := slices.BinarySearch(l.starts, before)
	switch {
	case known:
		return l.known[before].Items
	case at < len(l.starts):
		return min(most, l.starts[at]-before)
	}
	return most
}
