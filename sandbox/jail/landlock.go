//go:build linux

package jail

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights of a rule, by what the path is for. They are cut to what the running kernel knows, and for a plain file
// to what applies to files.
const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayRun   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	mayWrite = mayRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	mayKeep = mayWrite | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	ofFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// handled lists what each Landlock ABI can take away, the newest first. The first entry holds rights of
// several ABIs after 7; a kernel that lacks one of them refuses it, and gets the next entry.
var handled = []struct {
	abi         int
	fs, net, sc uint64
}{
	{8, 1<<17 - 1, 0xf, 3},
	{6, 1<<16 - 1, 3, 3},
	{5, 1<<16 - 1, 3, 0},
	{4, 1<<15 - 1, 3, 0},
	{3, 1<<15 - 1, 0, 0},
	{2, 1<<14 - 1, 0, 0},
	{1, 1<<13 - 1, 0, 0},
}

// LandlockABI returns the version of Landlock that the running kernel offers, 0 if it offers none.
func LandlockABI() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// A grant is a path and what may be done beneath it.
type grant struct {
	path   string
	rights uint64
}

// A Part is a directory of which some entries may be read, as they are now and with all that is in them. Of the others,
// and of what is in those, the names can be seen.
type Part struct {
	Dir   *os.File
	Names []string
}

// grants lists what a jailed program may do with files besides its own.
func (s Spec) grants() []grant {
	g := slices.Concat(each(s.Run, mayRun), each(s.Read, mayRead))
	if s.Scratch != "" {
		g = append(g, grant{s.Scratch, mayWrite})
	}
	return g
}

func each(paths []string, rights uint64) []grant {
	g := make([]grant, len(paths))
	for i, path := range paths {
		g[i] = grant{path, rights}
	}
	return g
}

// newDomain makes a ruleset that takes every file system, network and scope right that the ABI knows, but those
// granted, from each process that enters it. The ABI is at most [LandlockABI]. It returns the ruleset's descriptor.
func newDomain(grants []grant, abi int) (int, error) {
	return newDomainWith(grants, abi, func(*ruleset) {})
}

// newDomainWith is newDomain with further rules.
func newDomainWith(grants []grant, abi int, add func(*ruleset)) (int, error) {
	fd, fs, err := newRuleset(abi)
	if err != nil {
		return -1, err
	}
	rules := ruleset{fd: fd, fs: fs}
	for _, g := range grants {
		rules.allow(unix.AT_FDCWD, g.path, 0, g.rights)
	}
	add(&rules)
	if rules.err != nil {
		unix.Close(fd)
		return -1, rules.err
	}
	return fd, nil
}

// newRuleset makes a ruleset that handles as much as the ABI can, and returns the file system rights it handles.
func newRuleset(abi int) (fd int, fs uint64, err error) {
	for _, h := range handled {
		if h.abi > abi {
			continue
		}
		attr := unix.LandlockRulesetAttr{Handled_access_fs: h.fs, Handled_access_net: h.net, Scoped: h.sc}
		r, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET,
			uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
		if errno == 0 {
			return int(r), h.fs, nil
		}
		if errno != unix.EINVAL { // EINVAL: a right that this kernel does not know
			return 0, 0, fmt.Errorf("creating the landlock ruleset: %w", errno)
		}
	}
	return 0, 0, fmt.Errorf("creating the landlock ruleset: the kernel offers none")
}

// A ruleset collects rules; err is the first failure.
type ruleset struct {
	fd  int
	fs  uint64
	err error
}

// allow adds the rights to everything beneath path, which is relative to dir. A path that does not exist needs no rule.
func (r *ruleset) allow(dir int, path string, flags int, rights uint64) {
	if r.err != nil {
		return
	}
	fd, err := unix.Openat(dir, path, flags|unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return
	}
	if err != nil {
		r.err = fmt.Errorf("opening %s for a landlock rule: %w", path, err)
		return
	}
	defer unix.Close(fd)
	r.allowOpen(fd, path, rights)
}

// allowOpen is allow for what is open.
func (r *ruleset) allowOpen(fd int, path string, rights uint64) {
	if r.err != nil {
		return
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		r.err = fmt.Errorf("looking at %s for a landlock rule: %w", path, err)
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	if rights&r.fs == 0 {
		return // the kernel takes no rule that allows nothing
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.fs, Parent_fd: int32(fd)}
	_, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		r.err = fmt.Errorf("adding a landlock rule for %s: %w", path, errno)
	}
}

// allowFiles adds what a jailed program may read because it is open.
func (s Spec) allowFiles(r *ruleset) {
	for _, f := range s.Files {
		r.allowOpen(int(f.Fd()), f.Name(), mayRead)
	}
	for _, f := range s.Lists {
		r.allowOpen(int(f.Fd()), f.Name(), unix.LANDLOCK_ACCESS_FS_READ_DIR)
	}
	for _, p := range s.Parts {
		dir := int(p.Dir.Fd())
		r.allowOpen(dir, p.Dir.Name(), unix.LANDLOCK_ACCESS_FS_READ_DIR)
		for _, name := range p.Names {
			r.allow(dir, name, unix.O_NOFOLLOW, mayRead)
		}
	}
}
