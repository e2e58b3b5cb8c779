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
	Around     Surroundings
	Workspace  bool // commands may read files of a workspace
	Programs   []Found
}

// Surroundings are what holds a worker from outside, as it sees it from within: what an engine claims to enforce is not
// always enforced.
type Surroundings struct {
	ReadOnlyRoot bool
	NoNetwork    bool   // no interface but the loopback
	Capabilities uint64 // that it has or could get, as bits
	Memory       int64  // bytes that the control group may take, 0 without a limit
	Processes    int64  // of the control group, 0 without a limit
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

// A Chain is what a worker is to run: commands that are joined by pipes.
type Chain struct {
	Commands []Command
	Keep     *Input `json:",omitempty"` // where it is there: no commands; keep the data for those of later runs
	Memory   int64  // bytes of private memory that one process may take
	Disk     int64  // bytes that one command may keep in its scratch directory
	Worker   Budget
}

// A Budget is what all commands of a worker, of all chains that run, may take together. Zero is no bound.
type Budget struct {
	Memory    int64 // bytes of memory that is no file's
	Disk      int64 // bytes in scratch directories
	Files     int   // in scratch directories
	Processes int
}

// A Command is one program with its checked arguments.
type Command struct {
	Name    string
	Argv    []string
	Timer   time.Duration `json:",omitempty"` // above zero: wait as long and run nothing
	Part    *Part         `json:",omitempty"` // where it is there: pass on that part of the input and run nothing
	EndLine bool          `json:",omitempty"` // give its input the newline that it lacks at its end
	Timeout time.Duration // of the time in which it has something to do
	Each    bool          `json:",omitempty"` // it runs once per item: its applet is worth keeping
	Batch   time.Duration `json:",omitempty"` // above zero: its input is a batch of items, which may take as long in place of Timeout

	Inputs []string `json:",omitempty"` // names of inputs beside standard input, kept before the run; files "@NAME" in the working directory
	Set    uint32   `json:",omitempty"` // tells the inputs of different commands apart

	Files []string `json:",omitempty"` // of the workspace, which is its working directory then; it may read these and no others

	// Dir is the directory of the workspace that is the working directory in its place, and where names of Files begin.
	Dir string `json:",omitempty"`

	Check *Check `json:",omitempty"` // where it is there: the arguments are checked, and the command does not do its work
}

// A Check bounds the check of a command's arguments.
type Check struct {
	Script bool          // the worker's own reader of such scripts reads the script; otherwise Argv runs as it is
	Memory int64         // bytes of private memory, besides what a reader of scripts has from its start
	CPU    time.Duration // of the processor
}

// A Part is a stretch of a command's input that it passes on as it is.
type Part struct {
	Skip, Take int64 // how much is left out before it, and how long it is; Take is below zero for all that is left
	Bytes      bool  `json:",omitempty"` // they count bytes, not lines
	Zero       bool  `json:",omitempty"` // lines end with NUL
}

// An Input says where what follows is kept.
type Input struct {
	Set  uint32
	Name string
	Disk int64 // bytes that all inputs of the worker may take
}

// An Outcome tells how a run ended. Failure is nil when it was a success.
type Outcome struct {
	Usage   Usages   // by command; empty when none was started
	Failure *Failure `json:",omitempty"`
}

// check returns an error for an outcome that no honest worker reports. Counts below zero would lower those of the gateway, which
// must only grow.
func (o Outcome) check() error {
	if len(o.Usage) > MaxCommands {
		return protocolError("what %d commands have used", len(o.Usage))
	}
	for i, u := range o.Usage {
		if least := min(u.In, u.Out, int64(u.Elapsed), int64(u.CPU)); least < 0 {
			return protocolError("command %d has used %d", i, least)
		}
	}
	return nil
}

// Usage is what one command used.
type Usage struct {
	In, Out      int64
	Elapsed, CPU time.Duration
	Said         string `json:",omitempty"` // how its standard error begins, if it did not fail
}

// MaxSaid bounds [Usage.Said], in bytes.
const MaxSaid = 200

// Usages are those of the commands of a chain.
type Usages []Usage

// maxUsages is more than those of a chain take as JSON.
const maxUsages = MaxCommands * (256 + 6*MaxSaid)

// UnmarshalJSON refuses what is longer: an empty value takes a tenth of what is made of it.
func (u *Usages) UnmarshalJSON(text []byte) error {
	if len(text) > maxUsages {
		return protocolError("what commands have used takes %d bytes, more than %d", len(text), maxUsages)
	}
	return json.Unmarshal(text, (*[]Usage)(u))
}

// SampleSize is how many bytes of its input the failure of a command shows at most.
const SampleSize = 4 << 10

// A Failure is the first real cause why a run ended early.
type Failure struct {
	Command int // index in the chain
	Reason  Reason
	Status  int    `json:",omitempty"` // exit status, with Exit
	Signal  string `json:",omitempty"` // with Signal
	Limit   int64  `json:",omitempty"` // that was exceeded: bytes, files or processes
	Worker  bool   `json:",omitempty"` // whether the limit is that of all commands of the worker together
	Detail  string `json:",omitempty"` // with Refused and BadFile
	Stderr  string `json:",omitempty"` // the beginning and the end of it
	Sample  []byte `json:",omitempty"` // the beginning of the command's input
	Cut     bool   `json:",omitempty"` // whether Sample is not all of it
}

// A Reason says what ended a command.
type Reason string

// The reasons.
const (
	Exit         Reason = "exit"
	Signal       Reason = "signal"
	Timeout      Reason = "timeout"
	CPULimit     Reason = "cpu_limit"
	MemoryLimit  Reason = "memory_limit"
	DiskLimit    Reason = "disk_limit"
	FileLimit    Reason = "file_limit"
	ProcessLimit Reason = "process_limit" // the chain was not started
	Cancelled    Reason = "cancelled"
	Refused      Reason = "refused"    // the worker could not or would not start it
	BadFile      Reason = "file"       // a file of the workspace cannot be read; the chain was not started
	Escape       Reason = "escape"     // likewise, as it leads out of the workspace, or to what is not for commands
	Unreadable   Reason = "unreadable" // likewise, as the user that commands run as may not read it
	NoWorkspace  Reason = "workspace"  // likewise, as that user may not read the workspace
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
