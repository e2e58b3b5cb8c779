package stages

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
)

// ErrNoTask is the cause of a call's error where the task that it waits for has ended without a result: the server has
// forgotten or cancelled it.
var ErrNoTask = errors.New("the task is gone")

// A Task is where a call keeps the task that its tool may answer with: work that the server goes on with after its answer.
type Task struct {
	// Handle is what an earlier call has kept. Then that task is waited for, and the tool is not called. Empty: it is called.
	Handle string

	// Keep keeps the handle of a task, before the server is asked for it. It is called once at most.
	Keep func(handle string)

	// Lasts says, when the wait ends before the task does, that the task is to go on, because it may be waited for again.
	// Otherwise it is cancelled.
	Lasts func() bool
}

// taskList has the tasks of calls that have no result yet: those of the run that is continued, and those of this run. An effect
// log has one; a task is written to that log before the server is first asked for it.
type taskList struct {
	mu    sync.Mutex
	byKey map[string][]*keptTask // guarded by mu
}

// A keptTask is a task in a list.
type keptTask struct {
	pastEffect
	own  bool // of this run
	busy bool // a call waits for it; guarded by the list's mu
}

// handle is that of the task; empty where there is none.
func (t *keptTask) handle() string {
	if t == nil {
		return ""
	}
	return t.Task
}

// stand removes the effects for which tasks of the list stand: a wait for a task makes no call.
func (l *taskList) stand(effects map[string][]pastEffect) {
	for key, tasks := range l.byKey {
		effects[key] = slices.DeleteFunc(effects[key], func(e pastEffect) bool {
			return slices.ContainsFunc(tasks, func(t *keptTask) bool { return t.Task == e.Of })
		})
		if len(effects[key]) == 0 {
			delete(effects, key)
		}
	}
}

// inheritTask takes a task over from the run that is continued. Another plan does not wait for it.
func (l *effectLog) inheritTask(e pastEffect, resumed *resumption) error {
	if resumed == nil {
		return nil
	}
	l.write(e)
	l.dropTask(e)
	if e.Over || e.Place.top() <= resumed.from {
		return nil
	}
	return l.addTask(&keptTask{pastEffect: e})
}

// addTask adds a task to the list, if the run may hold it in memory.
func (l *effectLog) addTask(t *keptTask) error {
	if err := l.r.hold(t.size()); err != nil {
		return err
	}
	l.tasks.add(t)
	return nil
}

// dropTask removes a task from the list, if it is there.
func (l *effectLog) dropTask(e pastEffect) {
	if l.tasks.remove(e) {
		l.r.release(e.size())
	}
}

// size is what an effect or a task takes in memory.
func (e *pastEffect) size() int64 {
	return int64(len(e.Key) + len(e.Task) + len(e.Result) + effectSize)
}

func (l *taskList) add(t *keptTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[string][]*keptTask{}
	}
	l.byKey[t.Key] = append(l.byKey[t.Key], t)
}

// remove removes the task of an item, and reports whether it was there. A server may answer equal calls with one task.
func (l *taskList) remove(e pastEffect) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.byKey[e.Key]
	i := slices.IndexFunc(all, func(t *keptTask) bool { return t.Task == e.Task && t.Each == e.Each && t.Item == e.Item })
	switch {
	case i < 0:
		return false
	case len(all) == 1:
		delete(l.byKey, e.Key)
	default:
		l.byKey[e.Key] = slices.Delete(all, i, i+1)
	}
	return true
}

// unfinished returns the task of an earlier call that is equal to one that is about to be made, and that nobody waits for; nil if
// there is none. The task of the same item comes first. One of another item is taken only if the run that is continued has
// started it: its items may have had other numbers.
func (l *effectLog) unfinished(ctx context.Context, c *caller, args json.RawMessage) *keptTask {
	if l == nil || l.tasks.none() {
		return nil
	}
	key := callEffect(c.info.Server, c.info.Name, args)
	each, item := itemOf(ctx).kept()
	l.tasks.mu.Lock()
	defer l.tasks.mu.Unlock()
	var found *keptTask
	for _, t := range l.tasks.byKey[key] {
		_, answered := l.r.logOf(t.Each).entry(t.Item) // the result of that item is kept
		switch same := t.Each == each && t.Item == item; {
		case answered && c.shared == nil || t.busy || t.Place != c.m.step.place || t.own && !same:
		case same:
			t.busy = true
			return t
		default:
			found = t
		}
	}
	if found != nil {
		found.busy = true
	}
	return found
}

func (l *taskList) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey) == 0
}

// keeping is where the call keeps its task.
func (s *sending) keeping() *Task {
	t := &Task{Keep: s.keep, Lasts: s.lasts}
	if s.task != nil {
		t.Handle = s.task.Task
	}
	return t
}

// keep keeps the task that the tool has answered with.
func (s *sending) keep(handle string) {
	log := s.r.effects
	if log != nil {
		s.task = &keptTask{own: true, busy: true, pastEffect: pastEffect{
			Key: callEffect(s.info.Server, s.info.Name, s.args), Place: s.m.step.place, Task: handle, Intent: s.intent,
		}}
		s.task.Each, s.task.Item = itemOf(s.stage).kept()
		_ = log.addTask(s.task) // without room only a continuation of the run finds it
		log.write(s.task.pastEffect)
	}
	s.hold.letGo()
}

// goOn permits to wait for the task of an earlier call, which counts as sent.
func (s *sending) goOn() bool {
	if s.hold == nil && s.stage.Err() != nil || !s.hold.send() {
		return false
	}
	s.sent = true
	s.hold.letGo()
	return true
}

// lasts reports whether the task goes on when the call does not wait for it any more: a continuation of the run waits for it.
// With the run's caller it ends. If another stage has failed or has read enough, the task of a tool that only reads ends as well.
func (s *sending) lasts() bool {
	if s.r.effects == nil || s.r.caller.Err() != nil {
		return false
	}
	cause := context.Cause(s.ctx)
	if s.r.timed.Err() != nil { // a stage that sees it first may have ended this one
		cause = context.Cause(s.r.timed)
	}
	return !s.info.ReadOnly || cause == nil || timeIsUp(cause)
}

// timeIsUp reports whether a context has ended with the time of the run or of a stage.
func timeIsUp(cause error) bool {
	e, timed := errors.AsType[*Error](cause)
	return cause == errTimeout || cause == context.DeadlineExceeded || timed && e.Code == Timeout
}

// goesOn are the codes of failures after which a task may still have a result.
var goesOn = map[Code]bool{Timeout: true, ServerUnavailable: true, Cancelled: true, LimitExceeded: true}

// endTask frees the task of a call that has ended. It stays in the list if its result is still to come, and in the log if there
// was one: the rest of its item may fail.
func (s *sending) endTask(failed *Error) {
	if s.task == nil {
		return
	}
	log, over := s.r.effects, failed != nil && !goesOn[failed.Code]
	if over || s.err == nil {
		log.dropTask(s.task.pastEffect)
	}
	if over {
		e := s.task.pastEffect
		e.Over = true
		log.write(e)
	}
	if failed != nil && failed.Code == Timeout && !over {
		failed.Hint = "continue the run: it waits for the task of the tool, and does not call it again"
	}
	log.tasks.free(s.task)
}

func (l *taskList) free(t *keptTask) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.busy = false
}
