//go:build linux

package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

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
	Files  int      // how many files, under the descriptors behind those, it reads in place of its standard input
	Keep   bool     // its inputs come one after another, as items in frames
}

// maxSpec bounds a spec: arguments have 64 KiB.
const maxSpec = 1 << 20

// encode returns what is to be written to the process. It is no JSON, since every applet would first have to learn how
// that is read.
func (s appletSpec) encode() ([]byte, error) {
	keep := uint64(0)
	if s.Keep {
		keep = 1
	}
	text := binary.AppendUvarint(binary.AppendUvarint(binary.AppendUvarint(nil, s.Memory), keep), uint64(s.Files))
	for _, list := range [][]string{{s.Name}, s.Args, s.Inputs} {
		text = binary.AppendUvarint(text, uint64(len(list)))
		for _, word := range list {
			text = append(binary.AppendUvarint(text, uint64(len(word))), word...)
		}
	}
	if len(text) > maxSpec {
		return nil, fmt.Errorf("the arguments take %d bytes", len(text))
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...), nil
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
		return s, fmt.Errorf("a spec that is cut short: %w", errFrames)
	}
	t := specText{text: text}
	s.Memory, s.Keep = t.number(), t.number() == 1
	files := t.number()
	name := t.words()
	s.Args, s.Inputs = t.words(), t.words()
	if t.short || files > maxSpec || len(t.text) > 0 || len(name) != 1 {
		return appletSpec{}, fmt.Errorf("a spec that is cut short: %w", errFrames)
	}
	s.Name, s.Files = name[0], int(files)
	return s, nil
}

// A specText is what is left of a spec.
type specText struct {
	text  []byte
	short bool // it ended too early
}

func (t *specText) number() uint64 {
	v, n := binary.Uvarint(t.text)
	if n <= 0 {
		t.text, t.short = nil, true
		return 0
	}
	t.text = t.text[n:]
	return v
}

func (t *specText) words() []string {
	var list []string
	for n := t.number(); n > 0 && !t.short; n-- {
		size := t.number()
		if t.short = t.short || size > uint64(len(t.text)); t.short {
			return nil
		}
		list = append(list, string(t.text[:size]))
		t.text = t.text[size:]
	}
	return list
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

// in returns what the program reads: its files, one after the other, or its standard input.
func (s appletSpec) in() io.Reader {
	if s.Files == 0 {
		return os.Stdin
	}
	var all []io.Reader
	for i := range s.Files {
		all = append(all, os.NewFile(uintptr(firstInput+len(s.Inputs)+i), "file"))
	}
	return io.MultiReader(all...)
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
	time.AfterFunc(whileOfOne, func() { runtime.GOMAXPROCS(appletThreads) })
	// The collector works harder before RLIMIT_DATA kills.
	debug.SetMemoryLimit(int64(spec.Memory / 4 * 3))
	if spec.Keep {
		return attendMain(spec, o)
	}
	return p.Applet(context.Background(), spec.Args, programs.IO{
		In: spec.in(), Out: os.Stdout, Err: os.Stderr, Input: spec.inputs(),
	})
}

// ready returns the program of a spec that is to be kept.
func (o Options) ready(s appletSpec) (programs.Runner, error) {
	p, ok := find(s.Name, o.Extra)
	if !ok || p.Ready == nil {
		return nil, errNoApplet
	}
	return p.Ready(s.Args, s.inputs()), nil
}
