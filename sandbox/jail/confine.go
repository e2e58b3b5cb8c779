//go:build linux

package jail

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Confine locks the calling process in, all of its threads: it can use the descriptors it has, its memory and the
// clock, and nothing else. It cannot be undone. The process was started by [Own.Start], and so dies with its starter and
// has no_new_privs from its first thread on. parent is the process id of the starter, who has to [Process.Limit] it.
func Confine(parent int) error {
	if unix.Getppid() != parent {
		return fmt.Errorf("process %d, which started this one, has died", parent)
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 1 {
		return errors.New("it was not started locked in: it could get privileges")
	}
	if err := (Limits{}).apply(0); err != nil {
		return err
	}
	filter, err := confineFilter()
	if err != nil {
		return err
	}
	return install(filter, unix.SECCOMP_FILTER_FLAG_TSYNC) // from this thread to the others (seccomp(2))
}
