package stages

import (
	"errors"
	"strconv"
)

// form says how results are written, and what stands in the place of items that failed.
type form struct {
	lines    bool // one result a line, else one JSON array
	raw      bool // results are bytes, passed on as they are
	withItem bool
	onError  string
}

// ofItem says of every code whether a failure with it is one of the item, so that on_error applies. All others, and
// those that are marked as failures of the run, end the run whatever on_error says: they would meet every item alike,
// or nobody knows what has happened.
var ofItem = map[Code]bool{
	ToolError:         true,
	ServerUnavailable: true, // this call did not come through; the next may
	InvalidArguments:  true, // the item does not fit the tool
	CommandFailed:     true,
	Timeout:           true, // of one call, one command or a for_each within; that of the run and of the stage end the context
	LimitExceeded:     true, // the item's data is too large; limits of the run are marked

	InvalidPipeline:    false, // as all that the plan forbids
	UnknownServer:      false, // the server was removed while the pipeline ran
	UnknownTool:        false,
	UnknownRun:         false,
	DisallowedCommand:  false,
	DisallowedArgument: false,
	Denied:             false, // the tool may not be called, whatever the item is
	Cancelled:          false, // the caller has gone, or the gateway closes
	Internal:           false, // a sandbox that is lost, a bug
}

// failureOf returns the failure of an item that on_error applies to, or nil: what ended it is not its own.
func failureOf(err error) *Error {
	var f *Error
	if !errors.As(err, &f) || f.OfRun || !ofItem[f.Code] {
		return nil
	}
	return f
}

// success puts what stands for an item that succeeded into the slot.
func (f form) success(s *slot) error {
	if !f.withItem {
		return nil
	}
	list := values(s.out.buf.Bytes())
	b := append([]byte(`{"item":`), s.item.value()...)
	b = append(b, `,"result":`...)
	switch len(list) {
	case 0:
		b = append(b, "null"...)
	case 1:
		b = append(b, list[0]...)
	default:
		b = append(b, '[')
		for i, v := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, v...)
		}
		b = append(b, ']')
	}
	return s.become(append(b, '}'))
}

// failure puts what stands for an item that failed into the slot.
func (f form) failure(s *slot, failed *Error, t *trial) error {
	s.out.release()
	if f.onError == onErrorSkip {
		return nil
	}
	msg := failed.Msg
	if failed.Item != 0 {
		msg += " (item " + strconv.Itoa(failed.Item) + " of the for_each within)"
	}
	if t.note != "" {
		msg += " (" + t.note + ")"
	}
	about := appendString([]byte(`{"code":`), []byte(failed.Code))
	about = appendString(append(about, `,"message":`...), []byte(msg))
	about = strconv.AppendInt(append(about, `,"attempts":`...), int64(t.attempts), 10)
	about = strconv.AppendInt(append(about, `,"index":`...), int64(s.number), 10)
	var b []byte
	if f.withItem {
		b = append(append(b, `{"item":`...), s.item.value()...)
		b = append(append(b, `,"error":`...), about...)
		return s.become(append(b, '}', '}'))
	}
	b = append(append(b, `{"error":`...), about...)
	b = append(append(b, `,"item":`...), s.item.value()...)
	return s.become(append(b, '}', '}'))
}

// value returns the item as a JSON value, exactly as it came; a line of text as a string.
func (it item) value() []byte {
	if it.text {
		return appendString(nil, it.data)
	}
	return it.data
}
