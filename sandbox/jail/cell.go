//go:build linux

package jail

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// execFD is the descriptor that the program waits under. It is the first one that RLIMIT_NOFILE forbids, so that
// nothing can take its place later; and it is below 64, because a larger one makes the kernel grow the descriptor
// table, which costs 10 ms in a process that has threads.
const execFD = nofile

// A Spec says which program to run and what it may touch.
type Spec struct {
	Path string // the program's file, absolute

	Read    []string   // files and directories that it may read; missing ones are skipped
	Run     []string   // files that may be executed besides Path: the dynamic loader; missing ones are skipped
	Files   []*os.File // what it may read as well, even if the name leads elsewhere by then; a directory with all that is in it
	Lists   []*os.File // directories whose names it may read, and those of the directories in them, but no file
	Parts   []Part     // directories that it may read in part
	Scratch string     // the one directory it may write in, and its working directory if there is no Dir; empty: it writes no file
	Dir     string     // its working directory; empty: Scratch, or else the root

	Asks    bool // it may ask by name for the attributes of a file, and whether it can be read
	Walks   bool // it may see what directories hold, and where links lead
	Threads bool // it may start threads; without, it is one for ever
}

// knowing lists the calls about files that its program needs besides.
func (s Spec) knowing() (calls []uint32) {
	if s.Asks {
		calls = slices.Concat(calls, asking, legacyAsking)
	}
	if s.Walks {
		calls = slices.Concat(calls, walking, legacyWalking)
	}
	return calls
}

// A Cell is the jail of one program, built: any number of processes can be started in it, none of which has to do with
// another.
type Cell struct {
	spec    Spec
	exe     *os.File
	ruleset int
	filter  []unix.SockFilter
	own     int // see launch
}

// A Command is one process in a cell.
type Command struct {
	Argv   []string // its arguments, the name first
	Env    []string // its environment, complete
	Limits Limits
	Files  []int // its descriptors from 0 on, which stay the caller's
	Nice   int   // how much nicer it is than its starter, see nice(2)
}

// NewCell builds a jail. Its paths mean the files that are there now, not others that take their places later.
func NewCell(s Spec) (_ *Cell, err error) {
	c := &Cell{spec: s, ruleset: -1}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if c.exe, err = os.Open(s.Path); err != nil {
		return nil, err
	}
	files := filesRead
	if s.Scratch != "" {
		files = filesScratch
	}
	if c.filter, c.own, err = execFilter(files, s.Threads, s.knowing()); err != nil {
		return nil, err
	}
	allow := func(r *ruleset) {
		r.allowOpen(int(c.exe.Fd()), s.Path, mayRun) // not what has its name by now
		s.allowFiles(r)
	}
	if c.ruleset, err = newDomainWith(s.grants(), LandlockABI(), allow); err != nil {
		return nil, err
	}
	return c, nil
}

// Close gives up what the cell holds. Processes in it live on.
func (c *Cell) Close() {
	if c.exe != nil {
		c.exe.Close()
	}
	if c.ruleset >= 0 {
		unix.Close(c.ruleset)
		c.ruleset = -1
	}
}

// Start starts the program: resource limits, no capabilities, no_new_privs, the Landlock domain, and the filter, whose
// one exec it is. The process dies with its starter.
func (c *Cell) Start(cmd Command) (*Process, error) {
	l := launch{
		signal: unix.SIGKILL, parent: os.Getpid(), ruleset: c.ruleset, exe: int(c.exe.Fd()), own: c.own,
		filter: slices.Clone(c.filter),
	}
	var err error
	if l.limits, err = cmd.Limits.plan(c.spec.Scratch != ""); err != nil {
		return nil, err
	}
	p, err := l.start(cmp.Or(c.spec.Dir, c.spec.Scratch, "/"), cmd)
	runtime.KeepAlive(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.spec.Path, err)
	}
	return p, nil
}

// Own is how a process starts its own program anew, for work that touches no file.
type Own struct{ ruleset int }

// NewOwn readies starts of the running program. abi is the version of Landlock, 0 for none; with it, what is started can
// open and run its own file, and what run and read name, which is what it takes to load it.
func NewOwn(abi int, run, read []string) (*Own, error) {
	o := &Own{ruleset: -1}
	if abi == 0 {
		return o, nil
	}
	var err error
	o.ruleset, err = newDomain(slices.Concat([]grant{{self, mayRun}}, each(run, mayRun), each(read, mayRead)), min(abi, LandlockABI()))
	return o, err
}

// Start starts the program. It dies with its starter.
func (o *Own) Start(cmd Command) (*Process, error) {
	path, err := syscall.BytePtrFromString(self)
	if err != nil {
		return nil, err
	}
	l := launch{signal: unix.SIGKILL, parent: os.Getpid(), ruleset: o.ruleset, noLandlock: o.ruleset < 0, own: -1, path: path}
	return l.start("/", cmd)
}

// start fills in what all launches have in common.
func (l *launch) start(dir string, cmd Command) (*Process, error) {
	var err error
	if l.dir, err = syscall.BytePtrFromString(dir); err != nil {
		return nil, fmt.Errorf("reading the directory: %w", err)
	}
	if l.argv, err = syscall.SlicePtrFromStrings(cmd.Argv); err != nil {
		return nil, fmt.Errorf("reading arguments: %w", err)
	}
	if l.env, err = syscall.SlicePtrFromStrings(cmd.Env); err != nil {
		return nil, fmt.Errorf("reading environment: %w", err)
	}
	l.files = slices.Clone(cmd.Files)
	moving := []*int{&l.ruleset}
	if l.path == nil {
		moving = append(moving, &l.exe)
	}
	for i := range l.files {
		moving = append(moving, &l.files[i])
	}
	for _, fd := range moving {
		if *fd >= len(l.files) || *fd < 0 {
			continue
		}
		if *fd, err = unix.FcntlInt(uintptr(*fd), unix.F_DUPFD_CLOEXEC, len(l.files)); err != nil {
			return nil, fmt.Errorf("moving a descriptor: %w", err)
		}
		defer unix.Close(*fd)
	}
	if len(l.filter) > 0 {
		l.program = unix.SockFprog{Len: uint16(len(l.filter)), Filter: &l.filter[0]}
	}
	l.nice = niceness(cmd.Nice)
	var pid int
	onLastingThread(func() { pid, err = l.run() })
	if err != nil {
		return nil, err
	}
	return &Process{pid: pid}, nil
}
