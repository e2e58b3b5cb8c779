package sandbox

// A Load is how busy a [Pool] is.
type Load struct {
	InUse  int // workers that runs hold
	Warm   int // workers that wait for a run, of anybody or of the caller who had one before
	Queued int // runs that wait for a worker
	Max    int // the most that runs may hold at a time
}

// Load says how busy the pool is. It never waits for a worker.
func (p *Pool) Load() Load {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := Load{InUse: p.inUse.inUse(), Queued: int(p.queued.Load()), Max: p.inUse.places}
	for _, t := range p.waiting {
		select {
		case <-t.ready:
			l.Warm++
		default: // it is being started
		}
	}
	return l
}
