//go:build !linux

package cli

import (
	"fmt"
	"os"
)

// workerMain fails: the jail of the worker needs Linux.
func workerMain([]string) int {
	fmt.Fprintln(os.Stderr, "mcsh worker: it needs Linux")
	return exitConfig
}

// hide does nothing: no commands run on this system.
func hide() error { return nil }

// portOwner is only implemented for Linux.
func portOwner(int) string { return "" }
