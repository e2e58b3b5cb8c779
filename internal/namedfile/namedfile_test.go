package namedfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRead: links to regular files are followed, and what is at the limit is still read.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	file, link, dangling := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
	pipe, toPipe := fifo(t), filepath.Join(dir, "to a pipe")
	if err := errors.Join(os.WriteFile(file, make([]byte, 1<<20), 0o600), os.Symlink(file, link), os.Symlink(dir+"/none", dangling), os.Symlink(pipe, toPipe)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if data, err := Read(path, 1<<20); err != nil || len(data) != 1<<20 {
			t.Errorf("%s: got %d bytes, %v", path, len(data), err)
		}
	}
	if err := os.WriteFile(file, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file: "it is longer than 1 MiB", dangling: "no such file", dir: "it is a directory and no regular file",
		pipe: "it is a pipe and no regular file", toPipe: "it is a pipe and no regular file", "/dev/zero": "it is a device and no regular file",
	} {
		for name, read := range map[string]func(string) ([]byte, error){
			"Read":     func(path string) ([]byte, error) { return Read(path, 1<<20) },
			"ReadOnce": func(path string) ([]byte, error) { return ReadOnce(t.Context(), path, 1<<20) },
		} {
			if name == "ReadOnce" && strings.Contains(want, "pipe") {
				continue
			}
			if _, err := read(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s of %s: got %v, want %s", name, path, err, want)
			}
		}
	}
}

// TestPipe: a pipe is read to its end, and neither one without a writer nor one without an end outlasts its caller.
func TestPipe(t *testing.T) {
	path := fifo(t)
	type result struct {
		data []byte
		err  error
	}
	read := func(ctx context.Context) chan result {
		got := make(chan result, 1)
		go func() {
			data, err := ReadOnce(ctx, path, 1<<20)
			got <- result{data, err}
		}()
		return got
	}
	write := func() *os.File {
		w, err := os.OpenFile(path, os.O_WRONLY, 0) // returns when there is a reader
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	got, w := read(t.Context()), write()
	if _, err := w.WriteString("all of it"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if r := <-got; r.err != nil || string(r.data) != "all of it" {
		t.Errorf("got %q, %v", r.data, r.err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	got, w = read(ctx), write()
	cancel()
	if r := <-got; !errors.Is(r.err, context.Canceled) {
		t.Errorf("without an end: got %q, %v", r.data, r.err)
	}
	w.Close()

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if r := <-read(ctx); !errors.Is(r.err, context.DeadlineExceeded) {
		t.Errorf("without a writer: got %q, %v", r.data, r.err)
	}

	path = fifo(t) // nobody else still opens this one
	got, w = read(t.Context()), write()
	if _, err := w.Write(make([]byte, 2<<20)); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("nobody has stopped reading: %v", err)
	}
	w.Close()
	if r := <-got; r.err == nil || !strings.Contains(r.err.Error(), "it is longer than 1 MiB") {
		t.Errorf("too long: got %d bytes, %v", len(r.data), r.err)
	}
}

// TestOpenEnded: a cancelled caller opens nothing, because an open that has just begun cannot be woken.
func TestOpenEnded(t *testing.T) {
	path := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := runtime.NumGoroutine()
	for range 200 {
		if f, err := Open(ctx, path); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, %v", f, err)
		}
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines wait for a writer", now-before)
	}
}
