package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/pausing"
	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/preview/shape"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/upstream/toollist"
)

const (
	sampleSize   = 128 << 10 // bytes of a result
	sampleQueue  = 32        // samples that wait; more are skipped
	firstSamples = 8         // results of a tool that are all sampled; later ones ever more rarely
	laterSamples = 64        // at least one of so many is sampled
	shapeDelay   = 2 * time.Second
)

// A sampler bounds the learning of shapes from results, which happens in the background, one after another.
type sampler struct {
	waiting chan struct{} // one for each sample
	busy    *sync.Mutex
	known   func(word string) bool
}

func newSampler() sampler {
	return sampler{make(chan struct{}, sampleQueue), new(sync.Mutex), shape.Common()}
}

// sample takes a sample of a tool's result, if that can be of use. It never delays a call: samples are skipped while many
// wait.
func (s *shapes) sample(t *toollist.Tool, r stages.Result) {
	if t.Declared().Known() || !s.wants(t) {
		return
	}
	l := s.conn.pool.samples
	select {
	case l.waiting <- struct{}{}:
	default:
		return
	}
	size := min(len(r.Data), sampleSize)
	data := bytes.Clone(r.Data[:size])
	s.conn.pool.goroutines.run(func() {
		l.busy.Lock()
		defer l.busy.Unlock()
		defer func() { <-l.waiting }()
		// Text counts as JSON only if it is one object or array.
		learned, err := preview.ResultShape(data, size < len(r.Data), r.Kind == stages.ToolText, t.Vocabulary(l.known))
		if err == nil && s.add(t, learned) {
			s.saveSoon()
		}
	})
}

// saveSoon writes the shapes to disk, soon.
func (s *shapes) saveSoon() {
	s.mu.Lock()
	waits := s.saving
	s.saving = true
	s.mu.Unlock()
	if waits {
		return
	}
	s.conn.pool.goroutines.run(func() {
		_ = pausing.For(s.conn.pool.life, shapeDelay) // at the end they are saved at once
		s.save()
	})
}

// shapes are the shapes of the results of one server's tools.
type shapes struct {
	conn *serverConn
	read func() state.Shapes // from disk, once

	mu     sync.Mutex // guards the fields below
	tools  map[string]*toolShape
	others state.Shapes // of the gateways that share shapes, when they were last read
	saving bool         // it waits to be written
	err    error        // of the last writing

	lookOnce sync.Once
}

// toolShape is the shape of one tool's results, valid as long as its schema stays.
type toolShape struct {
	schema string
	result *shape.Result
	seen   int  // results, sampled or not
	probed bool // called once for the shape of its result
}

func newShapes(sc *serverConn, dir *state.Dir) *shapes {
	s := &shapes{conn: sc, tools: map[string]*toolShape{}, read: func() state.Shapes { return nil }}
	if dir != nil {
		s.read = sync.OnceValue(func() state.Shapes { return dir.Shapes(sc.key()) })
	}
	return s
}

// use calls f with the entry of a tool.
func (s *shapes) use(t *toollist.Tool, f func(k *toolShape)) {
	saved := s.read()
	s.lookOnce.Do(s.look)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.tools[t.Name]
	if k == nil || k.schema != t.Schema {
		k = &toolShape{schema: t.Schema}
		if l, ok := saved[t.Name]; ok && l.Schema == t.Schema {
			k.result = l.Result
		}
		s.tools[t.Name] = k
	}
	if l, ok := s.others[t.Name]; ok && l.Schema == t.Schema && !k.result.Known() {
		k.result = l.Result.Writable(t.Vocabulary(s.conn.pool.samples.known))
	}
	f(k)
}

// look reads what other gateways have learned, in the background: nobody waits for the store.
func (s *shapes) look() {
	shared := s.conn.pool.options.Shapes
	if shared == nil {
		return
	}
	s.conn.pool.goroutines.start(func() {
		others, err := shared.Shapes(s.conn.life, s.conn.key())
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && s.others == nil { // else the next save reads them
			s.others = others
		}
	})
}

// prune forgets the tools that are not in a list: a server may list others each time.
func (s *shapes) prune(list *toollist.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, k := range s.tools {
		if t := list.ByName[name]; t == nil || t.Schema != k.schema {
			delete(s.tools, name)
		}
	}
}

// wants counts a result of a tool, and reports whether it is to be sampled.
func (s *shapes) wants(t *toollist.Tool) (wanted bool) {
	s.use(t, func(k *toolShape) {
		k.seen++
		wanted = k.seen <= firstSamples || k.seen&(k.seen-1) == 0 || k.seen%laterSamples == 0
	})
	return wanted
}

// add merges the shape of one result, and reports whether that says more than before.
func (s *shapes) add(t *toollist.Tool, r *shape.Result) (more bool) {
	s.use(t, func(k *toolShape) {
		before := k.result
		k.result = shape.MergeResults(before, r)
		more = !shape.Same(before, k.result)
	})
	return more
}

// result is the shape of a tool's results, or nil.
func (s *shapes) result(t *toollist.Tool) (r *shape.Result) {
	if r = t.Declared(); !r.Known() {
		s.use(t, func(k *toolShape) { r = k.result })
	}
	return r
}

// save writes the shapes to disk. The listing reports an error.
func (s *shapes) save() {
	all, common := state.Shapes{}, s.conn.pool.samples.known
	s.mu.Lock()
	s.saving = false
	for name, k := range s.tools {
		if k.result.Known() {
			all[name] = state.ToolShape{Schema: k.schema, Result: k.result}
		}
	}
	s.mu.Unlock()
	dir, shared := s.conn.pool.options.State, s.conn.pool.options.Shapes
	keep := func(name, schema string) bool {
		t := s.conn.tools.known(name)
		return t != nil && t.Schema == schema
	}
	known := func(name string) func(string) bool {
		if t := s.conn.tools.known(name); t != nil {
			return t.Vocabulary(common)
		}
		return common
	}
	var err error
	var others state.Shapes
	if dir != nil {
		err = dir.SaveShapes(s.conn.key(), all, keep, known)
	}
	if shared != nil {
		var failed error
		if others, failed = shared.SaveShapes(context.WithoutCancel(s.conn.life), s.conn.key(), all, keep, known); err == nil { // at the end, too
			err = failed
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; others != nil {
		s.others = others
	}
}

// note says why shapes are not saved, if that is so.
func (s *shapes) note() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return notSaved("the shapes of its results are not saved", s.err)
}

// notSaved says why something is not saved; it is empty if err is nil.
func notSaved(what string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%s: %v", what, rootOf(err))
}

// rootOf is the innermost cause of an error: the layers above name files of the host.
func rootOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// maxProbes is how many tools of one list are probed.
const maxProbes = 50

// probe calls, in the background and one after another, each tool of a list that only reads, needs no argument, has no known
// shape and is no task, if the operator asks for that. A tool that fails is probed again only after its schema has changed.
func (sc *serverConn) probe(list *toollist.List) {
	if !sc.server.Probe || !sc.isFirst() {
		return
	}
	sc.pool.goroutines.start(func() {
		left := maxProbes
		for _, t := range list.Tools {
			d := t.Details(sc.life)
			if !t.ReadOnly || t.Refusal() != "" || t.AsTask || d.Denied != "" || len(d.Tool.Input.Required) > 0 || left == 0 || sc.life.Err() != nil {
				continue
			}
			if !sc.shapes.probeOnce(t) {
				continue
			}
			left--
			// Nobody asked for the call, so nobody needs its error, or waits long for its task.
			_, _ = sc.callTool(sc.life, t, stages.Call{
				Server: sc.server.Name, Name: t.Name, Args: json.RawMessage("{}"), Reading: true, Timeout: sc.pool.options.CallTimeout, Limited: true,
			})
		}
	})
}

// probeOnce reports whether a tool is to be probed: its shape is unknown, and it was not tried before.
func (s *shapes) probeOnce(t *toollist.Tool) (first bool) {
	if s.result(t).Known() {
		return false
	}
	s.use(t, func(k *toolShape) { first, k.probed = !k.probed, true })
	return first
}
