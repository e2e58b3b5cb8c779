package stages

import (
	"cmp"
	"time"
)

// Spread says how the items of large for_each stages are spread over workers.
type Spread struct {
	Workers     Workers       // nil: they are not
	From        int           // items that run here first, at most
	After       time.Duration // from the first item on; then 100 items are enough; 0: a second
	Concurrency int           // items at once, of a for_each that names none and only reads
	Items       int           // of a shard; 0: for some seconds of work
	Output      int64         // bytes of its results, more than which it begins no item; 0: 16 MiB
}

// spreadLeast is how many items of a for_each run here at least: a small one costs nothing.
const spreadLeast = 100

// concurrency returns how many shards of a for_each run at the same time, and how many items of each.
func (s Spread) concurrency(f *forEach) (shards, items int) {
	most := f.Concurrency
	if !f.given && most > 1 && !f.changes {
		most = max(most, s.Concurrency)
	}
	if shards = most / min(f.Concurrency, shardAtOnce); shards < 2 {
		return shards, most
	}
	return shards, most / shards
}

// canSpread reports whether workers can run the items of a for_each behind the first ones. onward are the steps behind it. again says
// that workers have run some of them before; then one shard at a time is enough.
func (d Deps) canSpread(s *Step, onward []*Step, again bool) bool {
	if d.Spread.Workers == nil || d.Runs == nil || !d.Runs.Outlive() || s.each.inner || s.place.nested() || stopEarly(onward) {
		return false
	}
	for inner := range allSteps(s.each.body) {
		switch {
		case inner.origin != nil, inner.tool != nil && (inner.tool.info.Sticky || inner.tool.info.IsPipeline):
			return false
		case inner.Command != nil && (d.Files != nil || len(inner.Nested) > 0): // it may read files of this workspace, or inputs that run once
			return false
		case inner.Changes && inner.tool == nil && len(inner.Nested) == 0: // it saves files
			return false
		case inner.tool != nil && inner.Changes && s.each.Distinct != nil && *s.each.Distinct: // a call would be made once in each shard
			return false
		}
	}
	shards, _ := d.Spread.concurrency(s.each)
	return again || shards > 1
}

// bindShards has workers run items behind the first ones, where they can. Items that workers have run before are run here only if that
// repeats no effect.
func (e *each) bindShards(s *Step, onward []*Step) error {
	r := e.r
	if r.record == nil || r.dry != nil || r.within != nil || e.inner {
		return nil
	}
	known, err := r.knownShards(s.place)
	if err != nil {
		return err
	}
	e.begunBefore = max(e.log.last(), r.effects.lastItem(s.place))
	switch {
	case e.changes && r.effects.lacksShard(s.place, known):
		return Errorf(Denied, "find out what was changed (with a tool that reads), and do the rest in a pipeline without from",
			"it is no longer known which items of the for_each workers have run, and their calls could be repeated")
	case r.deps.canSpread(s, onward, known != nil) && !(e.changes && r.effects.ofOthers()):
		e.spreads, e.log.shards = true, r.newShardLog(s.place, known)
		e.first = e.runsFirst()
	case known != nil && e.changes:
		return Errorf(Denied, "continue the run where the gateway has workers, with the same configuration",
			"workers have run items of the for_each, whose calls could be repeated here")
	}
	return nil
}

// firstItems are those of a for_each that run in this process: at least least, and up to most until some time is over. Workers run the
// others.
type firstItems struct {
	least, most int
	time        time.Duration
}

// runsFirst returns which items run here. Workers do not know what became of items that an earlier run had begun here, so these run here
// again; no item of a known shard does.
func (e *each) runsFirst() firstItems {
	spread := e.r.deps.Spread
	if starts := e.log.shards.starts; len(starts) > 0 {
		return firstItems{starts[0], starts[0], 0}
	}
	return firstItems{max(min(spreadLeast, spread.From), e.begunBefore), spread.From, cmp.Or(spread.After, time.Second)}
}

// over reports whether the items that have not begun are left to workers.
func (f firstItems) over(begun int, since time.Time) bool {
	return begun >= f.least && (begun >= f.most || time.Since(since) > f.time)
}
