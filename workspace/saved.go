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

// ready completes the change of a killed process, before a look at the files. The caller holds the lock.
func (h *History) ready(ctx context.Context) error {
	if !h.keeps() {
		return nil
	}
	return h.complete(ctx)
}

// version stores what the file at p will hold: data, or with appends what is there and data. The caller holds the lock.
func (h *History) version(ctx context.Context, p place, data *draft, appends bool) (*savedVersion, error) {
	if !h.keeps() {
		return nil, nil
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

// adds returns the size of the next version.
func (h *History) adds(p place, data *draft, appends bool) (n int64) {
	if !h.keeps() {
		return 0
	}
	if appends {
		n = p.old.Size()
	}
	return n + data.copySize()
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
