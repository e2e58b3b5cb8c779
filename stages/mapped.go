package stages

import (
	"cmp"
	"context"
)

// ahead is how many items may be on their way through a [MapFilter].
const ahead = 256

// mapped is a link whose filter takes many items.
type mapped struct {
	link   *link
	filter MapFilter
}

// bindEach binds the stages of a for_each: as a filter of one item, and of many if there is one.
func (r *Run) bindEach(ctx context.Context, body []*Step) (Filter, *mapped, []*Meter, error) {
	links, meters, err := r.links(ctx, body, false)
	if err != nil {
		return nil, nil, nil, err
	}
	many, err := r.mapper(ctx, links)
	return chain(r, links), many, meters, err
}

// mapper returns how the links of a for_each are run on many items: where they are one command that reads nothing but its
// item, and the session knows how. Else it returns nil.
func (r *Run) mapper(ctx context.Context, links []*link) (*mapped, error) {
	if len(links) != 1 || len(links[0].steps) != 1 {
		return nil, nil
	}
	l := links[0]
	if s := l.steps[0]; s.Command == nil || len(s.Nested) > 0 || s.Effect == Changes {
		return nil, nil
	}
	session, err := r.commands(ctx)
	if err != nil {
		return nil, err
	}
	m, ok := session.(Mapper)
	if !ok {
		return nil, nil
	}
	c := *l.steps[0].Command
	c.Each, c.Hasty = true, stopEarly(l.onward[1:])
	filter, err := m.Map(c, func(_ int, u Usage) { l.meters[0].add(u) })
	if filter == nil || err != nil {
		return nil, err
	}
	return &mapped{l, filter}, nil
}

// mapped returns how items are given to the filter that takes many, and what ends it.
func (q *queue) mapped(ctx context.Context) (hand func(*slot), end func()) {
	jobs := make(chan Job, q.room)
	q.running.Go(func() {
		if err := q.many.run(ctx, jobs, q.e.concurrency); err != nil {
			q.fail(err)
		}
	})
	over := func(s *slot, err error) {
		if err == ErrUntried {
			q.untry(ctx, s)
			return
		}
		failed, err := q.over(ctx, s, err)
		q.leave(s, failed, err)
	}
	return func(s *slot) {
		if known, err := q.known(s); known || err != nil {
			q.leave(s, false, err)
			return
		}
		jobs <- &job{slot: s, in: q.e.input(s), over: over}
	}, func() { close(jobs) }
}

// untry takes leave of an item that was given to the filter of many and not begun there.
func (q *queue) untry(ctx context.Context, s *slot) {
	q.mu.Lock()
	q.untried++
	q.mu.Unlock()
	q.e.m.items.Add(-1)
	q.leave(s, false, cmp.Or(context.Cause(ctx), errBroken))
}

// over is what end is for an item that was given to the filter of many, with how it has ended there.
func (q *queue) over(ctx context.Context, s *slot, how error) (failed bool, err error) {
	defer recovered(&err)
	return q.conclude(ctx, s, &trial{attempts: 1}, q.many.explain(ctx, how))
}

// run runs jobs. An error says that not all of them have ended.
func (m *mapped) run(ctx context.Context, jobs <-chan Job, atOnce int) (err error) {
	defer recovered(&err)
	m.filter(ctx, jobs, atOnce)
	return nil
}

// explain is that of the link, whose end with an error is noted.
func (m *mapped) explain(ctx context.Context, err error) error {
	if err != nil {
		m.link.meters[0].broke.Store(true)
	}
	return m.link.explain(ctx, err)
}

// A job is an item on its way through a filter that takes many. It implements [Job].
type job struct {
	slot *slot
	in   []byte
	over func(*slot, error)
}

func (j *job) Input() []byte               { return j.in }
func (j *job) Write(p []byte) (int, error) { return j.slot.out.Write(p) }
func (j *job) Forget()                     { j.slot.out.release() }
func (j *job) End(err error)               { j.over(j.slot, err) }
