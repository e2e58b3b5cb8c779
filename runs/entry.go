package runs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/mcsh-dev/mcsh/store"
)

// An entry is an object of a journal: a line of JSON and data. Entries say what has been added to a run, how it ended, and which run
// continues it.
type entry struct {
	Format int     `json:"format"`
	Writer string  `json:"writer"` // a random text, by which a gateway knows what it has written
	Caller string  `json:"caller,omitempty"`
	Pieces []piece `json:"pieces,omitempty"` // of the data, one after another
	Over   bool    `json:"over,omitempty"`   // the run has ended; entries with the rest of it may follow
	Ended  bool    `json:"ended,omitempty"`  // nothing is added to the run any more
	Claim  *string `json:"claim,omitempty"`  // the run that continues this one; empty: it has given that up
}

// A piece is the continuation of an output.
type piece struct {
	Output     string `json:"output"`
	Size       int64  `json:"size"`
	Log        bool   `json:"log,omitempty"` // what is there of the output is of use without the rest
	Ended      bool   `json:"ended,omitempty"`
	Incomplete string `json:"incomplete,omitempty"` // of an ended output: the reason why it is not whole
}

const (
	// entryFormat is the version of entries, and of all that stages writes into the outputs of a run: plans, logs, keys of calls.
	entryFormat = 1

	maxEntry  = 1 << 20 // bytes of data in an entry
	maxPieces = 200     // in an entry
)

// ErrVersion is why a run cannot be read.
var ErrVersion = errors.New("another version of mcsh has written it")

// full reports whether there may be more than the entry has room for.
func (e entry) full(data []byte) bool { return len(data) == maxEntry || len(e.Pieces) == maxPieces }

// runID is the form of the ids that Begin makes.
var runID = regexp.MustCompile(`^r_[a-z2-7]{26}$`)

// objectName names an object of a journal. The order of names is that of numbers. A list of the store must not show the id
// of a run, with which it can be read.
func objectName(run string, number int) string {
	return fmt.Sprintf("%s%x/%08d", journalPrefix, sha256.Sum256([]byte(run)), number)
}

const journalPrefix = "runs/"

// held is the last part of the name of an object beside the entries of a run, see [Store.Hold].
const held = "/held"

// encode returns the object of an entry.
func (e entry) encode(data []byte) ([]byte, error) {
	e.Format = entryFormat
	line, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), data...), nil
}

// decodeEntry takes an object apart.
func decodeEntry(object []byte) (e entry, data []byte, err error) {
	line, data, ok := bytes.Cut(object, []byte("\n"))
	if !ok {
		return entry{}, nil, errors.New("it has no first line")
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return entry{}, nil, err
	}
	if e.Format != entryFormat {
		return entry{}, nil, fmt.Errorf("%w (format %d; this one reads %d)", ErrVersion, e.Format, entryFormat)
	}
	left := int64(len(data))
	for _, x := range e.Pieces {
		if x.Size < 0 || x.Size > left {
			return entry{}, nil, errors.New("it is shorter than its first line says")
		}
		left -= x.Size
	}
	if left > 0 {
		return entry{}, nil, errors.New("it is longer than its first line says")
	}
	return e, data, nil
}

// readEntry reads an object of a journal. The error is [store.ErrNotFound] if it is not there.
func (s *Store) readEntry(ctx context.Context, run string, number int) (e entry, data []byte, err error) {
	name := objectName(run, number)
	object, err := s.o.Shared.Get(ctx, name)
	if err != nil {
		return entry{}, nil, err
	}
	if e, data, err = decodeEntry(object); err != nil {
		return entry{}, nil, fmt.Errorf("object %s cannot be read: %w", name, err)
	}
	return e, data, nil
}

// writeEntry writes an object of a journal, and returns the entry that is there: e, or what an earlier call for the same writer has
// written there. If somebody else has written it, the error is [store.ErrExists].
func (s *Store) writeEntry(ctx context.Context, run string, number int, e entry, data []byte) (there entry, err error) {
	object, err := e.encode(data)
	if err != nil {
		return entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	err = s.o.Shared.Put(ctx, objectName(run, number), object)
	if err == nil {
		s.failing.Store(false)
	}
	if !errors.Is(err, store.ErrExists) {
		return e, err
	}
	there, _, err = s.readEntry(ctx, run, number)
	if err == nil && there.Writer != e.Writer {
		err = store.ErrExists
	}
	return there, err
}
