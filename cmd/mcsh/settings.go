package main

import "github.com/mcsh-dev/mcsh/stages"

// settings are what a command line says about the parts that it needs.
type settings struct {
	configs   []string
	noBuiltin bool
	root      string
	readOnly  bool
	backend   string

	limits stages.Limits // whoever types the command line is the operator
}
