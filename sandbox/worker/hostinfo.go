//go:build linux

package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A hostInfo is what the binary of a worker finds on a machine. A launcher makes one and gives it to each worker: the
// search for programs takes longer than all else that a worker does before it can serve.
type hostInfo struct {
	Support   jail.Support
	Tools     map[string]located
	Found     []wire.Found
	Around    wire.Surroundings // which cannot be seen from within
	Loader    string            // of the worker's own binary; empty if it is static
	Workspace string            // the directory whose files commands may read; empty if there is none
	Added     string            // the operator's programs, see [programs.ReadAdded]
}

// A located program is one that can run.
type located struct {
	File   string // its executable; empty for an applet
	Loader string // the dynamic loader that File names; empty if it is static
}

// lookAround looks around. workspace is the directory whose files commands may read, added are the operator's programs; both
// may be empty.
func lookAround(o Options, workspace, added string) (hostInfo, error) {
	s := hostInfo{Support: jail.Supported(), Around: surroundings(), Workspace: workspace, Added: added}
	o, err := o.with(added)
	if err != nil {
		return s, err
	}
	s.Tools, s.Found = s.locate(o.Extra)
	if loader, err := loaderOf("/proc/self/exe"); err == nil {
		s.Loader = loader
	}
	return s, nil
}

// with adds the operator's programs.
func (o Options) with(added string) (Options, error) {
	all, err := programs.ReadAdded(added)
	o.Extra = slices.Concat(o.Extra, all)
	return o, err
}

// hostInfoMain prints a hostInfo. args are the last two of [lookAround].
func hostInfoMain(args []string, o Options) error {
	if len(args) != 2 {
		return fmt.Errorf("unknown arguments %q", args)
	}
	s, err := lookAround(o, args[0], args[1])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

func readHostInfo(text string) (s hostInfo, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("reading the host info: %w", err)
	}
	return s, nil
}
