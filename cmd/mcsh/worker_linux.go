package main

import (
	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

// workerMain is the sandbox worker, for installations without the binary mcsh-worker.
func workerMain(args []string) int {
	return worker.Main(args, worker.Options{Prefix: []string{workerCommand}})
}

// hide keeps other processes of the same user, commands of pipelines among them, from reading the credentials that are
// in the environment and the memory of this one. A debugger needs to be root's.
func hide() error { return jail.Hide() }
