package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestGaps: a container with fewer limits than its spec is refused.
func TestGaps(t *testing.T) {
	held := func(change func(*sandbox.Report)) sandbox.Report {
		r := sandbox.Report{
			Surroundings: wire.Surroundings{ReadOnlyRoot: true, NoNetwork: true, Memory: 1 << 30, Processes: maxPids}, UID: nobodyID,
		}
		change(&r)
		return r
	}
	for _, test := range []struct {
		name   string
		report sandbox.Report
		says   string // part of the refusal; empty: there is none
	}{
		{"all is well", held(func(*sandbox.Report) {}), ""},
		{"no limit of memory", held(func(r *sandbox.Report) { r.Memory = 0 }), sandbox.GapMemory},
		{"a higher one", held(func(r *sandbox.Report) { r.Memory = 2 << 30 }), "higher"},
		{"no limit of processes", held(func(r *sandbox.Report) { r.Processes = 0 }), sandbox.GapProcesses},
		{"root", held(func(r *sandbox.Report) { r.UID = 0 }), "another user"},
		{"capabilities", held(func(r *sandbox.Report) { r.Capabilities = 1 }), sandbox.GapCapabilities},
		{"network", held(func(r *sandbox.Report) { r.NoNetwork = false; r.Memory = 0 }), sandbox.GapNetwork},
		{"writable root", held(func(r *sandbox.Report) { r.ReadOnlyRoot = false }), sandbox.GapRoot},
	} {
		err := Options{}.withDefaults().refuse(test.report)
		if test.says == "" && err != nil || test.says != "" && (!errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: got %v, want a refusal with %q", test.name, err, test.says)
		}
	}
}

// TestProfile: the filter of system calls names no socket, and nothing of what reaches beyond the container.
func TestProfile(t *testing.T) {
	text, err := seccompProfile()
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"socket", "socketpair", "connect", "bind", "io_uring_setup", "ptrace", "process_vm_readv", "bpf", "mount", "unshare",
		"setns", "keyctl", "memfd_create", "userfaultfd", "perf_event_open", "open_by_handle_at", "personality",
	} {
		if strings.Contains(text, `"`+call+`"`) {
			t.Errorf("%s is allowed", call)
		}
	}
}
