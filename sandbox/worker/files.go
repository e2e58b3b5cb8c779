//go:build linux

package worker

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A view is what a command may see of the workspace: what its files are when it is made, whatever takes their names
// later.
type view struct {
	root  *os.File
	dir   *os.File   // in which it runs
	files []*os.File // what it reads
	lists []*os.File // directories of which it sees names
	parts []jail.Part
}

// look opens the files that a command names; it returns nil if there are none. The worker itself reaches no other files
// of the machine's owner than those of the workspace; that each is within it and the gateway's own is not among them is
// found out here, once.
func (w *worker) look(t *tool, c wire.Command) (_ *view, err error) {
	if len(c.Files) == 0 {
		return nil, nil
	}
	if w.hostInfo.Workspace == "" {
		return nil, errors.New("there is no workspace")
	}
	root, err := os.Open(w.hostInfo.Workspace)
	if errors.Is(err, os.ErrPermission) {
		return nil, errNoWorkspace
	}
	if err != nil {
		return nil, fmt.Errorf("opening the workspace: %w", err)
	}
	v := &view{root: root}
	if v.dir, err = v.open(cmp.Or(c.Dir, ".")+"/.", true); err != nil {
		v.close()
		return nil, &badFile{fmt.Sprintf("the directory %s of the workspace %v", texts.QuotePath(c.Dir), err), err}
	}
	for _, name := range c.Files {
		f, err := v.open(cmp.Or(c.Dir, ".")+"/"+name, t.Walks)
		if err == nil {
			err = v.add(f, t)
		}
		if err != nil {
			v.close()
			return nil, &badFile{fmt.Sprintf("the file %s of the workspace %v", texts.QuotePath(name), err), err}
		}
	}
	return v, nil
}

// badFile is the error of a file that cannot be read: the pipeline's fault, not this machine's.
type badFile struct {
	text string
	err  error
}

func (e *badFile) Error() string { return e.text }
func (e *badFile) Unwrap() error { return e.err }

// Why a file is not for commands.
var (
	errOutside = errors.New("is a link that leads out of it, or in a circle")
	errPrivate = errors.New("belongs to the gateway")

	errUnreadable  = errors.New("may not be read by the user that commands run as")
	errNoWorkspace = errors.New("the workspace may not be read by the user that commands run as")
)

// refusal makes a failure of the reason why a command was not started.
func refusal(i int, err error) *wire.Failure {
	reason := wire.Refused
	if _, ok := errors.AsType[*badFile](err); ok {
		reason = wire.BadFile
	}
	if errors.Is(err, errOutside) || errors.Is(err, errPrivate) {
		reason = wire.Escape
	}
	if errors.Is(err, errUnreadable) {
		reason = wire.Unreadable
	}
	if errors.Is(err, errNoWorkspace) {
		reason = wire.NoWorkspace
	}
	return &wire.Failure{Command: i, Reason: reason, Detail: err.Error()}
}

// add adds a file to those that the tool may read: its names alone, a directory's entries, or all of it.
func (v *view) add(f *os.File, t *tool) error {
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("cannot be looked at: %w", err)
	}
	root, err := v.root.Stat()
	switch {
	case err != nil:
		f.Close()
		return fmt.Errorf("cannot be looked for: %w", err)
	case t.FilesOnly:
		v.lists = append(v.lists, f)
	case os.SameFile(info, root):
		names, err := entries(f)
		v.parts = append(v.parts, jail.Part{Dir: f, Names: names})
		return err
	default:
		v.files = append(v.files, f)
	}
	return nil
}

// maxEntries is how many entries of the workspace's directory a command may search at once: each takes a rule of its
// jail, and a rule about ten microseconds.
const maxEntries = 10_000

// entries returns what the workspace's directory holds, but links, which lead to what has a name of its own, and what
// is the gateway's.
func entries(dir *os.File) (names []string, err error) {
	list, err := dir.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot be listed: %w", err)
	}
	if len(list) > maxEntries {
		return nil, fmt.Errorf("has more than %d entries: name a directory in it", maxEntries)
	}
	for _, e := range list {
		if (e.IsDir() || e.Type().IsRegular()) && !programs.IsPrivate(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// open opens a regular file, or a directory where that may be one. It waits for no other process: O_NONBLOCK keeps a pipe from
// holding it.
func (v *view) open(name string, dirs bool) (_ *os.File, err error) {
	fd, err := unix.Openat2(int(v.root.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, notOpened(err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if kind := st.Mode & unix.S_IFMT; err != nil || kind != unix.S_IFREG && (kind != unix.S_IFDIR || !dirs) {
		return nil, errors.New("is no regular file")
	}
	if err := v.foreign(fd); err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// notOpened says why a file was not opened.
func notOpened(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return errors.New("does not exist")
	case errors.Is(err, unix.EXDEV), errors.Is(err, unix.ELOOP):
		return errOutside
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return errUnreadable
	case errors.Is(err, unix.ENXIO):
		return errors.New("is no regular file")
	}
	return fmt.Errorf("cannot be opened: %w", err)
}

// foreign refuses what is the gateway's own, by whatever link it was reached.
func (v *view) foreign(fd int) error {
	base, err := where(int(v.root.Fd()))
	if err != nil {
		return err
	}
	name, err := where(fd)
	if err != nil {
		return err
	}
	if rel, ok := strings.CutPrefix(name, strings.TrimSuffix(base, "/")+"/"); ok && programs.IsPrivate(rel) {
		return errPrivate
	}
	return nil
}

// where returns the name of an open file.
func where(fd int) (string, error) {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", fmt.Errorf("cannot be distinguished from the gateway's own: %w", err)
	}
	return name, nil
}

func (v *view) close() {
	v.root.Close()
	closeAll(v.dir)
	closeAll(v.files...)
	closeAll(v.lists...)
	for _, p := range v.parts {
		p.Dir.Close()
	}
}

func (p *process) closeView() {
	if p.view != nil {
		p.view.close()
		p.view = nil
	}
}
