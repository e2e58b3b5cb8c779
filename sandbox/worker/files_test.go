//go:build linux

package worker

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestUnreadable: a command that names a file or a workspace that its user may not read fails for that reason.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.Chmod(filepath.Dir(dir), 0o755), os.WriteFile(filepath.Join(dir, "private"), nil, 0), os.WriteFile(filepath.Join(dir, "public"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		mode   os.FileMode
		name   string
		reason wire.Reason
	}{
		{0o755, "public", ""},
		{0o755, "private", wire.Unreadable},
		{0o755, "missing", wire.BadFile},
		{0, "public", wire.NoWorkspace},
	} {
		if err := os.Chmod(dir, test.mode); err != nil {
			t.Fatal(err)
		}
		if got := refused(dir, test.name); got != test.reason {
			t.Errorf("%s in a workspace of mode %o: got %q, want %q", test.name, test.mode, got, test.reason)
		}
	}
}

// refused returns the reason why a command of a user without privileges may not read a file, or "".
func refused(dir, name string) (reason wire.Reason) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with this goroutine: it has another user
		_ = unix.Setfsuid(65534)
		w := &worker{}
		w.hostInfo.Workspace = dir
		v, err := w.look(&tool{}, wire.Command{Name: "cat", Files: []string{name}})
		if err != nil {
			reason = refusal(0, err).Reason
			return
		}
		v.close()
	}()
	<-done
	return reason
}
