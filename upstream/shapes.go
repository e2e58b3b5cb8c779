package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/preview/shape"
	"github.com/mcsh-dev/mcsh/upstream/state"
)

const (
	lessonSize   = 128 << 10 // bytes of a result that are looked at
	lessonQueue  = 32        // results that wait to be looked at; more are passed over
	firstLessons = 8         // results of a tool that are all looked at; of later ones, fewer and fewer
	laterLessons = 64        // one of so many, at least
	shapeDelay   = 2 * time.Second
)

// A learner looks at results, behind the calls that gave them, and keeps their shapes. It never keeps one from
// returning: what it has no time for is passed over.
type learner struct {
	life    context.Context
	tasks   *tasks
	dir     *state.Dir // nil: shapes are kept in memory only
	known   func(word string) bool
	lessons chan lesson
	once    sync.Once
}

// A lesson is the beginning of a result.
type lesson struct {
	unit *unit
	tool *tool
	data []byte
	cut  bool
}

func newLearner(life context.Context, tasks *tasks, dir *state.Dir) *learner {
	return &learner{life: life, tasks: tasks, dir: dir, known: shape.Common(), lessons: make(chan lesson, lessonQueue)}
}

// offer lets the result of a tool be looked at, if that may teach something.
func (l *learner) offer(u *unit, t *tool, data []byte) {
	if t.declared().Known() || !u.shapes.due(t) {
		return
	}
	l.once.Do(func() { l.tasks.start(l.work) })
	size := min(len(data), lessonSize)
	select {
	case l.lessons <- lesson{u, t, bytes.Clone(data[:size]), size < len(data)}:
	default:
	}
}

// work looks at results until the pool ends, and writes what it has learned now and then.
func (l *learner) work() {
	var save <-chan time.Time
	var learned []*unit
	for {
		select {
		case x := <-l.lessons:
			if l.learn(x) && !slices.Contains(learned, x.unit) {
				learned = append(learned, x.unit)
			}
			if save == nil && len(learned) > 0 {
				save = time.After(shapeDelay)
			}
		case <-save:
			l.save(learned)
			save, learned = nil, nil
		case <-l.life.Done():
			for {
				select {
				case x := <-l.lessons:
					if l.learn(x) {
						learned = append(learned, x.unit)
					}
					continue
				default:
				}
				l.save(learned)
				return
			}
		}
	}
}

// learn takes one lesson, and reports whether there was something new in it.
func (l *learner) learn(x lesson) bool {
	r, err := preview.ResultShape(x.data, x.cut, x.tool.vocabulary(l.known))
	return err == nil && x.unit.shapes.add(x.tool, r)
}

// save writes what is known of servers.
func (l *learner) save(units []*unit) {
	if l.dir == nil {
		return
	}
	for _, u := range units {
		u.shapes.save(l.dir, l.known)
	}
}

// shapes are what is known of the results of one server's tools.
type shapes struct {
	unit *unit
	read func() state.Shapes // from disk, once

	mu    sync.Mutex // guards what follows
	tools map[string]*taught
	err   error // of the last writing
}

// taught is what was learned of one tool, as long as its schema stays.
type taught struct {
	schema string
	result *shape.Result
	seen   int  // results, looked at or not
	probed bool // was called for the shape of its result
}

func newShapes(u *unit, dir *state.Dir) *shapes {
	s := &shapes{unit: u, tools: map[string]*taught{}, read: func() state.Shapes { return nil }}
	if dir != nil {
		s.read = sync.OnceValue(func() state.Shapes { return dir.Shapes(u.key()) })
	}
	return s
}

// of returns the entry of a tool. s.mu is held.
func (s *shapes) of(t *tool, saved state.Shapes) *taught {
	k := s.tools[t.name]
	if k == nil || k.schema != t.schema {
		k = &taught{schema: t.schema}
		if l, ok := saved[t.name]; ok && l.Schema == t.schema {
			k.result = l.Result
		}
		s.tools[t.name] = k
	}
	return k
}

// keepOnly forgets the tools that are not in a list: a server may have others each time it is asked.
func (s *shapes) keepOnly(list *toolList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, k := range s.tools {
		if t := list.byName[name]; t == nil || t.schema != k.schema {
			delete(s.tools, name)
		}
	}
}

// due counts a result of a tool, and reports whether it is to be looked at.
func (s *shapes) due(t *tool) bool {
	saved := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(t, saved)
	k.seen++
	return k.seen <= firstLessons || k.seen&(k.seen-1) == 0 || k.seen%laterLessons == 0
}

// add merges what one result taught, and reports whether that says more than before.
func (s *shapes) add(t *tool, r *shape.Result) bool {
	saved := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(t, saved)
	before := k.result
	k.result = shape.MergeResults(before, r)
	return !shape.Same(before, k.result)
}

// result is what is known of the results of a tool, or nil.
func (s *shapes) result(t *tool) *shape.Result {
	if r := t.declared(); r.Known() {
		return r
	}
	saved := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(t, saved).result
}

// save writes what is known, unless it cannot; the listing tells why.
func (s *shapes) save(dir *state.Dir, common func(string) bool) {
	all := state.Shapes{}
	s.mu.Lock()
	for name, k := range s.tools {
		if k.result.Known() {
			all[name] = state.Learned{Schema: k.schema, Result: k.result}
		}
	}
	s.mu.Unlock()
	keep := func(name, schema string) bool {
		t := s.unit.tools.known(name)
		return t != nil && t.schema == schema
	}
	known := func(name string) func(string) bool {
		if t := s.unit.tools.known(name); t != nil {
			return t.vocabulary(common)
		}
		return common
	}
	err := dir.SaveShapes(s.unit.key(), all, keep, known)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// note says why nothing is kept on disk, if that is so.
func (s *shapes) note() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return ""
	}
	return fmt.Sprintf("what its tools return is not kept: %v", rootOf(s.err))
}

// rootOf is the innermost cause of an error: the layers above name files that are nobody's business.
func rootOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
