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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// An appletSpec is what a worker sends an applet about the program that it is from now on: so a process can be started
// before there is a program for it, and be one program after another.
type appletSpec struct {
	Name   string
	Args   []string
	Memory uint64   // bytes of memory that it may take
	Inputs []string // names of the named inputs, which wait under the descriptors from firstInput on
	Files  int      // how many files, under the descriptors behind those, it reads in place of its standard input
	Items  bool     // its inputs are items, see forItems
	Check  bool     // the first input is answered with the verdict on the script in Args
}

// How many processors one applet uses: one for itself and, when it has worked for a while, one for its garbage collector.
// To start with both costs a short one a tenth of its time.
const (
	appletThreads = 2
	firstThreads  = 1
	whileOfOne    = 10 * time.Millisecond
)

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

// files returns what the program reads in place of its standard input: its files, one after the other.
func (s appletSpec) files() io.Reader {
	var all []io.Reader
	for i := range s.Files {
		all = append(all, os.NewFile(uintptr(firstInput+len(s.Inputs)+i), "file"))
	}
	return io.MultiReader(all...)
}

// appletMain is a jailed process that is one program after another, as its specs say. Everything that comes from outside
// is read in the jail. args is the process id of the worker.
func appletMain(args []string, o Options) int {
	parent, err := strconv.Atoi(strings.Join(args, " "))
	if err != nil {
		return refuse(err)
	}
	if err := jail.Confine(parent); err != nil {
		return refuse(err)
	}
	// From the first program on: what comes before is waiting.
	working := sync.OnceFunc(func() {
		time.AfterFunc(whileOfOne, func() { runtime.GOMAXPROCS(appletThreads) })
	})
	err = serveInputs(func(s appletSpec) (programs.Runner, error) {
		working()
		debug.SetMemoryLimit(int64(s.Memory / 4 * 3)) // the collector works harder before RLIMIT_DATA kills
		return o.ready(s)
	}, os.Stdin, os.Stdout)
	if err != nil {
		return refuse(err)
	}
	return 0
}

// ready returns the program of a spec.
func (o Options) ready(s appletSpec) (programs.Runner, error) {
	p, ok := find(s.Name, o.Extra)
	if !ok || p.Ready == nil || s.Check && !p.Script || !s.Check && p.Bin != "" {
		return nil, errNoApplet
	}
	run, verdict := p.Ready(s.Args, s.inputs())
	if s.Files > 0 {
		run = withInput(run, s.files())
	}
	if s.Items {
		run = forItems(run)
	}
	if s.Check {
		run = afterVerdict(verdict, run)
	}
	return run, nil
}

// withInput returns a runner that reads in.
func withInput(run programs.Runner, in io.Reader) programs.Runner {
	return func(ctx context.Context, files programs.IO) int {
		files.In = in
		return run(ctx, files)
	}
}

// afterVerdict returns a runner that answers its first input with a verdict and the others as run does: a program that
// was compiled for the check is the one that runs.
func afterVerdict(v programs.Verdict, run programs.Runner) programs.Runner {
	checked := false
	return func(ctx context.Context, files programs.IO) int {
		if checked && run != nil {
			return run(ctx, files)
		}
		checked = true
		if err := json.NewEncoder(files.Out).Encode(v); err != nil {
			return jailStatus
		}
		return 0
	}
}
