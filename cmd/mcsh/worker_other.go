//go:build !linux

package main

import (
	"fmt"
	"os"
)

// workerMain refuses: the jail of the sandbox worker is made of what only Linux has.
func workerMain([]string) int {
	fmt.Fprintln(os.Stderr, "mcsh worker: it needs Linux")
	return exitConfig
}

// hide does nothing: no commands run beside the gateway here.
func hide() error { return nil }
