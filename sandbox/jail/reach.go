//go:build linux

package jail

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
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

// Start starts a program that is locked in as far as one can be that must still start others: all of its threads, and
// all that it starts, from its first instruction.
//
// It can run and read what r names, and its own file; in its scratch directory it can do everything. Of /proc it can
// open files by name, to measure what it has started; what they tell of memory and environment of processes outside,
// Landlock refuses. It has no capability and no network, can signal and look into nothing but what it has started, is
// the first to be killed when memory runs out, and gets SIGTERM when its starter dies:
// not SIGKILL, for what it keeps on disk is to go with it. Where abi is 0, there is no Landlock and it
// has only the system call filter.
func (r Reach) Start(path string, abi int, cmd Command) (*Process, error) {
	l := launch{signal: unix.SIGTERM, parent: os.Getpid(), ruleset: -1, noLandlock: abi == 0, own: -1}
	var err error
	if l.filter, err = hardFilter(); err != nil {
		return nil, err
	}
	if l.path, err = syscall.BytePtrFromString(path); err != nil {
		return nil, fmt.Errorf("reading the path of a program: %w", err)
	}
	if !l.noLandlock {
		if l.ruleset, err = newDomain(r.grants(path), min(abi, LandlockABI())); err != nil {
			return nil, err
		}
		defer unix.Close(l.ruleset)
	}
	p, err := l.start("/", cmd)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Where that is impossible it stays as it is. It must not hide itself before this has returned.
	_ = os.WriteFile("/proc/"+strconv.Itoa(p.pid)+"/oom_score_adj", []byte(oomScore), 0)
	return p, nil
}

// hardFilter refuses what is outside.
func hardFilter() ([]unix.SockFilter, error) {
	verdicts := map[uint32][]unix.SockFilter{}
	for _, n := range outside {
		verdicts[n] = []unix.SockFilter{ret(denied)}
	}
	return search(verdicts, unix.SECCOMP_RET_ALLOW)
}

// self is the running binary, even if its file was replaced or removed.
const self = "/proc/self/exe"

func (r Reach) grants(own string) []grant {
	g := slices.Concat(each(r.Run, mayRun), each(r.Read, mayRead), []grant{
		{own, mayRun}, {"/proc", unix.LANDLOCK_ACCESS_FS_READ_FILE},
	})
	if r.Scratch != "" {
		g = append(g, grant{r.Scratch, mayKeep})
	}
	return g
}

// Locked returns an error unless the calling process has a system call filter and can get no privileges, which it has
// from [Reach.Start].
func Locked() error {
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
		return errors.New("it is not locked in: it could get privileges")
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil || n != unix.SECCOMP_MODE_FILTER {
		return errors.New("it is not locked in: it has no system call filter")
	}
	return nil
}

// Hide keeps processes of the same user from looking into the calling one: its memory, its environment and its open
// files are root's from then on, and it leaves no core. A process that it starts is not hidden.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing dumpable: %w", err)
	}
	return nil
}

// oomScore makes the kernel kill a process and what it starts first when memory runs out, the largest of them.
const oomScore = "1000"
