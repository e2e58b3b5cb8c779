// Package namedfile reads files that users name. A pipe without a writer, a device without an end or a directory is an
// error that names it: the program neither waits forever nor takes all memory. The package knows nothing of the use of
// files.
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

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Timeouts of a pipe that is read as a whole.
const (
	writerWait = 10 * time.Second // until it has a writer: that of the shell's <(...) starts before us
	pipeWait   = time.Minute      // until its end: a person may have to unlock a secret first
)

// Read reads a file that may have to be read again: a regular file, or a link to one, of at most limit bytes, which are
// whole MiB.
func Read(path string, limit int64) ([]byte, error) {
	f, info, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path, info.Size(), limit)
}

// ReadSecret reads a file like [Read] that holds keys. It refuses one that everybody can use.
func ReadSecret(path string, limit int64) ([]byte, error) {
	f, info, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if mode := info.Mode().Perm(); mode&0o007 != 0 { // a group may be that of a container
		return nil, broken(path, fmt.Errorf("everybody can use it (mode %#o): take the permissions of others away with chmod o=", mode))
	}
	return readAll(f, path, info.Size(), limit)
}

// ReadOnce reads a file like [Read], or a pipe, such as that of the shell's <(...).
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
	defer context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })()
	data, err := readAll(f, path, 0, limit)
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return data, err
	case ctx.Err() != nil:
		return nil, broken(path, context.Cause(ctx))
	}
	return nil, broken(path, fmt.Errorf("it is a pipe whose end has not come within %s", pipeWait))
}

// Open opens a file to read as a stream, once and perhaps without an end: anything but a directory. It waits for the
// writer of a pipe until ctx is done.
func Open(ctx context.Context, path string) (*os.File, error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, broken(path, errors.New("it is a directory"))
	}
	if ctx.Err() != nil { // an open call that has only just begun cannot be woken
		return nil, broken(path, context.Cause(ctx))
	}
	type result struct {
		file *os.File
		err  error
	}
	opened := make(chan result)
	go func() { // it ends when the file is open, even after we have returned
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
		// A writer, for a moment, ends the wait of the open call.
		if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			w.Close()
		}
	}
	return nil, broken(path, context.Cause(ctx))
}

// OpenRegular opens a regular file, or a link to one. It does not open other files: the open itself can have effects.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, broken(path, irregular(info.Mode()))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have replaced it
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

// stat describes a file before it is opened.
func stat(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		e.Op = "open"
	}
	return info, err
}

// readAll reads a file that seems to have size bytes, if those are not too many.
func readAll(r io.Reader, path string, size, limit int64) (data []byte, err error) {
	if size <= limit {
		data, err = io.ReadAll(io.LimitReader(r, limit+1))
	}
	switch {
	case err != nil:
		return nil, err
	case max(size, int64(len(data))) > limit:
		return nil, broken(path, fmt.Errorf("it is longer than %s", texts.Bytes(limit)))
	}
	return data, nil
}

func broken(path string, err error) error { return &fs.PathError{Op: "reading", Path: path, Err: err} }

// irregular names the type of a file that is not regular.
func irregular(mode fs.FileMode) error {
	for _, kind := range []struct {
		bit  fs.FileMode
		name string
	}{{fs.ModeDir, "a directory"}, {fs.ModeNamedPipe, "a pipe"}, {fs.ModeSocket, "a socket"}, {fs.ModeDevice, "a device"}} {
		if mode&kind.bit != 0 {
			return fmt.Errorf("it is %s and no regular file", kind.name)
		}
	}
	return errors.New("it is not a regular file")
}
