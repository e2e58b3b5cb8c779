//go:build linux

package worker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// An appletSpec tells a process which linked-in program it is. It is the first thing that comes on its standard input,
// behind its length: so a process can be started before anybody knows what for.
type appletSpec struct {
	Name   string
	Args   []string
	Memory uint64   // bytes of memory that it may take
	Inputs []string // names of the named inputs, which wait under the descriptors from firstInput on
	Keep   bool     // it runs for many items, which come in frames
}

// maxSpec bounds a spec: arguments have 64 KiB, which JSON can write with six bytes for each.
const maxSpec = 1 << 20

// encode returns what is to be written to the process.
func (s appletSpec) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err == nil && len(text) > maxSpec {
		err = fmt.Errorf("the arguments take %d bytes", len(text))
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), err
}

// readSpec reads no byte more than the spec has. io.EOF says that there was none.
func readSpec(r io.Reader) (s appletSpec, err error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return s, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxSpec {
		return s, fmt.Errorf("a spec of %d bytes: %w", n, errFrames)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
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

// appletMain is a jailed process that waits for its spec and then is the program that it names. Everything that comes
// from outside is read in the jail. args is the process id of the worker.
func appletMain(args []string, o Options) int {
	parent, err := strconv.Atoi(strings.Join(args, " "))
	if err != nil {
		return refuse(err)
	}
	if err := jail.Confine(parent); err != nil {
		return refuse(err)
	}
	spec, err := readSpec(os.Stdin)
	switch {
	case err == io.EOF:
		return 0 // nobody has needed it
	case err != nil:
		return refuse(err)
	}
	p, ok := find(spec.Name, o.Extra)
	if !ok || p.Applet == nil || spec.Keep && p.Ready == nil {
		return refuse(errNoApplet)
	}
	// The collector works harder before RLIMIT_DATA kills.
	debug.SetMemoryLimit(int64(spec.Memory / 4 * 3))
	if spec.Keep {
		return attendMain(p.Ready(spec.Args, spec.inputs()))
	}
	return p.Applet(context.Background(), spec.Args, programs.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Input: spec.inputs(),
	})
}
