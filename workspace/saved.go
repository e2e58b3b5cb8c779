package workspace

import (
	"context"
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

// version stores what the file at p will hold: data, or with appends what is there and data. The caller holds the lock.
func (h *History) version(ctx context.Context, p place, data *draft, appends bool) (*savedVersion, error) {
	if !h.keeps() {
		return nil, nil
	}
	if err := h.complete(); err != nil {
		return nil, err
	}
	v, err := h.current(ctx, p.rel, p.old)
	if err != nil {
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

// undo takes the version back: the file has not changed.
func (s *savedVersion) undo() error {
	if s == nil {
		return nil
	}
	return s.v.remove(s.n)
}

// commit makes it the version that is in place.
func (s *savedVersion) commit() error {
	if s == nil {
		return nil
	}
	return s.v.h.noted(s.v.rel, s.v.commit(s.n))
}
