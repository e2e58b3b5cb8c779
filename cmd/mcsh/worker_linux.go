package main

import "github.com/mcsh-dev/mcsh/sandbox/worker"

// workerMain is the sandbox worker, for installations without the binary mcsh-worker.
func workerMain(args []string) int {
	return worker.Main(args, worker.Options{Prefix: []string{workerCommand}})
}
