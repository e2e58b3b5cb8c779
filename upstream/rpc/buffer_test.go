package rpc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/memory"
)

// TestBuffer: a message comes out as it was added, whatever its length, its parts and the place for files are; it counts
// while it is collected, and afterwards with its own size; nothing is left on disk.
func TestBuffer(t *testing.T) {
	for _, test := range []struct {
		name string
		dir  func(t *testing.T) string
		full func(t *testing.T, b *Buffer) // after half of the message
	}{
		{"with a place for files", func(t *testing.T) string { return t.TempDir() }, nil},
		{"without", func(t *testing.T) string { return filepath.Join(t.TempDir(), "missing") }, nil},
		{"where the disk is full", func(t *testing.T) string { return t.TempDir() }, fillDisk},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := test.dir(t)
			t.Setenv("TMPDIR", dir)
			for _, size := range []int{0, 1, fileFrom - 1, fileFrom, fileFrom + 1, 5*fileFrom + 17} {
				share := memory.New(64<<20).Share("results", 64<<20)
				lease := share.Lease()
				want := make([]byte, size)
				for i := range want {
					want[i] = byte(rand.Uint32())
				}
				b := NewBuffer(lease)
				broken := test.full
				for rest := want; len(rest) > 0; {
					n := min(len(rest), 1+rand.IntN(100_000))
					if _, err := b.Write(rest[:n]); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
					if b.Len() != size-len(rest) || lease.Used() < int64(b.Len()) {
						t.Fatalf("%d bytes: %d were added, Len is %d and %d count", size, size-len(rest), b.Len(), lease.Used())
					}
					if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) > 0 {
						t.Fatalf("%d bytes: there is a file with a name: %q", size, names)
					}
					if !b.inMem && cap(b.mem) > fileFrom {
						t.Fatalf("%d bytes: %d take %d in memory, where a file begins after %d", size, len(b.mem), cap(b.mem), fileFrom)
					}
					if broken != nil && b.file != nil {
						broken(t, &b)
						broken = nil
					}
				}
				if head := b.Head(10); !bytes.Equal(head, want[:min(size, 10)]) {
					t.Errorf("%d bytes: begins with %q, want %q", size, head, want[:min(size, 10)])
				}
				got, err := b.Bytes()
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%d bytes: %d came out (%v), or others", size, len(got), err)
				}
				if lease.Used() != int64(cap(got)) || b.Counted() != lease.Used() {
					t.Errorf("%d bytes: %d count at the end, %d by the buffer's account, want %d", size, lease.Used(), b.Counted(), cap(got))
				}
				b.Close()
				lease.Close()
			}
		})
	}
}

// fillDisk makes the next write to the file of a buffer fail: it is opened again for reading only.
func fillDisk(t *testing.T, b *Buffer) {
	t.Helper()
	readOnly, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", b.file.Fd()))
	if err != nil {
		t.Skip("needs /proc")
	}
	b.file.Close()
	b.file = readOnly
}

// TestBufferFull: what finds no room in the memory of the process is not taken, in memory or in a file.
func TestBufferFull(t *testing.T) {
	share := memory.New(2*fileFrom).Share("results", 2*fileFrom)
	lease := share.Lease()
	defer lease.Close()
	b := NewBuffer(lease)
	defer b.Close()
	part := make([]byte, 64<<10)
	for range 2 * fileFrom / len(part) {
		before := b.Len()
		if _, err := b.Write(part); err != nil {
			if b.Len() != before || lease.Used() > share.Limit() {
				t.Errorf("after %v: %d bytes, %d before", err, b.Len(), before)
			}
			return
		}
	}
	t.Errorf("%d bytes were taken, where one gets %d", b.Len(), share.LeaseLimit())
}
