//go:build linux

package jail

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A launch is all that a child process needs between its birth and its exec, laid out before: the child shares its
// parent's memory, whose other threads run on, so that it may neither allocate nor wait for a lock. It can only make
// system calls.
type launch struct {
	files   []int // become 0, 1, 2 and so on; none of them is among these numbers
	dir     *byte
	signal  unix.Signal // that the child gets when its parent dies
	parent  int
	ruleset int   // descriptor of the Landlock ruleset
	exe     int   // descriptor of the program; it moves to execFD
	path    *byte // of the program, if it may be found by name
	limits  []limit
	filter  []unix.SockFilter
	program unix.SockFprog // of filter
	own     int            // where in filter the child's own process id belongs, -1 for nowhere
	argv    []*byte
	env     []*byte
	empty   [1]byte // the path of what is executed by its descriptor

	nice       int  // its nice value
	noLandlock bool // it enters no domain; said of its own, so that a ruleset that is missing ends the launch

	step  step // which has failed
	errno syscall.Errno
}

// A step is what a child does on its way. The names are for errors.
type step int

const (
	stepStart step = iota
	stepGroup
	stepFiles
	stepDir
	stepParent
	stepOrphan
	stepPrivileges
	stepCapabilities
	stepLandlock
	stepPark
	stepLimits
	stepFilter
	stepExec
)

var stepNames = [...]string{
	stepStart: "starting a process", stepGroup: "making a process group", stepFiles: "moving its descriptors",
	stepDir: "entering its directory", stepParent: "setting the parent-death signal", stepOrphan: "starting it: the starter has died",
	stepPrivileges: "setting no_new_privs", stepCapabilities: "dropping capabilities", stepLandlock: "entering the landlock domain",
	stepPark: "moving the program to its descriptor", stepLimits: "limiting it", stepFilter: "installing the system call filter", stepExec: "executing it",
}

// vfork makes a child that shares the memory of this process until it execs or exits, which the calling thread waits
// for.
func vfork() (pid, errno uintptr)

// The Go runtime's own preparations for a fork: no signal handler may run in the child.
//
//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// run makes the child and returns its process id. When it could not get as far as its exec, it is gone.
func (l *launch) run() (int, error) {
	// All descriptors here are close-on-exec from their birth; the lock is for the runtime, of which one thread at a
	// time may be about to fork.
	syscall.ForkLock.Lock()
	beforeFork()
	pid, errno := l.fork()
	afterFork()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(l)
	if errno != 0 {
		return 0, fmt.Errorf("%s: %w", stepNames[stepStart], syscall.Errno(errno))
	}
	if l.errno != 0 {
		reap(int(pid))
		return 0, fmt.Errorf("%s: %w", stepNames[l.step], l.errno)
	}
	return int(pid), nil
}

// fork returns in the parent only, and at once: the stack below belongs to the child as long as it needs it.
//
//go:noinline
//go:norace
//go:nocheckptr
//go:nosplit
func (l *launch) fork() (pid, errno uintptr) {
	if pid, errno = vfork(); pid != 0 {
		return pid, errno
	}
	afterForkInChild()
	l.step, l.errno = l.become()
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
}

// become makes the child the program, in the order in which giving up is still allowed. It returns what has failed.
//
//go:norace
//go:nocheckptr
//go:nosplit
func (l *launch) become() (step, syscall.Errno) {
	if _, _, e := syscall.RawSyscall(unix.SYS_SETPGID, 0, 0, 0); e != 0 {
		return stepGroup, e
	}
	for to, from := range l.files {
		if _, _, e := syscall.RawSyscall(unix.SYS_DUP3, uintptr(from), uintptr(to), 0); e != 0 {
			return stepFiles, e
		}
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(l.dir)), 0, 0); e != 0 {
		return stepDir, e
	}
	if _, _, e := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(l.signal), 0); e != 0 {
		return stepParent, e
	}
	if now, _, _ := syscall.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); int(now) != l.parent {
		return stepOrphan, syscall.ESRCH
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, uintptr(l.nice)) // without, it is as nice as its starter
	if _, _, e := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return stepPrivileges, e
	}
	if e := dropCapabilities(); e != 0 {
		return stepCapabilities, e
	}
	if !l.noLandlock {
		if _, _, e := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(l.ruleset), 0, 0); e != 0 {
			return stepLandlock, e
		}
	}
	return l.enter()
}

// enter ends with the exec. The limits come late: this process may already use more than they allow.
//
//go:norace
//go:nocheckptr
//go:nosplit
func (l *launch) enter() (step, syscall.Errno) {
	if l.path == nil && l.exe != execFD {
		if _, _, e := syscall.RawSyscall(unix.SYS_DUP3, uintptr(l.exe), execFD, unix.O_CLOEXEC); e != 0 {
			return stepPark, e
		}
	}
	// Kernels before 5.11 have no CLOSE_RANGE_CLOEXEC; there the starter's own close-on-exec flags must do.
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(len(l.files)), uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
	for i := range l.limits {
		// Not setrlimit by the syscall package: the Go runtime must not restore RLIMIT_NOFILE behind our back.
		lim := &l.limits[i]
		if _, _, e := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(lim.resource), uintptr(unsafe.Pointer(&lim.want)), 0, 0, 0); e != 0 {
			return stepLimits, e
		}
	}
	if l.own >= 0 {
		pid, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
		l.filter[l.own].K = uint32(pid)
	}
	if len(l.filter) > 0 {
		if _, _, e := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&l.program))); e != 0 {
			return stepFilter, e
		}
	}
	argv, env := uintptr(unsafe.Pointer(&l.argv[0])), uintptr(unsafe.Pointer(&l.env[0]))
	if l.path != nil {
		_, _, e := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(l.path)), argv, env)
		return stepExec, e
	}
	_, _, e := syscall.RawSyscall6(unix.SYS_EXECVEAT, execFD, uintptr(unsafe.Pointer(&l.empty[0])), argv, env, unix.AT_EMPTY_PATH, 0)
	return stepExec, e
}
