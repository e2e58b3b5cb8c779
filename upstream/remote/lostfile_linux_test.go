package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// openFiles are the descriptors of the open files that are, or were, in a directory.
func openFiles(dir string) (found []int) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		var fd int
		name, err := os.Readlink(link)
		if _, no := fmt.Sscanf(filepath.Base(link), "%d", &fd); err == nil && no == nil && strings.HasPrefix(name, dir) {
			found = append(found, fd)
		}
	}
	return found
}

// A step is what a reader does between two parts of a stream.
type step func()

func (s step) Read([]byte) (int, error) {
	s()
	return 0, io.EOF
}

// TestLastEventLosesFile: an event that cannot be read back from its file at the end of the stream is an error of its
// own. A stream that has only ended would be taken up again.
func TestLastEventLosesFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	lose := func() {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		files := openFiles(dir)
		if len(files) != 1 {
			t.Fatalf("%d files are open", len(files))
		}
		if err := unix.Dup3(int(null.Fd()), files[0], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	in := io.MultiReader(strings.NewReader(`data: {"a":"`+strings.Repeat("x", 3<<20)+`"}`), step(lose))
	if _, err := newEvents(in, 4<<20, nil).next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the error of the file", err)
	}
}

// TestSkippedEventHasNoFile: while the rest of an event that is too long is read, which its sender can make last, nothing
// of it is kept on disk.
func TestSkippedEventHasNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	kept := func(want int) step {
		return func() {
			if n := len(openFiles(dir)); n != want {
				t.Errorf("%d files are open, want %d", n, want)
			}
		}
	}
	part := bytes.Repeat([]byte("x"), 2<<20)
	in := io.MultiReader(strings.NewReader("data: "), bytes.NewReader(part), kept(1), bytes.NewReader(part), kept(0), strings.NewReader("\n\n"))
	_, err := newEvents(in, 3<<20, nil).next()
	if long, ok := errors.AsType[*rpc.Overlong](err); !ok || len(long.Head) == 0 || long.Size < 4<<20 {
		t.Errorf("got %v", err)
	}
}
