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
	return Load{InUse: len(p.inUse), Warm: len(p.idle) + len(p.tenants), Queued: int(p.queued.Load()), Max: cap(p.inUse)}
}
