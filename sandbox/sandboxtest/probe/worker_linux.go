package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asWorker is the argument with which the binary tries, locked in as a worker is, what a worker must not be able to do.
const asWorker = "as-worker"

// probeWorker prints what worked in a locked worker, one on a line.
func probeWorker(scratch string) int {
	path, _ := unix.BytePtrFromString("/usr/bin/id")
	p := uintptr(unsafe.Pointer(path))
	parent := os.Getppid()
	for _, try := range []try{
		open(filepath.Join(scratch, "own"), unix.O_CREAT|unix.O_WRONLY),
		open("/etc/passwd", unix.O_RDONLY),
		open("/etc/hostname", unix.O_RDONLY),
		open("/", unix.O_RDONLY|unix.O_DIRECTORY),
		open("/proc", unix.O_RDONLY|unix.O_DIRECTORY),
		open("/usr/bin/id", unix.O_RDONLY),
		open("/tmp/pwn", unix.O_CREAT|unix.O_WRONLY),
		open("/proc/self/oom_score_adj", unix.O_WRONLY),
		open("/proc/sys/kernel/core_pattern", unix.O_WRONLY),
		open(fmt.Sprintf("/proc/%d/environ", parent), unix.O_RDONLY),
		open(fmt.Sprintf("/proc/%d/mem", parent), unix.O_RDONLY),
		open(fmt.Sprintf("/proc/%d/maps", parent), unix.O_RDONLY),
		{"run id", func() error { return exec.Command("/usr/bin/id").Run() }},
		{"run sh", func() error { return exec.Command("/bin/sh", "-c", "exit").Run() }},
		call("socket unix", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM),
		call("socket inet", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM),
		call("socket vsock", unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM),
		call("kill parent", unix.SYS_KILL, uintptr(parent), 0),
		call("ptrace", unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(parent)),
		call("memfd_create", unix.SYS_MEMFD_CREATE, p),
		call("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		call("mount", unix.SYS_MOUNT, p, p, p, unix.MS_BIND),
		{"own program", func() error { return exec.Command("/proc/self/exe", "worker", "jail", "{}").Run() }},
	} {
		if err := try.do(); err == nil {
			fmt.Println(try.name)
		}
	}
	return 0
}
