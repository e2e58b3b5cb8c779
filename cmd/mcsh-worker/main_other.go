//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mcsh-worker: it needs Linux")
	os.Exit(1)
}
