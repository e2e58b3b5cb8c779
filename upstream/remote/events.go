package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// An event is one server-sent event.
type event struct {
	name, id string
	data     []byte // the caller's to keep
}

// events reads a stream of server-sent events.
type events struct {
	in      *bufio.Reader // of maxField bytes
	max     int64         // bytes of one event
	done    <-chan struct{}
	lease   *memory.Lease // of the last event; nil: not counted
	counted int64         // bytes taken from lease
	prefix  int           // bytes before the value in the current line
	bare    int           // lines in a row without event or data
	limiter rpc.Limiter   // of such lines
	skips   rpc.Limiter   // of bytes of events that are too long
	retry   time.Duration // the wait before a resume that the server asks for; 0: none
}

// newEvents reads r until done, which ends all waits: the buffer is then read at once, and r ends by itself.
func newEvents(r io.Reader, limit int64, done <-chan struct{}) *events {
	return &events{
		in: bufio.NewReaderSize(r, maxField), max: limit, done: done,
		limiter: rpc.UnaskedLimiter(),
		skips:   rpc.SkipLimiter(),
	}
}

const (
	maxField   = 16 << 10              // bytes of a line without data; the id, one of these, goes back in a header
	bareLines  = 32                    // such as comments, between events; a stream with more is read slowly
	leastRetry = 20 * time.Millisecond // the shortest wait before a stream is resumed
)

// next returns the next event that has data or an id, and frees the memory of the last one. For one that is too long it
// returns an *Overlong of rpc, after which the stream goes on.
func (s *events) next() (e event, err error) {
	_ = s.lease.Grow(-s.counted)
	data := rpc.NewBuffer(s.lease)
	defer func() { s.counted = data.Counted(); data.Close() }()
	for lines := 0; ; {
		if s.bare++; s.bare > bareLines {
			s.limiter.Wait(1, s.done)
		}
		s.prefix = 0
		line, err := s.part(&data)
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull):
		case string(field) == "data":
			if len(value) > 0 {
				s.bare = 0
			}
			s.prefix = len(line) - len(value)
			if lines++; lines > 1 {
				value = slices.Concat([]byte("\n"), value)
			}
			err = s.add(&data, value, err)
		case errors.Is(err, bufio.ErrBufferFull):
			err = new(rpc.Overlong).Skip(s.in, line, err, &s.skips, s.done)
		default:
			s.set(&e, string(field), string(value))
		}
		switch {
		case err != nil && err != io.EOF:
			return event{}, err
		case len(line) == 0 && (data.Len() > 0 || e.id != ""):
			e.data, err = data.Bytes()
			return e, err
		case len(line) == 0: // an event without data does not count
			e, lines = event{}, 0
		}
		if err == io.EOF {
			if e.data, err = data.Bytes(); err != nil {
				return event{}, err
			}
			if _, whole := rpc.Scan(e.data); whole { // the end of the stream ends the event
				return e, nil
			}
			return event{}, io.EOF
		}
	}
}

// set sets a field of an event that is not its data.
func (s *events) set(e *event, field, value string) {
	switch field {
	case "event":
		e.name = value
	case "id":
		e.id = value
	case "retry":
		if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
			s.retry = max(time.Duration(ms)*time.Millisecond, leastRetry)
		}
	}
}

// part reads a line, without its end, or as much of it as fits in the buffer: then the error is [bufio.ErrBufferFull].
// data is the event so far.
func (s *events) part(data *rpc.Buffer) ([]byte, error) {
	part, err := s.in.ReadSlice('\n')
	if int64(data.Len()+s.prefix+len(part)) > s.max {
		return part, s.skip(data, part, err)
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		part = bytes.TrimRight(part, "\r\n")
	}
	return part, err
}

// add adds the value of a line to the data of an event, and what is still to be read of it.
func (s *events) add(data *rpc.Buffer, value []byte, err error) error {
	for {
		if _, full := data.Write(value); full != nil {
			return full
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		value, err = s.part(data)
	}
}

// skip reads the rest of an event that is too long, of which data and a part of another line have arrived.
func (s *events) skip(data *rpc.Buffer, part []byte, err error) error {
	o := &rpc.Overlong{Size: int64(data.Len() + s.prefix + len(part)), Max: s.max}
	o.Head = slices.Concat(data.Head(rpc.EdgeLength), bytes.TrimPrefix(part[:min(len(part), rpc.EdgeLength)], []byte("data:")))
	o.Head = o.Head[:min(len(o.Head), rpc.EdgeLength)]
	data.Close() // the rest may take long, or have no end: until then the file would take space on the disk
	for {
		err = o.Skip(s.in, part, err, &s.skips, s.done)
		if err == io.EOF && len(part) == 0 { // the end of the stream ends the event
			return o
		} else if err != nil {
			return fmt.Errorf("%w: %w", rpc.ErrTooLarge, err)
		}
		s.skips.Wait(float64(len(part)), s.done)
		part, err = s.in.ReadSlice('\n')
		if o.Size += int64(len(part)); err == nil && len(bytes.TrimRight(part, "\r\n")) == 0 {
			return o
		}
	}
}
