//go:build linux

package worker

import (
	"slices"
	"strings"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// exhausted are words with which programs say that there is no memory, by program: glibc tools, gawk, bc, Rust, Go.
var exhausted = []string{
	"memory exhausted", "cannot allocate", "cannot reallocate", "out of memory", "Out of memory",
	"Cannot allocate memory", "Memory exhausted", "virtual memory exhausted",
	"memory allocation of ",
	"failed to reserve", "memory reservation exceeds",
}

// Words of the Go runtime of an applet that breaks. An applet is Go alone: on the runtime's own stack (goroutine 0)
// a nil pointer is memory that it was not given, which it does not check everywhere, its collector for one.
var (
	broke    = lazy.Regexp(`(?m)^(fatal error|SIG[A-Z]+): `)
	ungiven  = lazy.Regexp(`(?m)^SIG(SEGV|BUS): .*\nPC=\S+ m=\d+ sigcode=\d+ addr=0x[0-9a-f]{1,3}\n\s*goroutine 0 `)
	noThread = lazy.Regexp(`failed to create new OS thread \(have \d+ already; errno=12\)`) // ENOMEM
)

// crashes are the signals of a program that uses memory without looking whether it was given any.
var crashes = []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGABRT}

// overtime are words with which the Go runtime of an applet says that it got SIGXCPU.
var overtime = []string{"SIGXCPU: cpu time limit exceeded"}

// diskFullMessages are words with which programs say that the scratch directory is.
var diskFullMessages = []string{"No space left on device", "File too large", "Disk quota exceeded"}

// readerless are words with which programs say that their reader has gone. gawk sends itself SIGPIPE then, which the jail
// forbids as it does all such calls, and takes that for what has failed.
var readerless = []string{"Broken pipe", `standard output" failed: Operation not permitted`, "standard output: Operation not permitted"}

// limitSignals says what a signal means that this worker did not send. SIGKILL is not in it: it is the
// kernel's, out of memory, if the control group counts one more, and may come from elsewhere otherwise.
var limitSignals = map[syscall.Signal]wire.Reason{
	syscall.SIGXCPU: wire.CPULimit,
	syscall.SIGXFSZ: wire.DiskLimit,
}

// judge returns why an ended process has failed, nil if it has not. broken says that its reader had stopped reading.
func (p *process) judge(broken bool) *wire.Failure {
	if p.killed || p.unread || p.tool == nil {
		return nil
	}
	f := &wire.Failure{Command: p.index}
	switch {
	case p.served && p.status == 0:
		return nil
	case p.served:
		f.Stderr = p.stderr.text()
		return p.byStatus(f, p.status, broken)
	case p.task.err != nil:
		f.Reason, f.Detail = wire.Refused, p.task.err.Error()
		return f
	case p.kept != nil && p.task.state.Status == 0:
		f.Reason, f.Detail = wire.Refused, "it ended before it had said how its input went"
		return f
	}
	status := p.task.state.Status
	p.sawMemory(p.task.state.MaxRSS)
	f.Stderr = p.stderr.text()
	if status.Signaled() {
		return p.bySignal(f, status.Signal(), broken)
	}
	return p.byStatus(f, status.ExitStatus(), broken)
}

// starved says whether p has ended for want of memory: it says so, or it crashed with its memory almost used up.
func (p *process) starved(text string, crashed bool) bool {
	if holdsAny(text, exhausted) {
		return true
	}
	if p.tool.linked() {
		if ungiven().MatchString(text) || noThread().MatchString(text) {
			return true
		}
		crashed = crashed || broke().MatchString(text)
	}
	return crashed && p.limit > 0 && p.peak.Load() >= p.limit/10*9
}

// bySignal judges a process that a signal has ended.
func (p *process) bySignal(f *wire.Failure, sig syscall.Signal, broken bool) *wire.Failure {
	if sig == syscall.SIGPIPE && broken {
		return nil
	}
	f.Reason, f.Signal = wire.Signal, sig.String()
	if r, ok := limitSignals[sig]; ok {
		f.Reason = r
	} else if sig == syscall.SIGKILL && oomKills() > p.kills || p.starved(f.Stderr, slices.Contains(crashes, sig)) {
		f.Reason = wire.MemoryLimit
	}
	return f
}

func (p *process) byStatus(f *wire.Failure, status int, broken bool) *wire.Failure {
	success := slices.Contains(p.tool.SuccessCodes, status) || broken && holdsAny(f.Stderr, readerless)
	if status == 0 {
		success = p.tool.Errors == nil || !p.tool.Errors().MatchString(f.Stderr)
	}
	if success {
		return nil
	}
	f.Reason, f.Status = wire.Exit, status
	switch {
	case status == jailStatus && strings.HasPrefix(f.Stderr, jailPrefix):
		f.Reason, f.Detail = wire.Refused, strings.TrimSpace(strings.TrimPrefix(f.Stderr, jailPrefix))
	case p.starved(f.Stderr, false):
		f.Reason = wire.MemoryLimit
	case holdsAny(f.Stderr, overtime):
		f.Reason = wire.CPULimit
	case holdsAny(f.Stderr, diskFullMessages):
		f.Reason = wire.DiskLimit
	}
	return f
}

func holdsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}
