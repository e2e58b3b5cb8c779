package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// versions are the kept versions of one file: whole copies with growing numbers, which are never used again. The file
// holds the version head; those after it can be redone.
//
// Every change first stores the new version, then replaces the file, then sets the head, and only then removes versions.
// So a killed process leaves at most a version that was never in place.
type versions struct {
	h    *History
	rel  string // the file
	dir  string // of the versions
	head int    // 0: none
	list []int  // in their order
	next int    // the number of the next version
}

// openVersions reads what is kept of the file rel.
func (h *History) openVersions(rel string) (*versions, error) {
	v := &versions{h: h, rel: rel, dir: versionsOf(rel), next: 1}
	if err := h.d.unlinked(v.dir); err != nil {
		return nil, err
	}
	text, err := h.d.record(v.dir+"/"+headFile, 100)
	if err == nil {
		v.head, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil && KindOf(err) == IoError {
		return nil, Errorf(IoError, "look at "+v.dir, "the versions of %s cannot be read: %w", quote(rel), withoutPath(err))
	}
	entries, err := fs.ReadDir(h.d.root.FS(), v.dir)
	if err != nil && KindOf(classify(v.dir, err)) != NotFound {
		return nil, err
	}
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n < 1 {
			continue
		}
		v.next = max(v.next, n+1)
		if e.Type().IsRegular() && v.file(n) == v.dir+"/"+e.Name() {
			v.list = append(v.list, n)
		}
	}
	slices.Sort(v.list)
	if !slices.Contains(v.list, v.head) {
		v.head = 0
	}
	return v, nil
}

// headFile holds the number of the version that is in place.
const headFile = ".head"

func (v *versions) file(n int) string { return fmt.Sprintf("%s/%05d", v.dir, n) }

// openAndRecord opens the versions of a file, and makes its content a version if it is not the last known one: somebody else
// has changed it. info is nil if there is no file.
func (h *History) openAndRecord(ctx context.Context, rel string, info fs.FileInfo) (*versions, error) {
	v, err := h.openVersions(rel)
	if err != nil || info == nil {
		return v, err
	}
	f, err := h.d.open(rel)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if v.head > 0 {
		same, err := v.holds(ctx, f, v.head)
		if err != nil || same {
			return v, err
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	n, err := v.add(f)
	if err != nil {
		return nil, err
	}
	return v, v.commit(n)
}

// holds reports whether version n has the content of f.
func (v *versions) holds(ctx context.Context, f *os.File, n int) (bool, error) {
	kept, err := v.h.d.open(v.file(n))
	if err != nil {
		return false, err
	}
	defer kept.Close()
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	other, err := kept.Stat()
	if err != nil || mine.Size() != other.Size() {
		return false, err
	}
	return same(ctx, f, kept)
}

// same reports whether two readers give the same.
func same(ctx context.Context, one, other io.Reader) (bool, error) {
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return false, &inputError{context.Cause(ctx)}
		}
		n, err := io.ReadFull(one, a)
		m, err2 := io.ReadFull(other, b)
		if !bytes.Equal(a[:n], b[:m]) {
			return false, nil
		}
		for _, err := range []error{err, err2} {
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return false, err
			}
		}
		if err != nil {
			return true, nil
		}
	}
}

// add stores a new version and returns its number. It does not become the head.
func (v *versions) add(data io.Reader) (int, error) {
	if err := v.h.clear(v.dir, v.dir+"/"+headFile); err != nil {
		return 0, err
	}
	if err := v.h.makeRecords(v.dir); err != nil {
		return 0, err
	}
	n := v.next
	if err := v.h.d.store(v.file(n), data); err != nil {
		return 0, err
	}
	v.next++
	v.list = append(v.list, n)
	return n, nil
}

// remove removes a stored version.
func (v *versions) remove(n int) error {
	v.list = slices.DeleteFunc(v.list, func(m int) bool { return m == n })
	return v.h.d.root.Remove(v.file(n))
}

// commit makes the stored version n the one in place, and removes those that could have been redone and the oldest ones over
// the limits.
func (v *versions) commit(n int) error {
	previous := v.head
	if err := v.setHead(n); err != nil {
		return err
	}
	var gone []int
	count, total := 0, int64(0)
	for _, m := range slices.Backward(v.list) {
		if m < n && m > previous && previous > 0 {
			gone = append(gone, m)
			continue
		}
		info, err := v.h.d.root.Lstat(v.file(m))
		if err != nil {
			return err
		}
		count++
		total += info.Size()
		if o := v.h.o; m < n && (o.KeepVersions > 0 && count > o.KeepVersions || o.KeepBytes > 0 && total > o.KeepBytes) {
			gone = append(gone, m)
		}
	}
	for _, m := range gone {
		step("forget")
		if err := v.remove(m); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// setHead notes that the version n is in place.
func (v *versions) setHead(n int) error {
	if err := v.h.d.store(v.dir+"/"+headFile, strings.NewReader(strconv.Itoa(n)+"\n")); err != nil {
		return err
	}
	v.head = n
	return nil
}

// Undo puts the version in place that is n versions older than the one there, Redo a newer one.
func (h *History) Undo(ctx context.Context, name string, n int) (rel string, left int, err error) {
	return h.shift(ctx, name, -n)
}

// Redo puts the version in place that is n versions newer.
func (h *History) Redo(ctx context.Context, name string, n int) (rel string, left int, err error) {
	return h.shift(ctx, name, n)
}

// shift puts another version in place: the one that is by newer, or -by older if by is negative. left is how many more there are in
// that direction.
func (h *History) shift(ctx context.Context, name string, by int) (rel string, left int, err error) {
	err = h.locked(ctx, name, func() error {
		if rel, err = h.changeablePath(name); err != nil {
			return err
		}
		info, err := h.d.target(rel)
		if err != nil {
			return err
		}
		if info == nil {
			return Errorf(NotFound, "search_file says where it went", "%s does not exist", quote(rel))
		}
		v, err := h.openAndRecord(ctx, rel, info)
		if err != nil {
			return err
		}
		older := slices.Index(v.list, v.head)
		newer := len(v.list) - 1 - older
		switch {
		case by < -older:
			return Errorf(InvalidArgument, "", "%s can be undone %s", quote(rel), times(older))
		case by > newer:
			return Errorf(InvalidArgument, "a change after an undo leaves nothing to redo", "%s can be redone %s", quote(rel), times(newer))
		case by < 0:
			left = older + by
		default:
			left = newer - by
		}
		to := v.list[older+by]
		kept, err := h.d.open(v.file(to))
		if err != nil {
			return err
		}
		defer kept.Close()
		if err := h.put(rel, info, kept); err != nil {
			return err
		}
		return h.noted(rel, v.setHead(to))
	})
	return rel, left, err
}

func times(n int) string {
	switch n {
	case 0:
		return "no further"
	case 1:
		return "only once"
	}
	return fmt.Sprintf("only %d times", n)
}
