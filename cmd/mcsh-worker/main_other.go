//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mcsh-worker: it needs Linux; elsewhere use the docker backend")
	os.Exit(1)
}
