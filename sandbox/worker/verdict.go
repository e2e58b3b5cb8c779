//go:build linux

package worker

import (
	"slices"
	"strings"
	"syscall"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// exhausted are words with which programs say that there is no memory, by program: glibc tools, gawk, bc, Go.
var exhausted = []string{
	"memory exhausted", "cannot allocate", "cannot reallocate", "out of memory", "Out of memory",
	"Cannot allocate memory", "Memory exhausted", "virtual memory exhausted",
}

// overtime are words with which the Go runtime of an applet says that it got SIGXCPU.
var overtime = []string{"SIGXCPU: cpu time limit exceeded"}

// full are words with which programs say that the scratch directory is.
var full = []string{"No space left on device", "File too large", "Disk quota exceeded"}

// bySignal says what a signal means that this worker did not send. SIGKILL is not in it: it may be the kernel's, out of
// memory, or anybody's.
var bySignal = map[syscall.Signal]wire.Reason{
	syscall.SIGXCPU: wire.CPULimit,
	syscall.SIGXFSZ: wire.DiskLimit,
}

// judge returns why an ended process has failed, nil if it has not. broken says that its reader had stopped reading.
func (p *process) judge(broken bool) *wire.Failure {
	if p.killed || p.tool == nil || p.err == nil {
		return nil
	}
	f := &wire.Failure{Command: p.index}
	if p.cmd.ProcessState == nil {
		f.Reason, f.Detail = wire.Refused, p.err.Error()
		return f
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	f.Stderr = p.stderr.text()
	if status.Signaled() {
		return bySignalled(f, status.Signal(), broken)
	}
	return byStatus(f, status.ExitStatus(), p.tool.SuccessCodes, broken)
}

func bySignalled(f *wire.Failure, sig syscall.Signal, broken bool) *wire.Failure {
	if sig == syscall.SIGPIPE && broken {
		return nil
	}
	f.Reason, f.Signal = wire.Signal, sig.String()
	if r, ok := bySignal[sig]; ok {
		f.Reason = r
	} else if holdsAny(f.Stderr, exhausted) {
		f.Reason = wire.MemoryLimit
	}
	return f
}

func byStatus(f *wire.Failure, status int, success []int, broken bool) *wire.Failure {
	if status == 0 || slices.Contains(success, status) || broken && strings.Contains(f.Stderr, "Broken pipe") {
		return nil
	}
	f.Reason, f.Status = wire.Exit, status
	switch {
	case status == jailStatus && strings.HasPrefix(f.Stderr, jailPrefix):
		f.Reason, f.Detail = wire.Refused, strings.TrimSpace(strings.TrimPrefix(f.Stderr, jailPrefix))
	case holdsAny(f.Stderr, exhausted):
		f.Reason = wire.MemoryLimit
	case holdsAny(f.Stderr, overtime):
		f.Reason = wire.CPULimit
	case holdsAny(f.Stderr, full):
		f.Reason = wire.DiskLimit
	}
	return f
}

func holdsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}
