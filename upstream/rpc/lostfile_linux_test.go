package rpc_test

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

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// TestLineLosesFile: when the file with the first part of a message cannot be read, the connection is lost. The message is
// not reported as one that is too large, and its memory is given back.
func TestLineLosesFile(t *testing.T) {
	for name, mode := range map[string]int{
		"at the end":                    os.O_WRONLY,
		"when the disk is full, midway": os.O_RDONLY,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			in, server := io.Pipe()
			share := memory.New(64<<20).Share("results", 64<<20)
			line := rpc.NewLine(in, io.Discard, rpc.LineOptions{Close: in.Close})
			line.Prepare(share, 0)
			ended := make(chan error, 1)
			go func() {
				_, err := line.Next()
				in.Close()
				ended <- err
			}()
			_, _ = server.Write(bytes.Repeat([]byte("x"), 3<<20))
			replaceFiles(t, dir, mode)
			_, _ = server.Write(append(bytes.Repeat([]byte("x"), 1<<20), '\n'))
			err := <-ended
			_, long := errors.AsType[*rpc.Overlong](err)
			if _, full := errors.AsType[*memory.Full](err); err == nil || long || full {
				t.Errorf("got %v, want the error of the file", err)
			}
			if share.Used() != 0 {
				t.Errorf("%d bytes count", share.Used())
			}
		})
	}
}

// replaceFiles puts an empty file that opens in a mode in the place of each open file of a directory.
func replaceFiles(t *testing.T, dir string, mode int) {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, mode, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	links, _ := filepath.Glob("/proc/self/fd/*")
	found := false
	for _, link := range links {
		var fd int
		name, err := os.Readlink(link)
		if _, no := fmt.Sscanf(filepath.Base(link), "%d", &fd); err != nil || no != nil || !strings.HasPrefix(name, dir) {
			continue
		}
		found = true
		if err := unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatal("there is no file")
	}
}
