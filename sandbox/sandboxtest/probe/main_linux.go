package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/sandboxtest"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

func main() {
	if strings.HasPrefix(os.Args[0], sandboxtest.ProbeName) { // started as the program
		args := slices.DeleteFunc(os.Args[1:], func(arg string) bool { return arg == "--" })
		os.Exit(probe(context.Background(), args, programs.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	args, prefix := os.Args[1:], []string(nil)
	if len(args) == 4 && args[0] == asWorker && args[1] == "serve" { // it has started anew, locked in
		os.Exit(probeWorker(args[2]))
	}
	if len(args) > 0 && args[0] == "without-landlock" {
		if err := hideLandlock(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		args = args[1:]
	}
	if len(args) > 0 && (args[0] == "worker" || args[0] == asWorker) { // a subcommand, as in a larger binary
		args, prefix = args[1:], args[:1]
	}
	os.Exit(worker.Main(args, worker.Options{Prefix: prefix, Extra: []programs.Program{
		{Name: sandboxtest.ProbeName, Bin: self, Threads: true},
		{Name: sandboxtest.ProbeName + "-scratch", Bin: self, Scratch: true, Threads: true},
		{Name: sandboxtest.ProbeName + "-applet", Ready: func(args []string, _ programs.Inputs) (programs.Runner, programs.Verdict) {
			return func(ctx context.Context, files programs.IO) int { return probe(ctx, args, files) }, programs.Verdict{}
		}},
	}}))
}

// hideLandlock makes this process and its children see a kernel without Landlock.
func hideLandlock() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// known are the names in the environment of a program; the last ones only in that of an applet.
var known = []string{"LC_CTYPE", "PATH", "TZ", "GOTRACEBACK", "GOMAXPROCS", "GODEBUG"}

// probe tries everything and prints what worked. args[0] is a file that must stay secret.
func probe(_ context.Context, args []string, io_ programs.IO) int {
	b, _ := io.ReadAll(io_.In)
	if string(b) == "input" {
		fmt.Fprintln(io_.Out, "read standard input")
	}
	for _, try := range tries(args[0]) {
		if err := try.do(); err == nil {
			fmt.Fprintln(io_.Out, try.name)
		}
	}
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(known, name) {
			fmt.Fprintln(io_.Out, "environment:", name)
		}
	}
	fmt.Fprintln(io_.Out, "done")
	return 0
}

type try struct {
	name string
	do   func() error
}

// call makes a try of a bare system call.
func call(name string, number uintptr, args ...uintptr) try {
	return try{name, func() error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}}
}

func open(path string, flags int) try {
	return try{"open " + path, func() error {
		fd, err := unix.Open(path, flags, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}}
}

func tries(secret string) []try {
	path, _ := unix.BytePtrFromString("/usr/bin/id")
	p := uintptr(unsafe.Pointer(path))
	var buf [512]byte
	at := uintptr(unsafe.Pointer(&buf[0]))
	return append(append(files(secret), others(p, at)...),
		call("socket unix", unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM),
		call("socket inet", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM),
		call("socket vsock", unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM),
		call("socketpair", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, at),
		call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, at),
		call("execve", unix.SYS_EXECVE, p, 0, 0),
		call("execveat by path", unix.SYS_EXECVEAT, 0, p, 0, 0, 0),
		call("execveat again", unix.SYS_EXECVEAT, 63, p, 0, 0, unix.AT_EMPTY_PATH),
		call("dup3 to 63", unix.SYS_DUP3, 0, 63, 0),
		call("fork", unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
		call("kill parent", unix.SYS_KILL, uintptr(os.Getppid()), 0),
		call("tgkill parent", unix.SYS_TGKILL, uintptr(os.Getppid()), uintptr(os.Getppid()), 0),
		call("ptrace", unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(os.Getppid())),
		call("process_vm_readv", unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid()), at, 1, at, 1),
		call("pidfd_open", unix.SYS_PIDFD_OPEN, uintptr(os.Getppid())),
		call("prlimit of the parent", unix.SYS_PRLIMIT64, uintptr(os.Getppid()), unix.RLIMIT_NOFILE, 0, at),
		call("prlimit set", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, at),
		call("memfd_create", unix.SYS_MEMFD_CREATE, p),
		call("mount", unix.SYS_MOUNT, p, p, p, unix.MS_BIND),
		call("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
		call("chroot", unix.SYS_CHROOT, p),
		call("chdir", unix.SYS_CHDIR, p),
		call("stat by path", unix.SYS_NEWFSTATAT, ^uintptr(99), p, at, 0),
		call("statx by path", unix.SYS_STATX, ^uintptr(99), p, 0, 0xfff, at),
		call("readlinkat", unix.SYS_READLINKAT, ^uintptr(99), p, at, 100),
		call("faccessat", unix.SYS_FACCESSAT, ^uintptr(99), p, 0),
		call("getdents64", unix.SYS_GETDENTS64, 0, at, 512),
		call("fcntl F_SETOWN", unix.SYS_FCNTL, 0, unix.F_SETOWN, uintptr(os.Getpid())),
		call("fcntl F_SETPIPE_SZ", unix.SYS_FCNTL, 0, unix.F_SETPIPE_SZ, 1<<20),
		call("ioctl TIOCSTI", unix.SYS_IOCTL, 0, unix.TIOCSTI, at),
		call("prctl PR_SET_DUMPABLE", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1),
		call("seccomp", unix.SYS_SECCOMP, 2, 0, at),
		call("bpf", unix.SYS_BPF, 0, at, 64),
		call("keyctl", unix.SYS_KEYCTL, 0, ^uintptr(2)),
		call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, at),
		call("setuid", unix.SYS_SETUID, 0),
		call("setpgid", unix.SYS_SETPGID, 0, 0),
		call("setsid", unix.SYS_SETSID),
		call("clock_settime", unix.SYS_CLOCK_SETTIME, 0, at),
		call("shared memory", unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS, ^uintptr(0)),
		call("shmget", unix.SYS_SHMGET, 0, 4096, 0o1600),
		call("mq_open", unix.SYS_MQ_OPEN, p, unix.O_CREAT|unix.O_RDWR, 0o600),
		call("inotify_init1", unix.SYS_INOTIFY_INIT1),
		call("sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, 0, 8, at),
	)
}

// others are calls about time, priorities, messages and the system. p is a path, at some memory.
func others(p, at uintptr) []try {
	return []try{
		call("userfaultfd", unix.SYS_USERFAULTFD, 0),
		call("timer_create", unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, at),
		call("timerfd_create", unix.SYS_TIMERFD_CREATE, unix.CLOCK_MONOTONIC, 0),
		call("signalfd4", unix.SYS_SIGNALFD4, ^uintptr(0), at, 8, 0),
		call("setpriority", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 19),
		call("ioprio_set", unix.SYS_IOPRIO_SET, 1, 0, 0),
		call("sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, 0, 0, at),
		call("setrlimit", unix.SYS_SETRLIMIT, unix.RLIMIT_CORE, at),
		call("mlockall", unix.SYS_MLOCKALL, 1),
		call("fcntl F_SETSIG", unix.SYS_FCNTL, 0, unix.F_SETSIG, 9),
		call("fcntl F_NOTIFY", unix.SYS_FCNTL, 0, unix.F_NOTIFY, 1),
		call("fcntl F_DUPFD from 63", unix.SYS_FCNTL, 0, unix.F_DUPFD, 63),
		call("dup3 to 200", unix.SYS_DUP3, 0, 200, 0),
		call("rt_sigqueueinfo", unix.SYS_RT_SIGQUEUEINFO, uintptr(os.Getppid()), 0, at),
		call("pidfd_send_signal", unix.SYS_PIDFD_SEND_SIGNAL, 0, 0, 0, 0),
		call("process_madvise", unix.SYS_PROCESS_MADVISE, 0, at, 1, 4, 0),
		call("add_key", unix.SYS_ADD_KEY, p, p, at, 8, ^uintptr(2)),
		call("fanotify_init", unix.SYS_FANOTIFY_INIT, 0, 0),
		call("msgget", unix.SYS_MSGGET, 0, 0o1600),
		call("semget", unix.SYS_SEMGET, 0, 1, 0o1600),
		call("vmsplice", unix.SYS_VMSPLICE, 1, at, 0, 0),
		call("personality", unix.SYS_PERSONALITY, 0xffffffff),
		call("truncate", unix.SYS_TRUNCATE, p, 0),
		call("utimensat", unix.SYS_UTIMENSAT, 0, 0, 0, 0),
		call("fchmod", unix.SYS_FCHMOD, 0, 0o777),
		call("fsetxattr", unix.SYS_FSETXATTR, 0, p, at, 1, 0),
		call("syslog", unix.SYS_SYSLOG, 10, 0, 0),
		call("clone with a pidfd", unix.SYS_CLONE, unix.CLONE_PIDFD|uintptr(unix.SIGCHLD), 0, at),
	}
}

func files(secret string) []try {
	return []try{
		open(secret, unix.O_RDONLY),
		open("/etc/passwd", unix.O_RDONLY),
		open("/etc/hostname", unix.O_RDONLY),
		open("/", unix.O_RDONLY|unix.O_DIRECTORY),
		open("/tmp", unix.O_RDONLY|unix.O_DIRECTORY),
		open("/proc/self/environ", unix.O_RDONLY),
		open("/proc/self/maps", unix.O_RDONLY),
		// Its own descriptors may be opened again, those of the worker not.
		open(fmt.Sprintf("/proc/%d/fd/0", os.Getppid()), unix.O_RDONLY),
		open(fmt.Sprintf("/proc/%d/fd/1", os.Getppid()), unix.O_WRONLY),
		open(fmt.Sprintf("/proc/%d/mem", os.Getppid()), unix.O_RDONLY),
		open("/etc/shadow", unix.O_PATH),
		open(fmt.Sprintf("/proc/%d/environ", os.Getppid()), unix.O_RDONLY),
		open("/proc/1/environ", unix.O_RDONLY),
		open("/dev/null", unix.O_WRONLY),
		open("/tmp/pwn", unix.O_CREAT|unix.O_WRONLY),
		open("/tmp", unix.O_TMPFILE|unix.O_RDWR),
		open("/usr/lib/pwn", unix.O_CREAT|unix.O_WRONLY),
		open("pwn", unix.O_CREAT|unix.O_WRONLY),
		open(".", unix.O_PATH),
	}
}
