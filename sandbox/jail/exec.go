//go:build linux

package jail

import (
	"cmp"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// execFD is the descriptor that the program waits under. It is the first one that RLIMIT_NOFILE forbids, so that
// nothing can take its place later; and it is below 64, because a larger one makes the kernel grow the descriptor
// table, which costs 10 ms in a process that has threads.
const execFD = nofile

// A Spec says which program to run and what it may touch.
type Spec struct {
	Path   string   // the program's file, absolute
	Argv   []string // its arguments, the name first
	Env    []string // its environment, complete
	Limits Limits

	Read    []string // files and directories that it may read; missing ones are skipped
	Run     []string // files that may be executed besides Path: the dynamic loader; missing ones are skipped
	Scratch string   // the one directory it may write in, and its working directory; empty: it writes no file
	Dir     string   // its working directory where there is no Scratch; empty: the root

	Threads bool // it may start threads; without, it is one for ever

	Parent int // the process id of the starter; the program dies with it
}

// Exec replaces the calling process by the program of s, jailed. It returns only when that is impossible; what has
// been given up by then is not restored, so the caller must exit.
func Exec(s Spec) error {
	// Landlock, the filter, no_new_privs and the parent-death signal belong to a thread. The thread that calls
	// execveat becomes the program.
	runtime.LockOSThread()
	if err := park(s); err != nil {
		return err
	}
	argv, err := syscall.SlicePtrFromStrings(s.Argv)
	if err != nil {
		return fmt.Errorf("reading arguments: %w", err)
	}
	env, err := syscall.SlicePtrFromStrings(s.Env)
	if err != nil {
		return fmt.Errorf("reading environment: %w", err)
	}
	files := filesRead
	if s.Scratch != "" {
		files = filesScratch
	}
	filter, err := execFilter(files, s.Threads)
	if err != nil {
		return err
	}
	if err := restrict(s); err != nil {
		return err
	}
	if err := install(filter, 0); err != nil {
		return err
	}
	var empty [1]byte
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, execFD, uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH, 0)
	return fmt.Errorf("executing %s: %w", s.Path, errno)
}

// park opens the program under execFD and closes everything else but 0, 1 and 2 at the coming exec.
func park(s Spec) error {
	dir := cmp.Or(s.Scratch, s.Dir, "/")
	if err := unix.Chdir(dir); err != nil {
		return fmt.Errorf("entering %s: %w", dir, err)
	}
	fd, err := unix.Open(s.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", s.Path, err)
	}
	if fd != execFD {
		if err := unix.Dup3(fd, execFD, unix.O_CLOEXEC); err != nil {
			return fmt.Errorf("moving %s to its descriptor: %w", s.Path, err)
		}
	}
	// Kernels before 5.11 have no CLOSE_RANGE_CLOEXEC; there the starter's own close-on-exec flags must do.
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil && err != unix.EINVAL && err != unix.ENOSYS {
		return fmt.Errorf("marking descriptors close-on-exec: %w", err)
	}
	return nil
}

// restrict gives up everything but the system calls, in the order in which giving up is still allowed. The limits
// come last: this process may already use more than they allow.
func restrict(s Spec) error {
	if err := dieWith(s.Parent, unix.SIGKILL); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := landlock(s.grants(), LandlockABI()); err != nil {
		return err
	}
	return s.Limits.apply(s.Scratch != "")
}

// dieWith asks for a signal when the starter dies, and makes sure that it has not died before.
func dieWith(parent int, sig unix.Signal) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(sig), 0, 0, 0); err != nil {
		return fmt.Errorf("setting the parent-death signal: %w", err)
	}
	if parent != 0 && unix.Getppid() != parent {
		return fmt.Errorf("process %d, which started this one, has died", parent)
	}
	return nil
}
