package remote

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// An event is one server-sent event.
type event struct {
	name, id string
	data     []byte // the caller's to keep
}

// events reads a stream of server-sent events.
type events struct {
	in    *bufio.Reader
	max   int64         // bytes of one event
	retry time.Duration // how long the server wants us to wait before the stream is taken up again; 0: it has not said
}

func newEvents(r io.Reader, limit int64) *events {
	return &events{in: bufio.NewReader(r), max: limit} // most are short; a longer line grows it
}

// next returns the next event that has data or an id. The error of one that is too long is an *Overlong of rpc, after
// which the stream goes on.
func (s *events) next() (e event, err error) {
	var raw []byte
	for {
		line, err := s.line(&raw, e.data)
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if e.data == nil {
				e.data = value
				if value == nil { // a field without a colon has a value that is empty
					e.data = []byte{}
				}
			} else {
				e.data = append(append(e.data, '\n'), value...)
			}
		case "event":
			e.name = string(value)
		case "id":
			e.id = string(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				s.retry = max(time.Duration(ms)*time.Millisecond, leastRetry)
			}
		}
		if len(line) == 0 {
			if len(e.data) > 0 || e.id != "" {
				return e, nil
			}
			e = event{} // one without data is none, whatever its name is
		}
		if err != nil {
			if _, whole := rpc.Scan(e.data); whole { // the end of the stream ends the event
				return e, nil
			}
			return event{}, err
		}
	}
}

// line reads one line, without its end. raw is a buffer to be used again where no data was kept in it.
func (s *events) line(raw *[]byte, data []byte) ([]byte, error) {
	buf := (*raw)[:0]
	if data != nil {
		buf = nil
	}
	for {
		part, err := s.in.ReadSlice('\n')
		if int64(len(data)+len(buf)+len(part)) > s.max {
			return nil, s.skip(data, buf, part, err)
		}
		if len(buf) > 0 && cap(buf)-len(buf) < len(part) { // double: append would copy a large event five times over
			buf = append(make([]byte, 0, max(2*cap(buf), len(buf)+len(part))), buf...)
		}
		buf = append(buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			*raw = buf
			return bytes.TrimRight(buf, "\r\n"), err
		}
		if s.in.Size() < bigBuffer {
			s.in = bufio.NewReaderSize(s.in, bigBuffer)
		}
	}
}

// leastRetry is how long a stream rests at least, however little the server asks for.
const leastRetry = 20 * time.Millisecond

// bigBuffer is what is read at once of a long line.
const bigBuffer = 64 << 10

// edge is how much is kept of each end of an event that is too long.
const edge = 4 << 10

// skip reads the rest of an event that is too long. What has come of it are the data of its lines and the beginning of
// another line.
func (s *events) skip(data, buf, part []byte, err error) error {
	o := &rpc.Overlong{Size: int64(len(data) + len(buf) + len(part))}
	line := append(buf[:min(len(buf), edge):min(len(buf), edge)], part[:min(len(part), edge)]...)
	o.Head = append(data[:min(len(data), edge):min(len(data), edge)], bytes.TrimPrefix(line, []byte("data:"))...)
	o.Head = o.Head[:min(len(o.Head), edge)]
	blank := false
	for {
		o.Tail = append(o.Tail, bytes.TrimRight(part, "\r\n")...)
		o.Tail = append(o.Tail[:0], o.Tail[max(0, len(o.Tail)-edge):]...)
		if blank && len(bytes.TrimRight(part, "\r\n")) == 0 {
			return o
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%w: %w", rpc.ErrTooLarge, err)
		}
		blank = err == nil
		part, err = s.in.ReadSlice('\n')
		o.Size += int64(len(part))
	}
}
