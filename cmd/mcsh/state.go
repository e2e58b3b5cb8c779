package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/upstream/state"
)

// stateVariable names the directory of state where there is no --state.
const stateVariable = "MCSH_STATE"

// stateOff is the directory of state of who wants none.
const stateOff = "off"

// addState adds the flag of the commands that keep what they learn of servers.
func (s *settings) addState(cmd *cobra.Command) {
	s.keeps = true
	cmd.Flags().StringVar(&s.state, "state", "", "directory where tool lists and the shapes of results are kept, or "+stateOff+
		" (default: a directory of ours in $XDG_STATE_HOME or ~/.local/state; $"+stateVariable+")")
}

// openState opens the directory of state. One that was named must be there or be made; without the usual one nothing is
// kept, which is said.
func (p *program) openState(s settings) (*state.Dir, error) {
	path := s.state
	if path == "" {
		path = p.env[stateVariable]
	}
	named := path != ""
	if !named {
		path = p.usualState()
	}
	if !s.keeps || path == "" || path == stateOff {
		return nil, nil
	}
	dir, err := state.Open(path)
	switch {
	case err == nil:
		return dir, nil
	case named:
		return nil, configError("name a directory that can be written, or --state "+stateOff, err)
	}
	fmt.Fprintf(p.stderr, "mcsh: nothing is kept for the next start (--state %s says that this is meant): %v\n", stateOff, err)
	return nil, nil
}

// usualState is where programs of this user keep state, or nothing where the user has no home.
func (p *program) usualState() string {
	if dir := p.env["XDG_STATE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcsh")
	}
	if home := p.env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "mcsh")
	}
	return ""
}
