//go:build linux

package local_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/sandbox/sandboxtest"
)

// The binaries that TestMain builds: the real worker, and one with a program that tries to break out.
var workerFile, probeFile string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcsh-local-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if workerFile, err = sandboxtest.Build(dir, "cmd/mcsh-worker"); err == nil {
		probeFile, err = sandboxtest.Build(dir, "sandbox/sandboxtest/probe")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the worker:", err)
		return 1
	}
	return m.Run()
}

func TestContract(t *testing.T) {
	sandboxtest.Run(t, func() sandbox.Driver { return local.New(local.Options{Worker: []string{probeFile}}) })
}
