package cli

import (
	"math"
	"runtime/debug"
	"strings"
	"testing"
)

// TestBound: defaults are lowered to what fits the memory, and what somebody has asked for is refused if it does not fit.
func TestBound(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, tt := range []struct {
		memory, limits, env string
		wrong               string // the error, or
		held                int64  // what a run may hold
	}{
		{memory: "384MiB", held: 256 << 20},
		{env: "384MiB", held: 256 << 20},
		{memory: "64MiB", held: 44739232},
		{memory: "64MiB", limits: "held=10MiB,result=1MiB", held: 10 << 20},
		{memory: "63MiB", wrong: "--memory 63MiB is less than the least that works: 64MiB"},
		{env: "much", wrong: "MCSH_MEMORY=much: write a number of bytes"},
		{memory: "64MiB", limits: "held=300MiB", wrong: "--limit held=300MiB does not fit --memory 64MiB, of which it may have 42MiB"},
		{memory: "384MiB", limits: "result=200MiB", wrong: "--limit result=200MiB does not fit --memory 384MiB, of which it may have 128MiB"},
		{memory: "384MiB", limits: "sessions=20000", wrong: "--limit sessions=20000 does not fit --memory 384MiB, of which it may have 12288"},
		{memory: "384MiB", limits: "body=20MiB", wrong: "--limit body=20MiB does not fit"},
		{memory: "384MiB", limits: "tools=100000", wrong: "--limit tools=100000 does not fit --memory 384MiB"},
		{memory: "384MiB", limits: "tool-list=40MiB", wrong: "--limit tool-list=40MiB does not fit --memory 384MiB"},
		{memory: "384MiB", limits: "schema=10MiB", wrong: "--limit schema=10MiB does not fit --memory 384MiB"},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		p := &program{env: map[string]string{}}
		if tt.env != "" {
			p.env[memoryVariable] = tt.env
		}
		var s settings
		if tt.memory != "" {
			if err := s.memory.Set(tt.memory); err != nil {
				t.Fatal(err)
			}
		}
		if tt.limits != "" {
			if err := (limitFlag{&s.limits}).Set(tt.limits); err != nil {
				t.Fatal(err)
			}
		}
		err := p.setMemory(&s)
		if tt.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%+v: got %v", tt, err)
			}
			continue
		}
		if err != nil || s.limits.withDefaults().Held != tt.held || debug.SetMemoryLimit(-1) != int64(s.memory)+ownMemory {
			t.Errorf("%+v: got %v, %d, a memory limit of %d", tt, err, s.limits.withDefaults().Held, debug.SetMemoryLimit(-1))
		}
	}
	debug.SetMemoryLimit(100 << 20)
	if err := (&program{}).setMemory(&settings{memory: 384 << 20}); err != nil || debug.SetMemoryLimit(-1) != 100<<20 {
		t.Errorf("a lower $GOMEMLIMIT is gone: %v, %d", err, debug.SetMemoryLimit(-1))
	}
}
