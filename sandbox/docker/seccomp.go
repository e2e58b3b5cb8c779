package docker

import (
	"encoding/json"
	"slices"
)

// The system calls that a container of ours makes, by purpose. All others are refused. The worker and the
// jail of every command take away more; this list is what is left to somebody who has taken over the worker. There is
// no socket in it: an engine's network "none" leaves sockets of virtual machines (AF_VSOCK), which no network holds.
var allowedCalls = [][]string{
	// Data, descriptors, waiting.
	{
		"read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "close", "close_range", "dup", "dup2", "dup3",
		"pipe", "pipe2", "splice", "tee", "sendfile", "copy_file_range", "fcntl", "ioctl", "poll", "ppoll", "select", "pselect6",
		"epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2",
	},
	// Files.
	{
		"open", "openat", "openat2", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs", "fstatfs", "access", "faccessat",
		"faccessat2", "readlink", "readlinkat", "getdents64", "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir", "unlink",
		"unlinkat", "rename", "renameat", "renameat2", "ftruncate", "fallocate", "fadvise64", "fsync", "fdatasync", "umask",
	},
	// Memory.
	{"mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "brk", "membarrier"},
	// Threads, processes, signals to processes of the container.
	{
		"execve", "execveat", "exit", "exit_group", "wait4", "waitid", "vfork", "pidfd_open", "pidfd_send_signal", "kill", "tkill",
		"tgkill", "futex", "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "sched_yield", "sched_getaffinity",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait", "sigaltstack",
		"restart_syscall", "setpgid", "getpgid", "getpgrp", "setsid", "getsid", "arch_prctl", "prctl", "prlimit64", "getrlimit",
		"setrlimit", "getrusage", "times", "getpid", "gettid", "getppid",
	},
	// Identity, system and time.
	{
		"getuid", "geteuid", "getgid", "getegid", "getgroups", "getresuid", "getresgid", "capget", "capset", "uname", "sysinfo",
		"getrandom", "time", "gettimeofday", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep",
		"timer_create", "timer_settime", "timer_delete", "setitimer",
	},
	// Giving up more.
	{"seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"},
}

// The parts of an engine's profile, see "seccomp security profiles" in the documentation of Docker.
type (
	profile struct {
		DefaultAction string `json:"defaultAction"`
		Syscalls      []rule `json:"syscalls"`
	}
	rule struct {
		Names    []string    `json:"names"`
		Action   string      `json:"action"`
		ErrnoRet *uint       `json:"errnoRet,omitempty"`
		Args     []condition `json:"args,omitempty"`
	}
	condition struct {
		Index    uint   `json:"index"`
		Value    uint64 `json:"value"`
		ValueTwo uint64 `json:"valueTwo"`
		Op       string `json:"op"`
	}
)

const (
	refuse = "SCMP_ACT_ERRNO" // EPERM unless the rule says otherwise
	allow  = "SCMP_ACT_ALLOW"

	// namespaces are the flags of clone(2) that make new namespaces: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER,
	// NEWPID and NEWNET.
	namespaces = 0x7e020000

	enosys = 38
)

// seccompProfile returns the system calls that a container may make, in the form that an engine takes.
func seccompProfile() (string, error) {
	missing := uint(enosys)
	p := profile{DefaultAction: refuse, Syscalls: []rule{
		{Names: slices.Concat(allowedCalls...), Action: allow},
		{Names: []string{"clone"}, Action: allow, Args: []condition{{Index: 0, Value: namespaces, ValueTwo: 0, Op: "SCMP_CMP_MASKED_EQ"}}},
		{Names: []string{"clone3"}, Action: refuse, ErrnoRet: &missing}, // its flags cannot be seen; libraries fall back to clone
	}}
	text, err := json.Marshal(p)
	return string(text), err
}
