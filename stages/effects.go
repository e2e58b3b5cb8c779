package stages

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// effectsName is the output of a run that lists its effects, one JSON object a line.
const effectsName = "effects"

// A pastEffect is a call that has changed something, or may have: all but those that were never sent and those that the tool
// said to have failed. Appending to a file is one too.
type pastEffect struct {
	Key     string `json:"key"`             // of what was called, with its final arguments
	Place   Place  `json:"place,omitempty"` // of the stage; empty where that belongs to another plan
	Each    Place  `json:"each,omitempty"`  // the for_each whose items the run keeps, and the item
	Item    int    `json:"item,omitempty"`
	Unknown bool   `json:"unknown,omitempty"` // there was no answer
	Kept    bool   `json:"kept,omitempty"`    // Result is what was answered, behind its description
	Result  []byte `json:"result,omitempty"`
	Run     string `json:"run,omitempty"` // that has made the call; empty: the one whose list this is

	Intent int  `json:"intent,omitempty"` // the number of the call in this list, where runs outlive the process
	Begun  bool `json:"begun,omitempty"`  // the call has not returned yet: a later line with its intent says what it came to

	Task string `json:"task,omitempty"` // it is no effect but a task that the tool has answered with, see [Task.Handle]
	Over bool   `json:"over,omitempty"` // the task has ended, and its result is of no use
	Of   string `json:"of,omitempty"`   // the task of an effect

	Fatal bool `json:"fatal,omitempty"` // it is no effect but an item that was under way at the end of its process, see [Run.cautious]

	List string `json:"list,omitempty"` // it is no effect but a run, a shard, whose effects are in this list, too
}

// effectLog keeps the effects of a run, and knows those of the runs from which it goes on. Its methods may be called
// concurrently; a nil log knows and keeps nothing.
type effectLog struct {
	r       *Run
	earlier map[string][]pastEffect // by key
	lists   map[string]Place        // the for_each of each shard of the run that is continued
	fatal   map[string]bool         // keys of items with which an earlier run has ended, see [Run.cautious]
	tasks   taskList
	unknown error // why effects of earlier runs are not known: then there may be no other

	mu      sync.Mutex // also while an effect is written
	out     io.Writer  // nil until the first; guarded by mu, as is everything below
	end     func(string)
	changed bool  // this run has changed something, or may have
	results int64 // bytes of results and tasks
	intents int   // the number of the last intent
}

// newEffectLog returns the log of a run of steps. The effects of the runs from which it goes on become its own, so that
// they are known to runs that go on from this one.
func newEffectLog(ctx context.Context, r *Run, steps []*Step, resumed *resumption) (*effectLog, error) {
	if r.record == nil {
		return nil, nil
	}
	l := &effectLog{r: r, earlier: map[string][]pastEffect{}}
	changes := changing(steps)
	if resumed != nil {
		err := l.inherit(ctx, resumed.id, resumed, changes)
		l.tasks.stand(l.earlier)
		return l, err
	}
	known := map[string]bool{}
	for s := range allSteps(steps) {
		if s.origin == nil || known[s.origin.id] {
			continue
		}
		known[s.origin.id] = true
		if err := l.inherit(ctx, s.origin.id, nil, changes); err != nil {
			return l, err
		}
	}
	return l, nil
}

// inherit reads the effects of a run, or of the last of those that continue it: that one has the effects of all before.
// Where the plan is another, the places of stages and items mean nothing any more.
func (l *effectLog) inherit(ctx context.Context, run string, resumed *resumption, changes bool) error {
	last := run
	if resumed == nil {
		var err error
		if last, err = lastOf(ctx, l.r.deps.Runs, run); err != nil {
			l.lose(err)
			return nil
		}
	}
	data, incomplete, release := l.r.deps.Runs.Open(last, effectsName)
	defer release()
	if incomplete != "" {
		l.lose(fmt.Errorf("the list of run %s is incomplete: %s", last, incomplete))
	}
	if data == nil {
		// The run is looked up after its list: if it is still kept, it was kept then, and has no effects.
		if _, err := keptRun(l.r.deps.Runs, last); err != nil && incomplete == "" {
			l.lose(err)
		}
		return nil
	}
	begun := map[int]pastEffect{} // by intent
	for lines := json.NewDecoder(data); ; {
		var e pastEffect
		// Of a gateway that has died the last line may be cut: it had not yet made the call, or a line before says that it had begun.
		if err := lines.Decode(&e); err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		} else if err != nil {
			return unreadable(err)
		}
		e.Run = cmp.Or(e.Run, last)
		if e.Begun {
			begun[e.Intent] = e
			continue
		}
		delete(begun, e.Intent)
		if err := l.take(ctx, e, resumed, changes); err != nil {
			return err
		}
	}
	for _, intent := range slices.Sorted(maps.Keys(begun)) { // of a gateway that has died
		e := begun[intent]
		e.Unknown = true
		if err := l.take(ctx, e, resumed, changes); err != nil {
			return err
		}
	}
	return nil
}

// take makes an effect of an earlier run, its task, or the effects of its shard, some of this log. The shards of a run that is continued
// are continued themselves. Where no later stage changes anything, the log only passes them on.
func (l *effectLog) take(ctx context.Context, e pastEffect, resumed *resumption, changes bool) error {
	e.Intent, e.Begun = 0, false
	switch {
	case e.List != "" && resumed == nil && changes && l.unknown == nil:
		return l.inherit(ctx, e.List, nil, changes)
	case e.List != "" && resumed == nil:
		l.write(pastEffect{List: e.List})
		return nil
	case e.List != "":
		l.write(pastEffect{List: e.List, Each: e.Each})
		if l.lists == nil {
			l.lists = map[string]Place{}
		}
		l.lists[e.List] = e.Each
		return l.r.hold(e.size())
	case e.Key == "": // it has changed nothing
		return nil
	case e.Fatal && resumed != nil:
		if l.fatal == nil {
			l.fatal = map[string]bool{}
		}
		l.fatal[e.Key] = true
		l.write(e)
		return nil
	case e.Fatal:
		return nil
	case e.Task != "":
		return l.inheritTask(e, resumed)
	case resumed == nil:
		e = pastEffect{Run: e.Run, Key: e.Key, Unknown: e.Unknown}
	}
	l.write(e)
	if !changes || resumed != nil && e.Place != "" && e.Place.top() <= resumed.from {
		return nil // nothing can repeat it
	}
	if err := l.r.hold(e.size()); err != nil {
		return err
	}
	l.earlier[e.Key] = append(l.earlier[e.Key], e)
	return nil
}

// lose notes why effects of earlier runs are not known, for the runs that go on from this one as well.
func (l *effectLog) lose(why error) {
	l.unknown = why
	l.mu.Lock()
	defer l.mu.Unlock()
	l.create()
	l.end(why.Error())
}

// lastOf returns the last of the runs that continue a run one after another.
func lastOf(ctx context.Context, runs Runs, run string) (string, error) {
	if _, err := findRun(ctx, runs, run); err != nil {
		return "", err
	}
	for {
		holder, _, err := runs.Claim(ctx, run, "")
		switch {
		case err != nil:
			return "", err
		case holder == "":
			return run, nil
		case holder == run:
			return "", fmt.Errorf("run %s is still running", run)
		}
		if _, err := findRun(ctx, runs, holder); err != nil {
			return "", fmt.Errorf("run %s, which continued run %s, is not kept any more", holder, run)
		}
		run = holder
	}
}

// effectSize is what an effect takes in memory beside its key and its result.
const effectSize = 256

// hasEarlier reports whether there may be effects of earlier runs that this one must not repeat.
func (l *effectLog) hasEarlier() bool { return l != nil && (len(l.earlier) > 0 || l.unknown != nil) }

// notes reports whether an effect is noted before it is caused.
func (l *effectLog) notes() bool { return l != nil && l.r.deps.Runs.Outlive() }

// find returns the effect of an earlier run that a call would repeat. One of an item that is answered from what is kept
// is not repeated by that of another item.
func (l *effectLog) find(key string, at Place) (found pastEffect, ok bool) {
	for _, e := range l.earlier[key] {
		if _, answered := l.r.logOf(e.Each).entry(e.Item); answered && !e.Kept {
			continue
		}
		found, ok = e, true
		if e.Kept && e.Place == at {
			break
		}
	}
	return found, ok
}

// answer returns what the call of a stage came to in an earlier run that this one continues, or refuses to make it again.
func (l *effectLog) answer(key, name string, at Place, each bool) (result []byte, known bool, err error) {
	if l == nil {
		return nil, false, nil
	}
	if l.unknown != nil {
		return nil, false, ofRun(Errorf(Denied, "find out what was changed (with a tool that reads), and do the rest in a pipeline without from",
			"it is not known which calls were made before (%w), and %s could repeat one", l.unknown, name))
	}
	e, ok := l.find(key, at)
	switch {
	case !ok:
		return nil, false, nil
	case e.Kept && e.Place == at:
		return e.Result, true, nil
	}
	return nil, false, e.refusal(name, each)
}

// refusal refuses to repeat an effect.
func (e pastEffect) refusal(name string, each bool) *Error {
	what, hint := "; it is not called again", ""
	if e.Unknown {
		what = ", and there was no answer, so it may have taken effect" + what
		hint = "find out (with a tool that reads) whether it did; then "
	}
	if each {
		hint += `leave the item out, or skip it with "on_error": "skip"`
	} else {
		hint += "run only the stages that are left"
	}
	err := Errorf(Denied, hint+"; to call it again on purpose, do it in a pipeline without from",
		"run %s has called %s with the same arguments%s", e.Run, name, what)
	err.repeats = true
	return err
}

// begin notes a call that may change something before it is made, where runs outlive the process: a continuation of the run
// after the end of the process must know of it. Without the note the call must not be made. An effect without a key is not noted.
func (l *effectLog) begin(ctx context.Context, e pastEffect) (intent int, err error) {
	if !l.notes() || e.Key == "" {
		return 0, nil
	}
	e.Each, e.Item = itemOf(ctx).kept()
	l.mu.Lock()
	l.intents++
	e.Intent, e.Begun = l.intents, true
	l.mu.Unlock()
	l.write(e)
	if err := l.r.deps.Runs.Flush(ctx, l.r.record.id); err != nil {
		l.unmade(e.Intent)
		return 0, ofRun(&Error{
			Code: ServerUnavailable, Err: storeFailure{err}, Hint: "try again later",
			Msg: "the call was not made, because it cannot be noted for runs that continue this one, in the store that gateways share",
		})
	}
	return e.Intent, nil
}

// unmade notes that a call has changed nothing.
func (l *effectLog) unmade(intent int) {
	if intent > 0 {
		l.write(pastEffect{Intent: intent})
	}
}

// add keeps an effect of this run, for the item that ctx belongs to.
func (l *effectLog) add(ctx context.Context, e pastEffect) {
	if l == nil {
		return
	}
	e.Each, e.Item = itemOf(ctx).kept()
	l.setChanged()
	l.write(e)
}

// lacksShard reports whether the run that is continued had a shard of a for_each that is not among the known ones.
func (l *effectLog) lacksShard(each Place, known map[int]shardLine) bool {
	if l == nil {
		return false
	}
	runs := map[string]bool{}
	for _, line := range known {
		runs[line.Run] = true
	}
	for run, of := range l.lists {
		if of == each && !runs[run] {
			return true
		}
	}
	return false
}

// lastItem returns the number of the last item of a for_each with an effect that an earlier run has caused, or 0.
func (l *effectLog) lastItem(each Place) (n int) {
	if l == nil {
		return 0
	}
	for _, list := range l.earlier {
		for _, e := range list {
			if e.Each == each {
				n = max(n, e.Item)
			}
		}
	}
	return n
}

// ofOthers reports whether there are effects of runs that this one does not continue, or whether that is not known. Workers do not know
// these effects, and could repeat them.
func (l *effectLog) ofOthers() bool {
	if l == nil {
		return false
	}
	for _, list := range l.earlier {
		for _, e := range list {
			if e.Place == "" {
				return true
			}
		}
	}
	return l.unknown != nil
}

// setChanged notes that this run has changed something, or may have.
func (l *effectLog) setChanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = true
}

// kept returns the for_each whose items the run keeps, and the number of the item there.
func (it *item) kept() (each Place, number int) {
	for ; it != nil; it = it.around {
		if log := it.of.log; log != nil {
			each, number = log.place, it.number
		}
	}
	return each, number
}

func (l *effectLog) write(e pastEffect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.create()
	if l.results += int64(len(e.Result) + len(e.Task) + len(e.Of)); l.results > maxResults {
		if e.Task != "" {
			return
		}
		e.Kept, e.Result, e.Of = false, nil, ""
	}
	line, err := json.Marshal(e)
	if err != nil { // it has no values that JSON lacks
		l.end(err.Error())
		return
	}
	_, _ = l.out.Write(append(line, '\n')) // it does not fail
}

// maxResults bounds the results and tasks in the log of a run, so that they leave room for the effects in the output that holds
// it.
const maxResults = 16 << 20

// create begins the output of the log. The caller has mu.
func (l *effectLog) create() {
	if l.out == nil {
		l.out, l.end = l.r.record.runs.Create(l.r.record.id, effectsName, true)
	}
}

// close ends the log, and reports whether the run has changed something, or may have.
func (l *effectLog) close() (changed bool) {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil {
		l.end("")
	}
	return l.changed
}

// maxNormal is the size of arguments up to which effects are compared as JSON values. Larger ones are compared as distinct
// calls are: their numbers and strings as they are written.
const maxNormal = 256 << 10

// callEffect is the key of the call of a tool. The order of members, blanks and the ways to write a number or a
// character do not matter to it.
func callEffect(server, name string, args json.RawMessage) string {
	if len(args) <= maxNormal {
		d := json.NewDecoder(bytes.NewReader(args))
		d.UseNumber()
		var value any
		if d.Decode(&value) == nil {
			if text, err := json.Marshal(normalNumbers(value)); err == nil { // sorts the names
				args = text
			}
		}
	}
	sum := keyOf(args)
	return effectKey("tool", server, name, string(sum[:]))
}

// fileEffect is the key of appending what a hash has seen to a file.
func fileEffect(file string, data hash.Hash) string {
	return effectKey("tee", file, string(data.Sum(nil)))
}

func effectKey(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// normalNumbers writes equal numbers alike, for 1, 1.0 and 1e0 are the same to a tool.
func normalNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = normalNumbers(member)
		}
	case []any:
		for i, element := range v {
			v[i] = normalNumbers(element)
		}
	case json.Number:
		return normalNumber(v)
	}
	return value
}

// normalNumber writes a number as its digits without zeros around them, and an exponent. It does not compute with them, so
// none is lost. A number whose exponent does not fit 32 bits stays as it is.
func normalNumber(n json.Number) json.Number {
	text, exponent := string(n), int64(0)
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		e, err := strconv.ParseInt(text[at+1:], 10, 32)
		if err != nil {
			return n
		}
		text, exponent = text[:at], e
	}
	text, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	exponent += int64(len(whole) - len(digits))
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	if negative {
		digits = "-" + digits
	}
	return json.Number(digits + "e" + strconv.FormatInt(exponent, 10))
}

// follow returns a function that takes a call's progress; nil where nobody asked for it.
func (r *Run) follow(m *Meter, each bool) func(ToolProgress) {
	if r.progress == nil {
		return nil
	}
	var last ToolProgress // of this call; guarded by m.mu
	return func(p ToolProgress) {
		m.mu.Lock()
		m.counts.Tool.Done += max(0, p.Done-last.Done)
		m.counts.Tool.Total += max(0, p.Total-last.Total)
		last.Done, last.Total = max(last.Done, p.Done), max(last.Total, p.Total)
		if !each && p.Message != "" {
			m.counts.Tool.Message = p.Message
		}
		sum := m.counts.Tool
		m.mu.Unlock()
		r.progress(Progress{Items: r.items.Load(), Calls: r.calls.Load(), Place: m.step.place, Tool: sum, Each: each})
	}
}
