package docker

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
)

// TestGaps: a container that is held less than it was told to be is refused, and only missing limits can be allowed.
func TestGaps(t *testing.T) {
	held := func(change func(*sandbox.Report)) sandbox.Report {
		r := sandbox.Report{ReadOnlyRoot: true, NoNetwork: true, Memory: 1 << 30, Processes: maxPids, UID: nobodyID}
		change(&r)
		return r
	}
	for _, test := range []struct {
		name      string
		report    sandbox.Report
		says      string // part of the refusal; empty: there is none
		unlimited bool   // it can be allowed
	}{
		{"all is well", held(func(*sandbox.Report) {}), "", true},
		{"no limit of memory", held(func(r *sandbox.Report) { r.Memory = 0 }), sandbox.GapMemory, true},
		{"a higher one", held(func(r *sandbox.Report) { r.Memory = 2 << 30 }), "higher", true},
		{"no limit of processes", held(func(r *sandbox.Report) { r.Processes = 0 }), sandbox.GapProcesses, true},
		{"root", held(func(r *sandbox.Report) { r.UID = 0 }), "another user", false},
		{"capabilities", held(func(r *sandbox.Report) { r.Capabilities = 1 }), sandbox.GapCapabilities, false},
		{"network", held(func(r *sandbox.Report) { r.NoNetwork = false; r.Memory = 0 }), sandbox.GapNetwork, false},
		{"writable root", held(func(r *sandbox.Report) { r.ReadOnlyRoot = false }), sandbox.GapRoot, false},
	} {
		for _, allowed := range []bool{false, true} {
			o := Options{AllowUnlimited: allowed}.withDefaults()
			err := o.refuse(test.report)
			switch {
			case test.says == "" || allowed && test.unlimited:
				if err != nil {
					t.Errorf("%s (allowed %v): %v", test.name, allowed, err)
				}
			case !errors.Is(err, ErrNotHeld) || !strings.Contains(err.Error(), test.says):
				t.Errorf("%s (allowed %v): got %v, want a refusal with %q", test.name, allowed, err, test.says)
			}
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
