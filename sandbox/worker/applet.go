//go:build linux

package worker

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// An appletSpec tells a process which linked-in program it is.
type appletSpec struct {
	Name   string
	Limits jail.Limits
	Parent int
}

// appletThreads is how many processors one applet uses: one for itself and one for its garbage collector.
const appletThreads = 2

// appletMain is the program of the appletSpec in the first argument, with the other arguments. Its arguments are read
// in the jail.
func appletMain(args []string, o Options) int {
	var spec appletSpec
	if err := json.Unmarshal([]byte(args[0]), &spec); err != nil {
		return refuse(err)
	}
	p, ok := find(spec.Name, o.Extra)
	if !ok || p.Applet == nil {
		return refuse(errNoApplet)
	}
	runtime.GOMAXPROCS(appletThreads)
	// The collector works harder before RLIMIT_DATA kills.
	debug.SetMemoryLimit(int64(spec.Limits.Data / 4 * 3))
	if err := jail.Confine(spec.Limits, spec.Parent); err != nil {
		return refuse(err)
	}
	return p.Applet(context.Background(), args[1:], programs.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
