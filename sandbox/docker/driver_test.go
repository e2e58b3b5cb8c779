package docker_test

import (
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/sandboxtest"
)

// TestContract is what every backend holds. Package local runs all of it by day, too.
func TestContract(t *testing.T) {
	needEngine(t)
	sandboxtest.RunAgain(t, func() sandbox.Driver { return docker.New(options()) })
}

// TestAdded is what every backend holds whose operator adds programs.
func TestAdded(t *testing.T) {
	needEngine(t)
	sandboxtest.RunAdded(t, docker.WorkerPath, func(dir, added string) sandbox.Driver {
		o := options()
		o.Workspace, o.Added = dir, added
		return docker.New(o)
	})
}

// TestWorkspace is what every backend holds whose commands read files of a workspace.
func TestWorkspace(t *testing.T) {
	needEngine(t)
	sandboxtest.RunWorkspace(t, func(dir string) sandbox.Driver {
		o := options()
		o.Workspace = dir
		return docker.New(o)
	})
}
