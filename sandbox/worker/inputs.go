//go:build linux

package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// inputs are the named inputs that a worker keeps for its commands until the run ends. Each set has a directory with a file
// "@NAME" for each input that is complete.
type inputs struct {
	dir  string       // holds the directories of the sets
	used atomic.Int64 // bytes of all inputs
}

// inputName is what the gateway calls inputs. The worker makes a file of that name.
var inputName = lazy.Regexp(`\A[A-Za-z_][A-Za-z0-9_]{0,63}\z`)

func (n *inputs) setDir(set uint32) string {
	return filepath.Join(n.dir, strconv.FormatUint(uint64(set), 10))
}

// drop removes all inputs when nothing runs any more.
func (n *inputs) drop() {
	_ = os.RemoveAll(n.dir) // what stays is removed with the directory that it is in
	n.used.Store(0)
}

// errDisk says that inputs take more than they may.
var errDisk = errors.New("the inputs take more than their limit")

// keep keeps an input for commands of later runs.
func (w *worker) keep(s *wire.Stream, in wire.Input) wire.Outcome {
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

// store writes an input to its file, which gets its name when it is complete. An incomplete file is removed.
func (w *worker) store(s *wire.Stream, in wire.Input) (n int64, err error) {
	if !inputName().MatchString(in.Name) {
		return 0, fmt.Errorf("%q is not the name of an input", in.Name)
	}
	dir := w.inputs.setDir(in.Set)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("making the directory of an input: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, in.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return 0, fmt.Errorf("making the file of an input: %w", err)
	}
	buf := w.buffers.Get()
	defer w.buffers.Put(buf)
	// In steps of the buffer, which is what the limit is looked at for.
	n, err = io.CopyBuffer(onlyWriter{&limited{f, &w.inputs.used, in.Disk}}, onlyReader{s}, *buf)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, "@"+in.Name))
	}
	if err != nil {
		w.inputs.used.Add(-n)
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return n, err
}

// A limited file counts what is written against what all inputs may take.
type limited struct {
	file *os.File
	used *atomic.Int64
	max  int64
}

func (l *limited) Write(p []byte) (n int, err error) {
	if l.used.Add(int64(len(p))) > l.max {
		err = errDisk
	} else {
		n, err = l.file.Write(p)
	}
	l.used.Add(int64(n - len(p)))
	return n, err
}

// inputsOf returns the directory that holds the inputs of a command. It fails if one of them is not there.
func (w *worker) inputsOf(c wire.Command) (string, error) {
	if len(c.Inputs) == 0 {
		return "", nil
	}
	dir := w.inputs.setDir(c.Set)
	for i, file := range inputFiles(dir, c) {
		if _, err := os.Lstat(file); err != nil {
			return "", fmt.Errorf("input @%s has not been kept", c.Inputs[i])
		}
	}
	return dir, nil
}

// inputFiles returns the files of a command's inputs.
func inputFiles(dir string, c wire.Command) []string {
	var files []string
	for _, name := range c.Inputs {
		files = append(files, filepath.Join(dir, "@"+name))
	}
	return files
}
