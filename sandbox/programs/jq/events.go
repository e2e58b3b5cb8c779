package jq

import "slices"

// A streamer turns documents into jq's streaming form: [path, leaf] for every leaf, and [path] where an array or an
// object ends, path being that of its last element. It holds no more than the path.
type streamer struct {
	d      *decoder
	levels []level
}

// A level is an array or an object that has begun.
type level struct {
	object bool
	first  bool
	step   any // the index or the key of the current element
}

// next returns the next event, io.EOF after the last.
func (s *streamer) next() (any, error) {
	if s.d.failed != nil {
		return nil, s.d.failed
	}
	if len(s.levels) == 0 {
		if _, err := s.d.peek(); err != nil {
			return nil, err
		}
		return s.value()
	}
	more, err := s.advance()
	if err != nil {
		return nil, err
	}
	if more {
		return s.value()
	}
	path := s.path()
	ended := s.levels[len(s.levels)-1]
	s.levels = s.levels[:len(s.levels)-1]
	switch {
	case !ended.first:
		return []any{path}, nil
	case ended.object:
		return []any{path[:len(path)-1], map[string]any{}}, nil
	}
	return []any{path[:len(path)-1], []any{}}, nil
}

func (s *streamer) line() int { return s.d.line() }

// advance goes to the next element of the innermost level. more is false where the level has ended.
func (s *streamer) advance() (more bool, err error) {
	l := &s.levels[len(s.levels)-1]
	if l.object {
		var key string
		if key, more, err = s.d.key(l.first); more && err == nil {
			l.step = key
		}
	} else if more, err = s.d.element(l.first, ']'); more && err == nil && !l.first {
		l.step = l.step.(int) + 1
	}
	if more {
		l.first = false
	}
	return more, err
}

// value reads a leaf, or goes into an array or an object until there is something to tell.
func (s *streamer) value() (any, error) {
	c, err := s.d.inside()
	if err != nil {
		return nil, err
	}
	if c != '[' && c != '{' {
		v, err := s.d.value(len(s.levels))
		if err != nil {
			return nil, err
		}
		return []any{s.path(), v}, nil
	}
	if err := s.d.open(len(s.levels) + 1); err != nil {
		return nil, err
	}
	s.levels = append(s.levels, level{object: c == '{', first: true, step: 0})
	return s.next()
}

func (s *streamer) path() []any {
	path := make([]any, 0, len(s.levels))
	for _, l := range s.levels {
		path = append(path, l.step)
	}
	return slices.Clip(path)
}
