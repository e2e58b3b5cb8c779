//go:build linux

package jail

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Confine locks the calling process in, all of its threads: it can use the descriptors it has, its memory and the
// clock, and nothing else. It cannot be undone. parent is the process id of the starter, with which it dies, and who has
// to [Process.Limit] it.
func Confine(parent int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := dieWith(parent, unix.SIGKILL); err != nil {
		return err
	}
	// On this thread only: SECCOMP_FILTER_FLAG_TSYNC carries it to the others (seccomp(2)).
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if err := (Limits{}).apply(0, false); err != nil {
		return err
	}
	filter, err := confineFilter()
	if err != nil {
		return err
	}
	return install(filter, unix.SECCOMP_FILTER_FLAG_TSYNC)
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
