//go:build linux

package worker

import (
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestWantOfMemory: what a program says at its end, and what it was seen to have, tell whether it ended for want of
// memory. The texts of the Go runtime are those that applets at their limit were seen to end with.
func TestWantOfMemory(t *testing.T) {
	const limit = 512 << 20
	const collector = "SIGSEGV: segmentation violation\nPC=0x43365d m=3 sigcode=1 addr=0x0\n\n" +
		"goroutine 0 gp=0xcc422b80780 m=3 mp=0xcc422b8a008 [idle]:\nruntime.(*spanQueue).tryDrain(0xcc400000400?, 0x434191?)\n"
	native := &tool{Program: programs.Program{Name: "awk"}}
	applet := &tool{Program: programs.Program{Name: "jq", Ready: func([]string, programs.Inputs) (programs.Runner, programs.Verdict) { return nil, programs.Verdict{} }}}
	for _, test := range []struct {
		name string
		tool *tool
		text string
		peak int64
		sig  syscall.Signal // exit status 2 if there is none
		want wire.Reason
	}{
		{"the words", native, "sed: memory exhausted\n", 0, 0, wire.MemoryLimit},
		{"the words of Rust", native, "memory allocation of 8000008 bytes failed\n", 0, syscall.SIGABRT, wire.MemoryLimit},
		{"the runtime's words", applet, "fatal error: runtime: out of memory\n", 0, 0, wire.MemoryLimit},
		{"no arena", applet, "fatal error: failed to reserve page summary memory\n", 0, 0, wire.MemoryLimit},
		{"no stack for a thread", applet, "runtime: failed to create new OS thread (have 5 already; errno=12)\nfatal error: newosproc\n", 0, 0, wire.MemoryLimit},
		{"no number for a thread", applet, "runtime: failed to create new OS thread (have 5 already; errno=11)\nfatal error: newosproc\n", 0, 0, wire.Exit},
		{"the collector", applet, collector, 10 << 20, 0, wire.MemoryLimit},
		{"after other words", applet, "jq: error: a\n" + collector, 0, 0, wire.MemoryLimit},
		{"another program that says so", native, collector, 0, 0, wire.Exit},
		{"a fault elsewhere", applet, "SIGSEGV: segmentation violation\nPC=0x1 m=0 sigcode=1 addr=0xc000100000\n\ngoroutine 0 gp=0x1:\n", 0, 0, wire.Exit},
		{"the same at the limit", applet, "SIGSEGV: segmentation violation\nPC=0x1 m=0 sigcode=1 addr=0xc000100000\n\ngoroutine 0 gp=0x1:\n", limit, 0, wire.MemoryLimit},
		{"another fault of the runtime", applet, "fatal error: unexpected\n", limit / 2, 0, wire.Exit},
		{"the same at its limit", applet, "fatal error: unexpected\n", limit / 100 * 95, 0, wire.MemoryLimit},
		{"an error at the limit", applet, "jq: error: fatal error: x\n", limit, 0, wire.Exit},
		{"abort", native, "", limit / 2, syscall.SIGABRT, wire.Signal},
		{"abort at the limit", native, "", limit, syscall.SIGABRT, wire.MemoryLimit},
		{"a kill at the limit", native, "", limit, syscall.SIGTERM, wire.Signal},
	} {
		p := &process{tool: test.tool, limit: limit, kills: oomKills()}
		p.sawMemory(test.peak)
		p.sawMemory(test.peak / 2) // the most counts
		var got *wire.Failure
		if f := (&wire.Failure{Stderr: test.text}); test.sig != 0 {
			got = p.bySignal(f, test.sig, false)
		} else {
			got = p.byStatus(f, 2, false)
		}
		if got.Reason != test.want {
			t.Errorf("%s: %s, want %s", test.name, got.Reason, test.want)
		}
	}
}
