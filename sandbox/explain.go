package sandbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// stderrShown is how much of a command's standard error an agent gets to read: its end, where the cause stands.
const stderrShown = 2 << 10

// A reason has the error for one way in which a command ends badly.
type reason struct {
	code   stages.Code
	quotes bool // what the command said last belongs to the message; where a limit says it all, it is only noise
	msg    func(c wire.Command, f *wire.Failure) string
	hint   func(c wire.Command) string
}

var badFile = fileReason("name files as they are called from the workspace's directory on; no shell expands * and ~")

func fileReason(hint string) reason {
	return reason{stages.CommandFailed, false, func(c wire.Command, f *wire.Failure) string { return c.Name + ": " + f.Detail }, fixed(hint)}
}

// reasons is the table.
var reasons = map[wire.Reason]reason{
	wire.Exit: {stages.CommandFailed, true, func(c wire.Command, f *wire.Failure) string {
		if f.Status == 0 {
			return c.Name + " reported an error"
		}
		return fmt.Sprintf("%s exited with status %d", c.Name, f.Status)
	}, nil},
	wire.Signal: {stages.CommandFailed, true, func(c wire.Command, f *wire.Failure) string {
		return fmt.Sprintf("%s was ended by a signal (%s)", c.Name, f.Signal)
	}, fixed("if it was killed, the machine may be out of memory: filter earlier; if it crashed, try another command")},
	wire.Refused: {stages.CommandFailed, false, func(c wire.Command, f *wire.Failure) string {
		return fmt.Sprintf("%s could not be started: %s", c.Name, f.Detail)
	}, fixed("this is the server's fault, not the pipeline's: ask its operator to run mcsh commands")},
	wire.BadFile: badFile,
	wire.Escape:  badFile,

	wire.Unreadable:  fileReason("ask the operator to allow it: chmod o+r FILE (o+rx for a directory), or --sandbox local"),
	wire.NoWorkspace: fileReason("ask the operator to allow it: chmod o+rx DIR (of --workspace), or --sandbox local"),

	wire.Timeout: {stages.Timeout, false, func(c wire.Command, _ *wire.Failure) string {
		return fmt.Sprintf("%s was still busy after %s, its \"timeout\" (limit command; waiting for input or for the reader does not count), and was ended",
			c.Name, c.Timeout)
	}, fixed(`filter earlier so that it has less to do, or raise "timeout" of this stage`)},
	wire.CPULimit: {stages.LimitExceeded, false, func(c wire.Command, _ *wire.Failure) string {
		return fmt.Sprintf("%s used more processor time than its \"timeout\" of %s", c.Name, c.Timeout)
	}, fixed(`filter earlier so that it has less to do, or raise "timeout" of this stage`)},
	wire.MemoryLimit: {stages.LimitExceeded, false, func(c wire.Command, f *wire.Failure) string {
		if f.Worker {
			return fmt.Sprintf("the commands of this run together used more than %s of memory, the limit of one run; %s used most of it",
				texts.Bytes(f.Limit), c.Name)
		}
		return fmt.Sprintf("%s used more than %s of memory, the limit of one command", c.Name, texts.Bytes(f.Limit))
	}, memoryHint},
	wire.DiskLimit: {stages.LimitExceeded, true, func(c wire.Command, f *wire.Failure) string {
		if f.Worker {
			return fmt.Sprintf("the commands of this run together needed more than %s on disk, the limit of one run; %s needed most of it",
				texts.Bytes(f.Limit), c.Name)
		}
		return fmt.Sprintf("%s needed more than %s on disk, the limit of one command, or the disk is full", c.Name, texts.Bytes(f.Limit))
	}, fixed("filter earlier so that there is less to sort")},
	wire.FileLimit: {stages.LimitExceeded, false, func(c wire.Command, f *wire.Failure) string {
		return fmt.Sprintf("the commands of this run together made more than %d files on disk, the limit of one run; %s made most of them",
			f.Limit, c.Name)
	}, fixed("filter earlier so that there is less to sort")},
	wire.ProcessLimit: {stages.LimitExceeded, false, func(c wire.Command, f *wire.Failure) string {
		return fmt.Sprintf("%s was not started: %d commands of this run are at work, the limit of one run", c.Name, f.Limit)
	}, fixed("use fewer commands next to each other, or a smaller \"concurrency\"")},
	wire.Cancelled: {stages.Cancelled, false, func(c wire.Command, _ *wire.Failure) string {
		return c.Name + " was cancelled"
	}, nil},
}

// ofRun are the reasons that always have to do with the run or with this machine, not with what the command was given.
var ofRun = map[wire.Reason]bool{wire.FileLimit: true, wire.ProcessLimit: true, wire.Refused: true, wire.NoWorkspace: true}

func fixed(hint string) func(wire.Command) string { return func(wire.Command) string { return hint } }

func memoryHint(c wire.Command) string {
	if c.Name == "jq" {
		return "a JSON document needs about ten times its size: filter earlier, or have one object per line and no -s"
	}
	return "filter earlier, or use a program that need not hold all of its input"
}

// explain makes an error of a failure that the worker has reported.
func (f *filter) explain(fail *wire.Failure) error {
	reason, ok := reasons[fail.Reason]
	if !ok || fail.Command < 0 || fail.Command >= len(f.chain) {
		return at(lostError(fmt.Errorf("it reports %q of command %d", fail.Reason, fail.Command)), 0, f.chain[0].Name)
	}
	c := f.chain[fail.Command]
	e := &stages.Error{Code: reason.code, Msg: texts.Cut(reason.msg(c, fail), stderrShown), Sample: fail.Sample, Cut: fail.Cut}
	e.OfRun = fail.Worker || ofRun[fail.Reason]
	if fail.Reason == wire.Escape {
		e.Err = programs.ErrEscape
	}
	if reason.hint != nil {
		e.Hint = reason.hint(c)
	}
	if said := stderrTail(fail.Stderr); said != "" && reason.quotes {
		e.Msg, e.Said = e.Msg+": "+said, said
	}
	if fail.Reason == wire.Exit {
		e.Hint = programs.Hint(c.Name, programs.Complaint{Args: f.args[fail.Command], Message: fail.Stderr, Sample: fail.Sample})
	}
	return at(e, fail.Command, c.Name)
}

// stderrTail returns the end of what a command said, whole lines of it where possible.
func stderrTail(stderr string) string {
	s := strings.TrimSpace(strings.ToValidUTF8(stderr, "\uFFFD"))
	if len(s) <= stderrShown {
		return s
	}
	s = s[len(s)-stderrShown:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		s = rest
	}
	return strings.ToValidUTF8(s, "")
}

// lostError says that the worker is gone. sandbox_lost is the word to look for in logs. A worker's fault may be
// quoted at any length.
func lostError(err error) error {
	e := stages.Errorf(stages.Internal, "run the pipeline again; nothing of this stage's output is complete",
		"the sandbox worker that ran this stage is gone (sandbox_lost): %w", err)
	e.Msg = texts.Cut(e.Msg, stderrShown)
	return e
}

func cancelled(ctx context.Context) error {
	return stages.Errorf(stages.Cancelled, "", "the stage was cancelled: %w", context.Cause(ctx))
}
