package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Hello is what a worker says of itself.
type Hello struct {
	Version    int
	Profile    Profile
	Landlock   int  // ABI version of the kernel, 0 without Landlock
	Seccomp    bool // system call filters work
	NoNewPrivs bool // no_new_privs is set on the worker
	UID        int
	Programs   []Found
}

// A Profile says what a worker can run safely.
type Profile string

const (
	Dynamic Profile = "dynamic" // programs of the distribution, under Landlock
	Pure    Profile = "pure"    // only what is linked into the worker: it needs no file
)

// Found is one program of the table as a worker finds it.
type Found struct {
	Name    string
	Path    string `json:",omitempty"` // its file; empty for what is linked into the worker
	Refusal string `json:",omitempty"` // why it cannot run here; empty: it can
}

// A Chain is commands that are joined by pipes.
type Chain struct {
	Commands []Command
	Memory   int64 // bytes of private memory that one process may take
	Disk     int64 // bytes that one command may keep in its scratch directory
}

// A Command is one program with its checked arguments.
type Command struct {
	Name    string
	Argv    []string
	Timer   time.Duration `json:",omitempty"` // above zero: wait as long and run nothing
	Timeout time.Duration // of the time in which it has something to do
}

// An Outcome tells how a run ended. Failure is nil when it was a success.
type Outcome struct {
	Usage   []Usage  // by command; empty when none was started
	Failure *Failure `json:",omitempty"`
}

// Usage is what one command used.
type Usage struct {
	In, Out      int64
	Elapsed, CPU time.Duration
}

// A Failure is the first real cause why a run ended early.
type Failure struct {
	Command int // index in the chain
	Reason  Reason
	Status  int    `json:",omitempty"` // exit status, with Exit
	Signal  string `json:",omitempty"` // with Signal
	Detail  string `json:",omitempty"` // with Refused
	Stderr  string `json:",omitempty"` // the beginning and the end of it
	Sample  []byte `json:",omitempty"` // the beginning of the command's input
	Cut     bool   `json:",omitempty"` // whether Sample is not all of it
}

// A Reason says what ended a command.
type Reason string

// The reasons.
const (
	Exit        Reason = "exit"
	Signal      Reason = "signal"
	Timeout     Reason = "timeout"
	CPULimit    Reason = "cpu_limit"
	MemoryLimit Reason = "memory_limit"
	DiskLimit   Reason = "disk_limit"
	Cancelled   Reason = "cancelled"
	Refused     Reason = "refused" // the worker could not or would not start it
)

// Size returns the bytes that the command takes in a message, which is more than it has where they are escaped. Up to
// [MaxCommand] are allowed.
func (c Command) Size() int {
	b, err := encode(c, math.MaxInt)
	if err != nil {
		panic("wire: internal error: " + err.Error()) // strings and numbers always encode
	}
	return len(b)
}

// encode writes a message. It fails if the message has more than limit bytes.
func encode(message any, limit int) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(message); err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	if b.Len() > limit {
		return nil, fmt.Errorf("a message of %d bytes, where %d are allowed: %w", b.Len(), limit, ErrTooLarge)
	}
	return b.Bytes(), nil
}

func decode(k kind, payload []byte, message any) error {
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(message); err != nil {
		return protocolError("%s frame: %v", kinds[k].name, err)
	}
	return nil
}
