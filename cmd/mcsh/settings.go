package main

import (
	"github.com/mcsh-dev/mcsh/upstream"
)

// settings are what a command line says about the parts that it needs.
type settings struct {
	configs   []string
	noBuiltin bool
	root      string
	readOnly  bool
	workspace string // where stages save files; empty: nowhere
	toolhive  toolhiveFlags
	state     string
	keeps     bool // what is learned of servers is kept in state
	sandbox   sandboxSettings
	instance  string // the name of a gateway that serves

	// told is set by commands that run for long: they follow the sources, and tell it of changes.
	told func(upstream.Change)

	limits limits // whoever types the command line is the operator
}
