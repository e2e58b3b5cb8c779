//go:build !linux

package main

import (
	"syscall"
	"time"
)

// childrenCPU is the CPU time of the processes below this one that have ended.
func childrenCPU() time.Duration { return rusage(syscall.RUSAGE_CHILDREN) }

// peakRSS is not known here.
func peakRSS(int) (int64, bool) { return 0, false }

// A process is a running one; which there are is not known here.
type process struct{ pid int }

func processesBelow() []process { return nil }
