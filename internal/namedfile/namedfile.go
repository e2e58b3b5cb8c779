// Package namedfile reads files that somebody names: a pipe without a writer, a device without an end or a directory is
// an error that says what it is, and not a program that waits for ever or takes all memory. It knows nothing of what the
// files are for.
package namedfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// What a pipe may take that is read as a whole.
const (
	writerWait = 10 * time.Second // until somebody writes to it: the shell's <(...) does before we run
	pipeWait   = time.Minute      // until its end: a person may have to unlock a secret first
)

// Read reads a file that may have to be read again: a regular one, or what a link to one leads to, of at most limit
// bytes, which are whole MiB.
func Read(path string, limit int64) ([]byte, error) {
	f, _, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path, limit)
}

// ReadOnce reads a file that is read once: what [Read] reads, and pipes, such as those of the shell's <(...).
func ReadOnce(ctx context.Context, path string, limit int64) ([]byte, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeNamedPipe == 0 {
		return Read(path, limit)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, writerWait, fmt.Errorf("it is a pipe that nobody has begun to write to for %s", writerWait))
	defer cancel()
	f, err := Open(waiting, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(pipeWait)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	data, err := readAll(f, path, limit)
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return data, err
	case ctx.Err() != nil:
		return nil, broken(path, context.Cause(ctx))
	}
	return nil, broken(path, fmt.Errorf("it is a pipe whose end has not come within %s", pipeWait))
}

// Open opens a file to be read as a stream, once and perhaps without an end: anything but a directory. A pipe waits for
// its writer until ctx ends.
func Open(ctx context.Context, path string) (*os.File, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, broken(path, errors.New("it is a directory"))
	}
	if ctx.Err() != nil { // an opening that has only just begun cannot be woken
		return nil, broken(path, context.Cause(ctx))
	}
	type result struct {
		file *os.File
		err  error
	}
	opened := make(chan result)
	go func() { // it ends when the file is open, whatever becomes of us
		f, err := os.Open(path)
		select {
		case opened <- result{f, err}:
		case <-ctx.Done():
			f.Close() // of none, if that failed
		}
	}()
	select {
	case r := <-opened:
		return r.file, r.err
	case <-ctx.Done():
	}
	if info.Mode()&fs.ModeNamedPipe != 0 {
		// A writer, for a moment, is what the opening waits for.
		if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
	}
	return nil, broken(path, context.Cause(ctx))
}

// OpenRegular opens a regular file, or what a link to one leads to. Nothing else is opened: that alone can have effects.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, broken(path, irregular(info.Mode()))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have taken its place
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = broken(path, irregular(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// stat looks at a file before it is opened; what goes wrong then would go wrong with that.
func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Op = "open"
	}
	return info, err
}

func readAll(r io.Reader, path string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, broken(path, fmt.Errorf("it is longer than %d MiB", limit>>20))
	}
	return data, nil
}

func broken(path string, err error) error { return &fs.PathError{Op: "reading", Path: path, Err: err} }

// irregular says what a file is that is not a regular one.
func irregular(mode fs.FileMode) error {
	for _, kind := range []struct {
		bit  fs.FileMode
		name string
	}{{fs.ModeDir, "a directory"}, {fs.ModeNamedPipe, "a pipe"}, {fs.ModeSocket, "a socket"}, {fs.ModeDevice, "a device"}} {
		if mode&kind.bit != 0 {
			return fmt.Errorf("it is %s and no regular file", kind.name)
		}
	}
	return errors.New("it is no regular file")
}
