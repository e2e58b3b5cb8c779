//go:build linux

package jail

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRules looks for system calls that two rules name: the second would never be asked.
func TestRules(t *testing.T) {
	for name, rules := range map[string][]rule{
		"base":    append(base(1), append(descriptorStat, plain(legacy)...)...),
		"read":    append(base(1), opening(filesRead)...),
		"scratch": append(base(1), opening(filesScratch)...),
	} {
		seen := map[uint32]bool{}
		for _, r := range rules {
			if seen[r.number] {
				t.Errorf("%s: two rules for call %d", name, r.number)
			}
			seen[r.number] = true
		}
	}
}

// TestNever names calls that no filter may allow, whatever else changes.
func TestNever(t *testing.T) {
	never := map[uint32]string{
		unix.SYS_EXECVE: "execve", unix.SYS_SOCKET: "socket", unix.SYS_CONNECT: "connect", unix.SYS_KILL: "kill",
		unix.SYS_PTRACE: "ptrace", unix.SYS_PROCESS_VM_READV: "process_vm_readv", unix.SYS_IO_URING_SETUP: "io_uring_setup",
		unix.SYS_MEMFD_CREATE: "memfd_create", unix.SYS_MOUNT: "mount", unix.SYS_SETNS: "setns", unix.SYS_UNSHARE: "unshare",
		unix.SYS_BPF: "bpf", unix.SYS_KEYCTL: "keyctl", unix.SYS_SECCOMP: "seccomp", unix.SYS_CLONE3: "clone3",
		unix.SYS_READLINKAT: "readlinkat", unix.SYS_FACCESSAT: "faccessat", unix.SYS_RENAMEAT2: "renameat2",
		unix.SYS_LINKAT: "linkat", unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_OPENAT2: "openat2",
	}
	for _, r := range append(base(1), append(opening(filesScratch), append(descriptorStat, plain(legacy)...)...)...) {
		if name, bad := never[r.number]; bad {
			t.Errorf("%s is allowed", name)
		}
	}
}

// TestFilter runs the programs on system calls, as the kernel would.
func TestFilter(t *testing.T) {
	read, err := filled(execFilter(filesRead, false, nil))
	if err != nil {
		t.Fatal(err)
	}
	scratch, err := filled(execFilter(filesScratch, true, nil))
	if err != nil {
		t.Fatal(err)
	}
	pure, err := confineFilter()
	if err != nil {
		t.Fatal(err)
	}
	pid := uint64(unix.Getpid())
	for _, test := range []struct {
		name                string
		number              uint32
		args                [6]uint64
		read, scratch, pure uint32
	}{
		{"read", unix.SYS_READ, [6]uint64{}, allow, allow, allow},
		{"open to read", unix.SYS_OPENAT, [6]uint64{0, 1, unix.O_RDONLY | unix.O_CLOEXEC}, allow, allow, denied},
		{"open to write", unix.SYS_OPENAT, [6]uint64{0, 1, unix.O_WRONLY}, denied, allow, denied},
		{"open a path", unix.SYS_OPENAT, [6]uint64{0, 1, unix.O_PATH}, denied, denied, denied},
		{"unlink", unix.SYS_UNLINKAT, [6]uint64{}, denied, allow, denied},
		{"the one exec", unix.SYS_EXECVEAT, [6]uint64{63, 1, 2, 3, unix.AT_EMPTY_PATH}, allow, allow, denied},
		{"exec of another", unix.SYS_EXECVEAT, [6]uint64{62, 1, 2, 3, unix.AT_EMPTY_PATH}, denied, denied, denied},
		{"exec by path", unix.SYS_EXECVEAT, [6]uint64{63, 1, 2, 3, 0}, denied, denied, denied},
		{"exec with a high word", unix.SYS_EXECVEAT, [6]uint64{1<<32 | 63, 1, 2, 3, unix.AT_EMPTY_PATH}, denied, denied, denied},
		{"stat of a descriptor", unix.SYS_NEWFSTATAT, [6]uint64{0, 1, 2, unix.AT_EMPTY_PATH}, allow, allow, denied},
		{"stat of a path", unix.SYS_NEWFSTATAT, [6]uint64{0, 1, 2, 0}, denied, denied, denied},
		{"thread", unix.SYS_CLONE, [6]uint64{unix.CLONE_THREAD | unix.CLONE_VM}, denied, allow, allow}, // scratch is threaded here
		{"fork", unix.SYS_CLONE, [6]uint64{uint64(unix.SIGCHLD)}, denied, denied, denied},
		{"thread in a namespace", unix.SYS_CLONE, [6]uint64{unix.CLONE_THREAD | unix.CLONE_NEWNET}, denied, denied, denied},
		{"clone3", unix.SYS_CLONE3, [6]uint64{}, missing, missing, missing},
		{"signal to itself", unix.SYS_TGKILL, [6]uint64{pid, pid, 6}, allow, allow, allow},
		{"signal to another", unix.SYS_TGKILL, [6]uint64{1, 1, 9}, denied, denied, denied},
		{"get limits", unix.SYS_PRLIMIT64, [6]uint64{0, 7, 0, 1}, allow, allow, allow},
		{"set limits", unix.SYS_PRLIMIT64, [6]uint64{0, 7, 1, 0}, denied, denied, denied},
		{"set limits, low word zero", unix.SYS_PRLIMIT64, [6]uint64{0, 7, 1 << 32, 0}, denied, denied, denied},
		{"code", unix.SYS_MPROTECT, [6]uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, allow, allow, denied},
		{"shared memory", unix.SYS_MMAP, [6]uint64{0, 4096, 3, unix.MAP_SHARED | unix.MAP_ANONYMOUS}, denied, denied, denied},
		{"memory", unix.SYS_MMAP, [6]uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, allow, allow, allow},
		{"fcntl", unix.SYS_FCNTL, [6]uint64{0, unix.F_GETFL}, allow, allow, allow},
		{"fcntl with a high word", unix.SYS_FCNTL, [6]uint64{0, 1<<32 | unix.F_GETFL}, denied, denied, denied},
		{"fcntl owner", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETOWN}, denied, denied, denied},
		{"fcntl owner, extended", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETOWN_EX}, denied, denied, denied},
		{"fcntl signal", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETSIG}, denied, denied, denied},
		{"fcntl notify", unix.SYS_FCNTL, [6]uint64{0, unix.F_NOTIFY}, denied, denied, denied},
		{"fcntl lease", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETLEASE}, denied, denied, denied},
		{"fcntl lock", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETLKW}, denied, denied, denied},
		{"fcntl pipe size", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETPIPE_SZ}, denied, denied, denied},
		{"fcntl seals", unix.SYS_FCNTL, [6]uint64{0, unix.F_ADD_SEALS}, denied, denied, denied},
		{"ioctl of a terminal", unix.SYS_IOCTL, [6]uint64{0, unix.TCGETS}, allow, allow, allow},
		{"ioctl types into a terminal", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSTI}, denied, denied, denied},
		{"ioctl types, with a high word", unix.SYS_IOCTL, [6]uint64{0, 1<<32 | unix.TIOCSTI}, denied, denied, denied},
		{"ioctl pastes", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCLINUX}, denied, denied, denied},
		{"prctl name", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_NAME}, allow, allow, allow},
		{"prctl dumpable", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_DUMPABLE, 1}, denied, denied, denied},
		{"prctl parent-death signal", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_PDEATHSIG}, denied, denied, denied},
		{"prctl seccomp", unix.SYS_PRCTL, [6]uint64{unix.PR_SET_SECCOMP, 2}, denied, denied, denied},
		{"limits of another", unix.SYS_PRLIMIT64, [6]uint64{1, 7, 0, 1}, denied, denied, denied},
		{"kill", unix.SYS_KILL, [6]uint64{pid, 9}, denied, denied, denied},
		{"priority", unix.SYS_SETPRIORITY, [6]uint64{0, 0, 0}, denied, denied, denied},
		{"timer", unix.SYS_TIMER_CREATE, [6]uint64{}, denied, denied, denied},
		{"socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX}, denied, denied, denied},
	} {
		for _, f := range []struct {
			name   string
			filter []unix.SockFilter
			want   uint32
		}{{"read", read, test.read}, {"scratch", scratch, test.scratch}, {"pure", pure, test.pure}} {
			if got := evaluate(t, f.filter, auditArch, test.number, test.args); got != f.want {
				t.Errorf("%s, %s: got %#x, want %#x", test.name, f.name, got, f.want)
			}
		}
	}
	if got := evaluate(t, read, unix.AUDIT_ARCH_I386, unix.SYS_READ, [6]uint64{}); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("another architecture: got %#x, want death", got)
	}
	if got := evaluate(t, read, auditArch, x32Bit|unix.SYS_READ, [6]uint64{}); got != unix.SECCOMP_RET_KILL_PROCESS {
		t.Errorf("the x32 ABI: got %#x, want death", got)
	}
}

// TestEveryCall asks filters about every number. Some of their jumps are longer than one condition can make.
func TestEveryCall(t *testing.T) {
	const wide = 400
	many := cond{arg: 1, oneOf: make([]uint32, 200)} // two of these are more than one jump can skip
	many.oneOf[199] = 1
	for name, numbers := range map[string][]uint32{"the usual": filters, "none": nil, "one": {5}, "neighbours": {0, 1, 2, 4, x32Bit - 1}} {
		filter, err := compile(append(plain(numbers), rule{500, []cond{many}}, rule{502, []cond{many}}), []uint32{wide})
		if err != nil {
			t.Fatal(err)
		}
		for n := range uint32(2 * wide) {
			want := uint32(denied)
			switch {
			case n == 500 || n == 502:
				want = allow
			case n == wide:
				want = missing
			case slices.Contains(numbers, n):
				want = allow
			}
			if got := evaluate(t, filter, auditArch, n, [6]uint64{1: 1}); got != want {
				t.Errorf("%s, call %d: got %#x, want %#x", name, n, got, want)
			}
		}
	}
}

// TestArchitectures type-checks the package, with its tests, for every architecture that it serves: each name of a
// system call stands for a number there.
func TestArchitectures(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.Command("go", "vet", ".")
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", arch, err, out)
		}
	}
	if want := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]; auditArch != want {
		t.Errorf("the filter is for architecture %#x, want %#x for %s", auditArch, want, runtime.GOARCH)
	}
}

// TestOldLandlock enters the domain of every ABI up to that of this kernel: files are closed to all of them.
func TestOldLandlock(t *testing.T) {
	dir := t.TempDir()
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	for _, file := range []string{open, closed} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if LandlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	for abi := 1; abi <= LandlockABI(); abi++ {
		result := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread, and the domain with it, ends here
			result <- enter(abi, open, closed)
		}()
		if err := <-result; err != nil {
			t.Errorf("ABI %d: %v", abi, err)
		}
	}
}

func enter(abi int, open, closed string) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	domain, err := newDomain([]grant{{open, mayRead}}, abi)
	if err != nil {
		return err
	}
	defer unix.Close(domain)
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(domain), 0, 0); errno != 0 {
		return errno
	}
	fd, err := unix.Open(open, unix.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("what may be read: %w", err)
	}
	unix.Close(fd)
	for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR | unix.O_TRUNC} {
		if fd, err = unix.Open(closed, flags, 0); err == nil {
			unix.Close(fd)
			return fmt.Errorf("a file that is closed was opened with %#x", flags)
		}
	}
	return nil
}

const allow = unix.SECCOMP_RET_ALLOW

// filled is what a process does to its filter before it installs it.
func filled(filter []unix.SockFilter, own int, err error) ([]unix.SockFilter, error) {
	if err == nil {
		filter[own].K = uint32(unix.Getpid())
	}
	return filter, err
}

// evaluate interprets the few instructions that filters here are made of.
func evaluate(t *testing.T, p []unix.SockFilter, arch, number uint32, args [6]uint64) uint32 {
	t.Helper()
	data := map[uint32]uint32{offNumber: number, offArch: arch}
	for i, a := range args {
		data[offArgs+8*uint32(i)], data[offArgs+8*uint32(i)+4] = uint32(a), uint32(a>>32)
	}
	var acc uint32
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		var taken bool
		switch in.Code {
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			taken = acc == in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			taken = acc >= in.K
		default:
			t.Fatalf("unknown instruction %#x", in.Code)
		}
		if taken {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the program runs past its end")
	return 0
}
