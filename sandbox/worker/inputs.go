//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// inputs are the named inputs that a worker keeps for its commands: for each set a directory with a file "@NAME" for
// each input. They stay until the run ends.
type inputs struct {
	mu   sync.Mutex
	sets map[uint32]*inputSet
	used int64 // bytes of all of them
}

// An inputSet is the inputs of one command.
type inputSet struct {
	dir  string
	kept []string // names of those that are complete
}

// inputName is what the gateway calls inputs. The worker makes a file of that name.
var inputName = lazy.Regexp(`\A[A-Za-z_][A-Za-z0-9_]{0,63}\z`)

// drop removes all inputs when nothing runs any more.
func (n *inputs) drop() {
	n.mu.Lock()
	sets := n.sets
	n.sets, n.used = nil, 0
	n.mu.Unlock()
	for _, s := range sets {
		_ = os.RemoveAll(s.dir) // what stays is removed with the directory that it is in
	}
}

// size returns the bytes of all inputs.
func (n *inputs) size() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used
}

// errDisk says that inputs take more than they may.
var errDisk = errors.New("the inputs take more than their limit")

// keep is the [wire.Keeper].
func (w *worker) keep(_ context.Context, s *wire.Stream, in wire.Input) wire.Outcome {
	n, err := w.store(s, in)
	if err == nil {
		return wire.Outcome{Usage: []wire.Usage{{In: n}}}
	}
	_ = s.StopReading() // a lost connection ends the worker
	f := &wire.Failure{Reason: wire.Refused, Detail: err.Error()}
	switch {
	case errors.Is(err, wire.ErrCancelled) || errors.Is(err, wire.ErrLost):
		f = &wire.Failure{Reason: wire.Cancelled}
	case errors.Is(err, errDisk) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		f = &wire.Failure{Reason: wire.DiskLimit}
	}
	return wire.Outcome{Failure: f}
}

// store writes an input to its file. What is not complete is removed.
func (w *worker) store(s *wire.Stream, in wire.Input) (n int64, err error) {
	if !inputName().MatchString(in.Name) {
		return 0, fmt.Errorf("%q is not the name of an input", in.Name)
	}
	dir, err := w.inputDir(in.Set)
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "@"+in.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return 0, fmt.Errorf("making the file of an input: %w", err)
	}
	buf := w.buffers.get()
	defer w.buffers.pool.Put(buf)
	// In steps of the buffer, which is what the limit is looked at for.
	n, err = io.CopyBuffer(onlyWriter{&limited{f, &w.inputs, in.Disk}}, onlyReader{s}, *buf)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	w.inputs.mu.Lock()
	defer w.inputs.mu.Unlock()
	if err != nil {
		w.inputs.used -= n
		return n, err
	}
	set := w.inputs.sets[in.Set]
	set.kept = append(set.kept, in.Name)
	return n, nil
}

// A limited file counts what is written against what all inputs may take.
type limited struct {
	file *os.File
	all  *inputs
	max  int64
}

func (l *limited) Write(p []byte) (int, error) {
	l.all.mu.Lock()
	over := l.all.used+int64(len(p)) > l.max
	if !over {
		l.all.used += int64(len(p))
	}
	l.all.mu.Unlock()
	if over {
		return 0, errDisk
	}
	n, err := l.file.Write(p)
	if n < len(p) {
		l.all.mu.Lock()
		l.all.used -= int64(len(p) - n)
		l.all.mu.Unlock()
	}
	return n, err
}

// inputDir returns the directory of a set, which is made for the first of its inputs.
func (w *worker) inputDir(set uint32) (string, error) {
	if dir := w.inputs.dir(set, ""); dir != "" {
		return dir, nil
	}
	made, err := w.scratch.make()
	if err != nil {
		return "", err
	}
	dir := w.inputs.dir(set, made)
	if dir != made { // another input of the set was faster
		_ = os.Remove(made) // it is empty
	}
	return dir, nil
}

// dir returns the directory of a set, which is made if there is none; that may be empty.
func (n *inputs) dir(set uint32, made string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s, ok := n.sets[set]; ok {
		return s.dir
	}
	if made == "" {
		return ""
	}
	if n.sets == nil {
		n.sets = map[uint32]*inputSet{}
	}
	n.sets[set] = &inputSet{dir: made}
	return made
}

// inputsOf returns the directory that holds the inputs of a command. It fails if one of them is not there.
func (w *worker) inputsOf(c wire.Command) (string, error) {
	if len(c.Inputs) == 0 {
		return "", nil
	}
	w.inputs.mu.Lock()
	defer w.inputs.mu.Unlock()
	s := w.inputs.sets[c.Set]
	for _, name := range c.Inputs {
		if s == nil || !slices.Contains(s.kept, name) {
			return "", fmt.Errorf("input @%s has not been kept", name)
		}
	}
	return s.dir, nil
}

// inputFiles returns the files of a command's inputs.
func inputFiles(dir string, c wire.Command) []string {
	var files []string
	for _, name := range c.Inputs {
		files = append(files, filepath.Join(dir, "@"+name))
	}
	return files
}
