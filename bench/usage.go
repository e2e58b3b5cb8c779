package main

import (
	"runtime"
	"syscall"
	"time"
)

// usage is what work took.
type usage struct {
	elapsed time.Duration
	cpu     time.Duration // of this process and of all below it, also of those that run on
	mallocs uint64        // of this process
}

// A meter measures from its start.
type meter struct {
	start   time.Time
	cpu     time.Duration
	mallocs uint64
}

func startMeter() meter {
	m := meter{mallocs: mallocs()}
	m.cpu = childrenCPU() + ownCPU() // ours last: looking at processes takes time itself
	m.start = time.Now()
	return m
}

func (m meter) stop() usage {
	u := usage{elapsed: time.Since(m.start)}
	own := ownCPU()
	u.cpu = own + childrenCPU() - m.cpu
	u.mallocs = mallocs() - m.mallocs
	return u
}

func mallocs() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.Mallocs
}

func ownCPU() time.Duration { return rusage(syscall.RUSAGE_SELF) }

func rusage(who int) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(who, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
