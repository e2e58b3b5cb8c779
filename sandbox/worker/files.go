//go:build linux

package worker

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// openFiles opens the files that a command reads. The worker itself reaches no other files of the machine's owner than
// those of the workspace; that each is a regular file and within it is found out here, once: the command may open what
// is open now, whatever takes its name later.
func (w *worker) openFiles(p *process, c wire.Command) (err error) {
	if len(c.Files) == 0 {
		return nil
	}
	if w.survey.Workspace == "" {
		return errors.New("there is no workspace")
	}
	root, err := unix.Open(w.survey.Workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer unix.Close(root)
	for _, name := range c.Files {
		f, err := openBeneath(root, name, p.tool.Walks)
		if err != nil {
			p.closeFiles()
			return &badFile{fmt.Sprintf("the file %q of the workspace %v", name, err)}
		}
		p.files = append(p.files, f)
	}
	return nil
}

// badFile is the error of a file that cannot be read: the pipeline's fault, not this machine's.
type badFile struct{ text string }

func (e *badFile) Error() string { return e.text }

// refusal makes a failure of the reason why a command was not started.
func refusal(i int, err error) *wire.Failure {
	reason := wire.Refused
	if _, ok := errors.AsType[*badFile](err); ok {
		reason = wire.BadFile
	}
	return &wire.Failure{Command: i, Reason: reason, Detail: err.Error()}
}

// openBeneath opens a regular file, or a directory where that may be one. It waits for nobody: O_NONBLOCK keeps a pipe from holding it.
func openBeneath(root int, name string, dirs bool) (*os.File, error) {
	fd, err := unix.Openat2(root, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, errors.New("does not exist")
	case errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP):
		return nil, errors.New("is a link that leads out of it, or in a circle")
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return nil, errors.New("may not be read by the user that commands run as")
	case errors.Is(err, unix.ENXIO):
		return nil, errors.New("is no regular file")
	case err != nil:
		return nil, fmt.Errorf("cannot be opened: %w", err)
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if kind := st.Mode & unix.S_IFMT; err != nil || kind != unix.S_IFREG && (kind != unix.S_IFDIR || !dirs) {
		unix.Close(fd)
		return nil, errors.New("is no regular file")
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (p *process) closeFiles() {
	closeAll(p.files...)
	p.files = nil
}
