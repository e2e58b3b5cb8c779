//go:build unix

package toolhive

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a file that somebody else can have written.
func private(info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write it")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && !isOurs(int(stat.Uid)) {
		return fmt.Errorf("it belongs to another user (%d)", stat.Uid)
	}
	return nil
}

// isOurs reports whether a user is the one that we run as, or root.
func isOurs(uid int) bool { return uid == 0 || uid == os.Geteuid() }
