package parttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// module is the path of this module.
const module = "github.com/mcsh-dev/mcsh/"

// tmpVariable says where the go command links.
const tmpVariable = "GOTMPDIR"

// buildTime bounds how long Build waits for the builds of other test binaries.
const buildTime = 10 * time.Minute

// Build puts programs of this module into dir, each given as its directory, such as cmd/mcsh-worker. They are what the
// image has: without the race detector, whose memory no jail allows. All test binaries of a user share one directory, in
// which the go command links only what has changed. A user without a home that can be written links again each time.
func Build(dir string, packages ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock, err := share()
	if err != nil {
		return build(dir, os.Getenv(tmpVariable), packages)
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	if err := flock.Wait(ctx, lock); err != nil {
		return fmt.Errorf("waiting for the builds of other tests: %w", err)
	}
	built := filepath.Dir(lock.Name())
	// The go command renames a program that it has linked on the same file system, so none is ever half there.
	linked := filepath.Join(built, "linked")
	if err := errors.Join(os.RemoveAll(linked), os.Mkdir(linked, 0o700), build(built, linked, packages)); err != nil {
		return err
	}
	for _, name := range packages {
		name = filepath.Base(name)
		if err := place(filepath.Join(built, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// share opens the lock of the shared directory, which is in it.
func share() (*os.File, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	built := filepath.Join(cache, "mcsh-test", "built")
	if err := os.MkdirAll(built, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(built, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
}

// build builds programs in dir. Until they are whole they are in tmp; empty: where $TMPDIR says.
func build(dir, tmp string, packages []string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", dir + string(filepath.Separator)}
	for _, name := range packages {
		args = append(args, module+name)
	}
	command := exec.Command("go", args...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", tmpVariable+"="+tmp) // as for the image: packages are compiled once for both
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %q: %w\n%s", args, err, out)
	}
	return nil
}

// place makes to the file from, which a later build replaces and does not change.
func place(from, to string) error {
	_ = os.Remove(to) // of an earlier call; what cannot be removed is reported below
	if os.Link(from, to) == nil {
		return nil
	}
	// It is on another file system. A file that this process writes cannot run while a process that it starts meanwhile has it open.
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp %s %s: %w: %s", from, to, err, out)
	}
	return nil
}
