package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childrenCPU is the CPU time of all processes below this one, those that have ended and those that run.
func childrenCPU() time.Duration {
	total := rusage(syscall.RUSAGE_CHILDREN)
	for _, p := range processesBelow() {
		total += p.cpu() + p.waited
	}
	return total
}

// processesBelow lists the processes below this one.
func processesBelow() (list []process) {
	byParent := map[int][]process{}
	names, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil {
			if p, ok := parseStat(data); ok {
				byParent[p.parent] = append(byParent[p.parent], p)
			}
		}
	}
	below := []process{{pid: os.Getpid()}}
	for len(below) > 0 {
		children := byParent[below[0].pid]
		below = append(below[1:], children...)
		list = append(list, children...)
	}
	return list
}

// A process is a running one.
type process struct {
	pid, parent int
	waited      time.Duration // CPU time of its own children that have ended
}

// clockTick is the unit of times in /proc.
const clockTick = 10 * time.Millisecond

// parseStat reads /proc/PID/stat. The name of the program may hold anything, so the fields count from its end.
func parseStat(data []byte) (process, bool) {
	head, rest, ok := bytes.Cut(data, []byte(" ("))
	end := bytes.LastIndexByte(rest, ')')
	if !ok || end < 0 {
		return process{}, false
	}
	fields := bytes.Fields(rest[end+1:])
	if len(fields) < 15 {
		return process{}, false
	}
	number := func(b []byte) int {
		n, _ := strconv.Atoi(string(b)) // the kernel writes numbers
		return n
	}
	ticks := number(fields[13]) + number(fields[14])
	return process{number(head), number(fields[1]), time.Duration(ticks) * clockTick}, true
}

// cpu reads the clock of the process, which is finer than what /proc says. See clock_getcpuclockid(3).
func (p process) cpu() time.Duration {
	const scheduler = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.pid<<3|scheduler), &t); err != nil {
		return 0 // it has just ended
	}
	return time.Duration(t.Nano())
}

// peakRSS is the most memory that a process has had so far.
func peakRSS(pid int) (int64, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, false
	}
	_, rest, ok := bytes.Cut(data, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, false
	}
	kb, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kb << 10, err == nil
}
