// Package sandbox runs the command stages of pipelines where they can do no harm: in a worker process of a backend,
// one worker to each run, every command in a jail of its own.
//
// A [Pool] is what the engine asks for commands. Behind it a [Driver] knows how to start a worker; package wire is how
// the two talk, package worker is the other end, package programs says which commands exist and what their arguments
// may be. This package knows no container engine and starts no process.
package sandbox
