package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The measures of the protocol. Both ends are built with the same.
const (
	Window     = 1 << 20                // bytes that may be under way in one direction of one run
	MaxData    = 64 << 10               // bytes of one data frame
	MaxMessage = 1 << 20                // bytes of one JSON message, run excepted
	Slots      = 256                    // runs at a time in one worker: as many as a plan of 64 stages can need at once, see doc.go
	MaxInputs  = 64                     // named inputs on their way to one worker at a time, besides the runs
	MaxStreams = Slots + MaxInputs + 16 // of them all, and pings

	MaxCommands = 64                                 // of one chain; a pipeline has no more stages
	MaxCommand  = 80 << 10                           // bytes of one command as JSON, see [Command.Size]
	MaxChain    = MaxCommands*(MaxCommand+256) + 512 // bytes of a chain as JSON: any chain within the two fits

	headerSize = 9
	maxHello   = 64 << 10 // bytes of a [Hello] as JSON: what it makes in memory is kept as long as its worker
	version    = 11
)

type kind byte

const (
	kindHello kind = iota + 1
	kindRun
	kindData
	kindEnd
	kindCredit
	kindDeaf
	kindCancel
	kindOutcome
	kindRenew
)

// A side is one end of the connection, as a set, because data and credit come from both.
type side byte

const (
	gateway side = 1 << iota
	worker
)

// kinds says for every kind who may send it and how long its payload is. There is none for 0.
var kinds = [...]struct {
	name     string
	from     side
	min, max uint32
}{
	kindHello:   {"hello", worker, 2, maxHello},
	kindRun:     {"run", gateway, 2, MaxChain},
	kindData:    {"data", gateway | worker, 1, MaxData},
	kindEnd:     {"end", gateway, 0, 0},
	kindCredit:  {"credit", gateway | worker, 4, 4},
	kindDeaf:    {"deaf", worker, 0, 0},
	kindCancel:  {"cancel", gateway, 0, 0},
	kindOutcome: {"outcome", worker, 2, MaxMessage},
	kindRenew:   {"renew", gateway, 0, 0},
}

type header struct {
	kind   kind
	id     uint32
	length uint32
}

// readHeader reads the header of a frame that peer sent. io.EOF means that the stream ended between two frames.
func readHeader(r io.Reader, peer side) (header, error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	h := header{kind(b[0]), binary.BigEndian.Uint32(b[1:]), binary.BigEndian.Uint32(b[5:])}
	if h.kind == 0 || int(h.kind) >= len(kinds) {
		return header{}, protocolError("unknown frame kind %d", b[0])
	}
	k := kinds[h.kind]
	switch {
	case k.from&peer == 0:
		return header{}, protocolError("%s frame from the wrong end", k.name)
	case h.length < k.min || h.length > k.max:
		return header{}, protocolError("%s frame of %d bytes, want %d to %d", k.name, h.length, k.min, k.max)
	}
	return h, nil
}

// appendFrame appends a frame to b.
func appendFrame(b []byte, k kind, id uint32, payload []byte) []byte {
	b = append(b, byte(k))
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// A ProtocolError says what a peer sent that it must not send.
type ProtocolError struct{ Msg string }

func (e *ProtocolError) Error() string { return "sandbox protocol: " + e.Msg }

func protocolError(format string, args ...any) error {
	return &ProtocolError{Msg: fmt.Sprintf(format, args...)}
}
