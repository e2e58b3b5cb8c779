//go:build linux

package jail

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h): nr, arch, instruction_pointer, args. Both architectures are
// little endian, so the low word of an argument comes first.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// x32Bit marks the system calls of the x32 ABI on amd64; no number on any architecture is that large.
const x32Bit = 0x40000000

// A rule allows one system call, if all of its conditions hold.
type rule struct {
	number uint32
	when   []cond
}

// A cond holds if the argument's low word, masked where mask is not zero, is one of oneOf. Without a mask the high
// word must be zero.
type cond struct {
	arg   uint32
	mask  uint32
	oneOf []uint32
}

// The verdicts for system calls that no rule allows.
const (
	denied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// compile makes the filter program: another architecture kills the process, unknown calls look as if the kernel did
// not have them, a call that no rule allows is EPERM. Of two rules for a call the first counts.
func compile(rules []rule, unknown []uint32) ([]unix.SockFilter, error) {
	verdicts := map[uint32][]unix.SockFilter{}
	for _, n := range unknown {
		verdicts[n] = []unix.SockFilter{ret(missing)}
	}
	for _, r := range slices.Backward(rules) {
		body := r.body()
		if len(body) > longestJump {
			return nil, fmt.Errorf("compiling the system call filter: rule for call %d is too long", r.number)
		}
		verdicts[r.number] = body
	}
	return search(verdicts, denied)
}

// search makes the program that finds the verdict for a call's number by halving. Each process pays for its length, and
// for its depth: when a filter is installed, the kernel has it decide about every call there is.
func search(verdicts map[uint32][]unix.SockFilter, otherwise uint32) ([]unix.SockFilter, error) {
	spans := []span{{0, []unix.SockFilter{ret(otherwise)}}}
	add := func(from uint32, body []unix.SockFilter) {
		if last := len(spans) - 1; spans[last].from == from {
			spans = spans[:last]
		}
		if last := len(spans) - 1; last < 0 || !slices.Equal(spans[last].body, body) {
			spans = append(spans, span{from, body})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(verdicts)) {
		add(n, verdicts[n])
		add(n+1, []unix.SockFilter{ret(otherwise)})
	}
	p := append(prologue(), halve(spans)...)
	if len(p) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("compiling the system call filter: %d instructions, %d at most", len(p), unix.BPF_MAXINSNS)
	}
	return p, nil
}

// A span is what is done about the calls from one number on, to where the next span begins.
type span struct {
	from uint32
	body []unix.SockFilter
}

// longestJump is how many instructions a condition can skip.
const longestJump = 255

func halve(spans []span) []unix.SockFilter {
	if len(spans) == 1 {
		return spans[0].body
	}
	middle := len(spans) / 2
	low, high := halve(spans[:middle]), halve(spans[middle:])
	if len(low) <= longestJump {
		return slices.Concat([]unix.SockFilter{jump(unix.BPF_JGE, spans[middle].from, uint8(len(low)), 0)}, low, high)
	}
	always := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(low))}
	return slices.Concat([]unix.SockFilter{jump(unix.BPF_JGE, spans[middle].from, 0, 1), always}, low, high)
}

// prologue kills what calls by the rules of another architecture, and leaves the call's number loaded.
func prologue() []unix.SockFilter {
	return []unix.SockFilter{
		load(offArch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNumber), jump(unix.BPF_JGE, x32Bit, 0, 1), ret(unix.SECCOMP_RET_KILL_PROCESS),
	}
}

// body returns the instructions that decide about a call whose number has matched; all paths end in a verdict.
func (r rule) body() []unix.SockFilter {
	if len(r.when) == 0 {
		return []unix.SockFilter{ret(unix.SECCOMP_RET_ALLOW)}
	}
	var p []unix.SockFilter
	var toDeny []int // jumps whose false branch is the last instruction
	for _, c := range r.when {
		if c.mask == 0 {
			p = append(p, load(offArgs+8*c.arg+4), jump(unix.BPF_JEQ, 0, 0, 0))
			toDeny = append(toDeny, len(p)-1)
		}
		p = append(p, load(offArgs+8*c.arg))
		if c.mask != 0 {
			p = append(p, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask})
		}
		for i, v := range c.oneOf {
			p = append(p, jump(unix.BPF_JEQ, v, uint8(len(c.oneOf)-1-i), 0))
		}
		toDeny = append(toDeny, len(p)-1)
	}
	p = append(p, ret(unix.SECCOMP_RET_ALLOW), ret(denied))
	for _, i := range toDeny {
		p[i].Jf = uint8(len(p) - 1 - (i + 1))
	}
	return p
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func ret(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

func jump(op uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: yes, Jf: no}
}
