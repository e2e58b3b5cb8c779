//go:build linux

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
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
	Inputs []string // names of the named inputs, which wait under the descriptors from firstInput on
	Keep   bool     // it runs for many items, which come in frames
}

// appletThreads is how many processors one applet uses: one for itself and one for its garbage collector.
const appletThreads = 2

// firstInput is the descriptor after standard input, output and error.
const firstInput = 3

// inputs returns a function that opens the named inputs, each as often as it is asked for.
func (s appletSpec) inputs() func(name string) (io.Reader, error) {
	files := map[string]*os.File{}
	for i, name := range s.Inputs {
		files[name] = os.NewFile(uintptr(firstInput+i), "@"+name)
	}
	return func(name string) (io.Reader, error) {
		f, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("there is no input @%s", name)
		}
		return io.NewSectionReader(f, 0, math.MaxInt64), nil
	}
}

// appletMain is the program of the appletSpec in the first argument, with the other arguments. Its arguments are read
// in the jail.
func appletMain(args []string, o Options) int {
	var spec appletSpec
	if err := json.Unmarshal([]byte(args[0]), &spec); err != nil {
		return refuse(err)
	}
	p, ok := find(spec.Name, o.Extra)
	if !ok || p.Applet == nil || spec.Keep && p.Ready == nil {
		return refuse(errNoApplet)
	}
	runtime.GOMAXPROCS(appletThreads)
	// The collector works harder before RLIMIT_DATA kills.
	debug.SetMemoryLimit(int64(spec.Limits.Data / 4 * 3))
	if err := jail.Confine(spec.Limits, spec.Parent); err != nil {
		return refuse(err)
	}
	if spec.Keep {
		return attendMain(p.Ready(args[1:], spec.inputs()))
	}
	return p.Applet(context.Background(), args[1:], programs.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Input: spec.inputs(),
	})
}
