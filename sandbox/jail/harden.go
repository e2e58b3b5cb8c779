//go:build linux

package jail

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// outside are the calls with which a process reaches beyond its files and its children: the network, other processes,
// the kernel's configuration, memory that nobody counts.
var outside = []uint32{
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT,
	unix.SYS_ACCEPT4, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
	unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL,
	unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_PERSONALITY,
	unix.SYS_MEMFD_CREATE, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, unix.SYS_MQ_OPEN,
}

// A Reach is what a process that starts jailed programs needs of the file system. Paths that do not exist are skipped.
type Reach struct {
	Run     []string // files that it, or what it starts, executes
	Read    []string // files and directories that it, or what it starts, reads
	Scratch string   // the directory in which it makes private ones
}

// Harden locks the calling process in, as far as a process can be that must still start programs, and starts its own
// binary anew with argv and no environment: so all of its threads, and all that it starts, are locked in. It returns
// only when that is impossible.
//
// It can run and read what reach names, and its own binary; in its scratch directory it can do everything. Of /proc it
// can open files by name, to measure what it has started; what they tell of memory and environment of processes
// outside, Landlock refuses. It has no capability and no network, can signal and look into nothing but what it has started, is the first
// to be killed when memory runs out, and gets SIGTERM when its parent dies. Where the kernel has no Landlock it has only the system
// call filter.
func Harden(reach Reach, argv []string) error {
	runtime.LockOSThread()
	offerToOOM()
	// The parent-death signal belongs to the thread, and to nobody where the parent is outside of the container.
	if parent := unix.Getppid(); parent != 0 {
		// Not SIGKILL: what it keeps on disk is to go with it.
		if err := dieWith(parent, unix.SIGTERM); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if errno := dropCapabilities(); errno != 0 { // with CAP_PERFMON root sees more than Landlock shows
		return fmt.Errorf("dropping capabilities: %w", errno)
	}
	if abi := LandlockABI(); abi > 0 {
		if err := landlock(reach.grants(), abi); err != nil {
			return err
		}
	}
	p := prologue()
	for _, n := range outside {
		p = append(p, jump(unix.BPF_JEQ, n, 0, 1), ret(denied))
	}
	if err := install(append(p, ret(unix.SECCOMP_RET_ALLOW)), 0); err != nil {
		return err
	}
	return fmt.Errorf("starting anew: %w", syscall.Exec(ownFile(), argv, nil))
}

// ownFile is the path of the running binary, whose name the process gets, or self where another file is there by now.
func ownFile() string {
	path, err := os.Readlink(self)
	if err != nil {
		return self
	}
	there, err := os.Stat(path)
	if err != nil {
		return self
	}
	if here, err := os.Stat(self); err != nil || !os.SameFile(here, there) {
		return self
	}
	return path
}

// self is the running binary, whatever has become of its file.
const self = "/proc/self/exe"

func (r Reach) grants() []grant {
	g := slices.Concat(each(r.Run, mayRun), each(r.Read, mayRead), []grant{
		{self, mayRun}, {"/proc", unix.LANDLOCK_ACCESS_FS_READ_FILE},
	})
	if r.Scratch != "" {
		g = append(g, grant{r.Scratch, mayKeep})
	}
	return g
}

// Hide keeps processes of the same user from looking into the calling one: its memory, its environment and its open
// files are root's from then on, and it leaves no core. A process that it starts is not hidden.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing dumpable: %w", err)
	}
	return nil
}

// offerToOOM makes the kernel kill this process and what it starts first when memory runs out, the largest of them.
// Where /proc is missing it stays as it is.
func offerToOOM() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}
