package parttest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

// module is the path of this module.
const module = "github.com/mcsh-dev/mcsh/"

// buildTime bounds how long Build waits for the builds of other test binaries.
const buildTime = 10 * time.Minute

// Build puts programs of this module into dir, each given as its directory, such as cmd/mcsh-worker. They are what the
// image has: without the race detector, whose memory no jail allows. All test binaries of a user share one directory, in
// which the go command links only what has changed.
func Build(dir string, packages ...string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	built := filepath.Join(cache, "mcsh-test", "built")
	if err := os.MkdirAll(built, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(built, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	if err := flock.Wait(ctx, lock); err != nil {
		return fmt.Errorf("waiting for the builds of other tests: %w", err)
	}
	return build(built, dir, packages)
}

// build builds programs in one directory and puts them into another one. Nobody else writes to the first meanwhile.
func build(built, dir string, packages []string) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-o", built + string(filepath.Separator)}
	for _, name := range packages {
		args = append(args, module+name)
	}
	command := exec.Command("go", args...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as for the image: packages are compiled once for both
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %q: %w\n%s", args, err, out)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
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

// place makes to the file from, which a later build replaces and does not change.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from) // it is on another file system
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}
