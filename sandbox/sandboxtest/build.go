package sandboxtest

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds a command of this module without the race detector, whose memory no jail allows, and returns its path.
// It is for TestMain, which removes dir. The flags are those of the image, so that packages are compiled once for both.
func Build(dir, pkg string) (string, error) {
	file := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-o", file, "github.com/mcsh-dev/mcsh/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return file, cmd.Run()
}
