package workspace

import (
	"context"
	"errors"
	"io"
	"strings"
)

// A savedVersion is what a save adds to the history of its file, stored before the file changes. Nil adds nothing.
type savedVersion struct {
	v *versions
	n int
}

// keeps reports whether h keeps versions. It may be nil.
func (h *History) keeps() bool { return h != nil && h.o.Versions }

// completePending completes the change of a killed process, before a look at the files. The caller holds the lock.
func (h *History) completePending(ctx context.Context) error {
	if !h.keeps() {
		return nil
	}
	return h.complete(ctx)
}

// repeats reports whether a save would make a version with the same text.
func (h *History) repeats(ctx context.Context, p place, data *draft, appends bool) (bool, error) {
	switch {
	case !h.keeps():
		return false, nil
	case appends:
		return data.copySize() == 0, nil
	}
	return h.d.holds(ctx, p.rel, p.old, io.NewSectionReader(data.file, 0, data.size), data.size)
}

// storeVersion stores what the file at p will hold: data, or with appends what is there and data. The caller holds the lock.
func (h *History) storeVersion(ctx context.Context, p place, data *draft, appends bool) (*savedVersion, error) {
	if !h.keeps() {
		return nil, nil
	}
	v, err := h.openAndRecord(ctx, p.rel, p.old)
	if err != nil || p.same {
		return nil, err
	}
	content := io.Reader(io.NewSectionReader(data.file, 0, data.size))
	if appends {
		old, err := h.d.open(p.rel)
		if err != nil {
			return nil, err
		}
		defer old.Close()
		content = io.MultiReader(old, strings.NewReader(data.separator), content)
	}
	n, err := v.add(content)
	return &savedVersion{v, n}, err
}

// versionBytes returns the size of the versions that a save stores: that of what the file will hold and, if somebody else has changed
// the file, that of what it holds.
func (h *History) versionBytes(ctx context.Context, p place, data *draft, appends bool) (n int64, err error) {
	if !h.keeps() {
		return 0, nil
	}
	if !p.same {
		n = data.copySize()
	}
	if p.old == nil {
		return n, nil
	}
	if appends && !p.same {
		n += p.old.Size()
	}
	known, err := h.knows(ctx, p.rel)
	if !known {
		n += p.old.Size()
	}
	return n, err
}

// knows reports whether the version in place is what the file rel holds.
func (h *History) knows(ctx context.Context, rel string) (bool, error) {
	v, err := h.openVersions(rel)
	if err != nil || v.head == 0 {
		return false, err
	}
	f, err := h.d.open(rel)
	if err != nil {
		return false, err
	}
	defer f.Close()
	return v.holds(ctx, f, v.head)
}

// end makes it the version that is in place, or takes it back where the file has not changed because of err.
func (s *savedVersion) end(err error) error {
	switch {
	case s == nil:
		return err
	case err != nil:
		return errors.Join(err, s.v.remove(s.n))
	}
	return s.v.h.noted(s.v.rel, s.v.commit(s.n))
}
