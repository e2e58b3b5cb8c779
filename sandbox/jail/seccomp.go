//go:build linux

package jail

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filters is what a process that only computes needs: its descriptors, its memory, its threads, signals to itself,
// the time. Nothing here names a file, another process or a socket.
var filters = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64,
	unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_FSTAT, unix.SYS_FSTATFS, unix.SYS_FADVISE64,
	unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_SPLICE, unix.SYS_COPY_FILE_RANGE,
	unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT,
	unix.SYS_EVENTFD2,
	unix.SYS_MUNMAP, unix.SYS_BRK, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_RESTART_SYSCALL, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS, unix.SYS_RSEQ,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETRANDOM,
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP,
	unix.SYS_GETTIMEOFDAY, unix.SYS_TIMES, unix.SYS_GETRLIMIT, unix.SYS_GETRUSAGE,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID,
	unix.SYS_GETEGID, unix.SYS_GETGROUPS, unix.SYS_SYSINFO, unix.SYS_UNAME, unix.SYS_GETCWD, unix.SYS_UMASK,
}

// newNamespaces are the flags of clone that no thread needs.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// conditional are the calls whose arguments decide.
var conditional = []rule{
	// F_SETOWN and F_SETSIG could signal other processes, F_SETPIPE_SZ takes kernel memory.
	{unix.SYS_FCNTL, []cond{{arg: 1, oneOf: []uint32{
		unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
	}}}},
	{unix.SYS_IOCTL, []cond{{arg: 1, oneOf: []uint32{unix.TCGETS, unix.TIOCINQ}}}},
	{unix.SYS_PRCTL, []cond{{arg: 0, oneOf: []uint32{unix.PR_SET_NAME, unix.PR_SET_VMA}}}},
	{unix.SYS_PRLIMIT64, []cond{{arg: 0, oneOf: []uint32{0}}, {arg: 2, oneOf: []uint32{0}}}}, // own limits, read only
}

// threads allows threads, but no processes. How many they are is bounded by memory alone: RLIMIT_NPROC counts all
// processes of the user, and none where the user is root. So it is for programs that cannot do without.
var threads = rule{unix.SYS_CLONE, []cond{{arg: 0, mask: unix.CLONE_THREAD | newNamespaces, oneOf: []uint32{unix.CLONE_THREAD}}}}

// descriptorStat is how glibc asks about a descriptor. Landlock does not govern stat, so that paths are kept out here:
// with AT_EMPTY_PATH and the empty path that the C library passes, only the descriptor is looked at. A filter cannot
// read the path; a program that has been taken over could learn the size and times of a file, not its content.
var descriptorStat = []rule{
	{unix.SYS_NEWFSTATAT, []cond{{arg: 3, oneOf: []uint32{unix.AT_EMPTY_PATH}}}},
	{unix.SYS_STATX, []cond{{arg: 2, oneOf: []uint32{unix.AT_EMPTY_PATH}}}},
}

// Which files a program opens, apart from what Landlock says.
type files int

const (
	filesRead    files = iota // for reading only
	filesScratch              // also writes and removes files of its own
)

// The flags of open that are refused. Landlock permits O_PATH, which shows a file's size and times.
const (
	openWrites = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC | unix.O_PATH
	openPath   = unix.O_PATH
)

// sharedMemory is what RLIMIT_DATA does not count: it is refused.
const sharedMemory = unix.MAP_SHARED | unix.MAP_ANONYMOUS

var notShared = cond{arg: 3, mask: sharedMemory, oneOf: []uint32{0, unix.MAP_SHARED, unix.MAP_ANONYMOUS}}

// unknownPid stands in a filter for the number of a process that is not there yet. No process has it.
const unknownPid = 1<<31 - 1

// asking are the calls with which sort sees, before it begins, that it can read the files that it was given. Landlock
// does not govern them. A program that has been taken over can learn no more by them than is said at descriptorStat;
// still they are only for programs that cannot do without.
var asking = []uint32{unix.SYS_NEWFSTATAT, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2}

// walking are the calls that show a directory: names, which Landlock governs, attributes and, which it does not, where
// links lead.
var walking = []uint32{unix.SYS_STATX, unix.SYS_GETDENTS64, unix.SYS_READLINKAT}

// absent are calls that look as if the kernel did not have them. clone3 takes its flags in memory, where no filter sees
// them. Without extended attributes ls shows none; they may hold anything, and Landlock does not govern them.
var absent = []uint32{
	unix.SYS_CLONE3, unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR,
}

// execFilter is the filter of a [Cell]: everything a program needs, and one exec, of what waits under execFD. own is
// the place where the process has to put its id. knowing are further calls that it may make.
func execFilter(f files, threaded bool, knowing []uint32) (filter []unix.SockFilter, own int, err error) {
	// The first rule of a call decides.
	rules := slices.Concat(plain(knowing), base(unknownPid), descriptorStat, plain(legacy))
	if threaded {
		rules = append(rules, threads)
	}
	rules = append(rules,
		rule{unix.SYS_MMAP, []cond{notShared}},
		rule{number: unix.SYS_MPROTECT},
		rule{unix.SYS_EXECVEAT, []cond{{arg: 0, oneOf: []uint32{execFD}}, {arg: 4, oneOf: []uint32{unix.AT_EMPTY_PATH}}}},
	)
	rules = append(rules, opening(f)...)
	filter, err = compile(rules, absent)
	return filter, slices.IndexFunc(filter, func(in unix.SockFilter) bool { return in.K == unknownPid }), err
}

// confineFilter is the filter of [Confine]: no file, no exec, no new code.
func confineFilter() ([]unix.SockFilter, error) {
	noCode := cond{arg: 2, mask: unix.PROT_EXEC, oneOf: []uint32{0}}
	rules := append(base(unix.Getpid()), threads) // those of the Go runtime
	rules = append(rules, rule{unix.SYS_MMAP, []cond{noCode, notShared}}, rule{unix.SYS_MPROTECT, []cond{noCode}})
	return compile(rules, []uint32{unix.SYS_CLONE3})
}

// base returns the rules that both doors have. Signals may go to the process itself only: the Go runtime needs that
// to preempt its threads, abort(3) to end.
func base(pid int) []rule {
	self := rule{unix.SYS_TGKILL, []cond{{arg: 0, oneOf: []uint32{uint32(pid)}}}}
	return slices.Concat(plain(filters), conditional, []rule{self})
}

// opening returns the rules for open and its like.
func opening(f files) []rule {
	refused := uint32(openWrites)
	var rules []rule
	if f == filesScratch {
		refused = openPath
		rules = plain(slices.Concat([]uint32{unix.SYS_UNLINKAT, unix.SYS_FTRUNCATE}, legacyScratch))
	}
	without := func(number, flags uint32) rule {
		return rule{number, []cond{{arg: flags, mask: refused, oneOf: []uint32{0}}}}
	}
	rules = append(rules, without(unix.SYS_OPENAT, 2))
	for _, n := range legacyOpen {
		rules = append(rules, without(n, 1))
	}
	return rules
}

func plain(numbers []uint32) []rule {
	rules := make([]rule, len(numbers))
	for i, n := range numbers {
		rules[i] = rule{number: n}
	}
	return rules
}

// install puts the filter on the calling thread, or with SECCOMP_FILTER_FLAG_TSYNC on all.
func install(filter []unix.SockFilter, flags uintptr) error {
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	r, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("installing the system call filter: %w", errno)
	}
	if r != 0 { // "the ID of the thread that caused the synchronization failure" (seccomp(2))
		return fmt.Errorf("installing the system call filter: thread %d could not take it", r)
	}
	return nil
}
