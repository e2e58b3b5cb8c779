package wire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// MaxItem is how many bytes an item may have that is sent to a run of many.
const MaxItem = 64 << 10

// Parts of answers.
const (
	partOutput = 'o'
	partDone   = 'u' // the item was a success; the payload is what it used
	partFailed = 'f' // it was not; the payload is its [Outcome] as JSON
)

const (
	sizeBytes  = 4
	partHeader = 1 + sizeBytes
	usageBytes = 4 * 8
)

// AppendItem appends an item of at most [MaxItem] bytes to b, as a run of many items reads it.
func AppendItem(b, item []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(item))), item...)
}

// ReadItem reads one item into buf, which has room for [MaxItem] bytes. io.EOF says that there are no more.
func ReadItem(r *bufio.Reader, buf []byte) ([]byte, error) {
	var size [sizeBytes]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > MaxItem {
		return nil, protocolError("an item of %d bytes", n)
	}
	_, err := io.ReadFull(r, buf[:n])
	return buf[:n], noEOF(err)
}

// AppendOutput appends a part of an answer to b: output of the command.
func AppendOutput(b, output []byte) []byte {
	return append(appendPart(b, partOutput, len(output)), output...)
}

// AppendDone ends an answer: the command was a success.
func AppendDone(b []byte, u Usage) []byte {
	b = appendPart(b, partDone, usageBytes)
	for _, n := range []int64{u.In, u.Out, int64(u.Elapsed), int64(u.CPU)} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// AppendFailed ends an answer: the command was none.
func AppendFailed(b []byte, o Outcome) ([]byte, error) {
	payload, err := encode(o, MaxMessage)
	if err != nil {
		return b, err
	}
	return append(appendPart(b, partFailed, len(payload)), payload...), nil
}

func appendPart(b []byte, kind byte, size int) []byte {
	return binary.BigEndian.AppendUint32(append(b, kind), uint32(size))
}

// Answers are what a run of many items says.
type Answers struct {
	r    *bufio.Reader
	left int // bytes of output that were not read yet
	buf  []byte
	done Outcome // of the last item that was a success
}

// NewAnswers reads answers from r.
func NewAnswers(r io.Reader) *Answers { return &Answers{r: bufio.NewReaderSize(r, MaxData)} }

// Ready reports whether something has come that was not read yet.
func (a *Answers) Ready() bool { return a.r.Buffered() > 0 }

// Next returns output of the present item, or how it has ended, which are valid until the next call. io.EOF says that no
// item will be answered any more; the present one may have no end.
func (a *Answers) Next() (output []byte, end *Outcome, err error) {
	for a.left == 0 {
		head, err := a.r.Peek(partHeader)
		if err != nil {
			if len(head) > 0 {
				err = noEOF(err)
			}
			return nil, nil, err
		}
		kind, n := head[0], binary.BigEndian.Uint32(head[1:])
		_, _ = a.r.Discard(partHeader) // it was there
		if kind != partOutput {
			end, err = a.end(kind, n)
			return nil, end, err
		}
		if n > MaxData {
			return nil, nil, protocolError("output of %d bytes in one part", n)
		}
		a.left = int(n)
	}
	if _, err := a.r.Peek(1); err != nil {
		return nil, nil, noEOF(err)
	}
	output, _ = a.r.Peek(min(a.left, a.r.Buffered()))
	_, _ = a.r.Discard(len(output)) // likewise
	a.left -= len(output)
	return output, nil, nil
}

// end reads the last part of an answer.
func (a *Answers) end(kind byte, n uint32) (*Outcome, error) {
	switch {
	case kind == partDone && n == usageBytes, kind == partFailed && n <= MaxMessage:
	default:
		return nil, protocolError("part %q of an answer, of %d bytes", kind, n)
	}
	if cap(a.buf) < int(n) {
		a.buf = make([]byte, n)
	}
	payload := a.buf[:n]
	if _, err := io.ReadFull(a.r, payload); err != nil {
		return nil, fmt.Errorf("reading an answer: %w", noEOF(err))
	}
	if kind == partDone {
		number := func(i int) int64 { return int64(binary.BigEndian.Uint64(payload[8*i:])) }
		u := Usage{In: number(0), Out: number(1), Elapsed: time.Duration(number(2)), CPU: time.Duration(number(3))}
		a.done = Outcome{Usage: append(a.done.Usage[:0], u)}
		return &a.done, a.done.check()
	}
	var o Outcome
	if err := decode(kindOutcome, payload, &o); err != nil {
		return nil, err
	}
	if o.Failure == nil {
		return nil, protocolError("an item that has failed without a failure")
	}
	return &o, o.check()
}
