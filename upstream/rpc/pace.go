package rpc

import (
	"sync"
	"time"
)

// A Pace meters what a server sends unasked: a burst passes, and then so much a second. Whoever is too fast is read
// slowly, so that it waits in its own writes and costs little here.
type Pace struct {
	PerSecond, Burst float64

	mu    sync.Mutex
	spent float64   // guarded by mu
	at    time.Time // of spent; guarded by mu
}

// take spends n and returns how long to wait before more is taken.
func (p *Pace) take(n float64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.spent = max(0, p.spent-now.Sub(p.at).Seconds()*p.PerSecond) + n
	p.at = now
	if p.spent <= p.Burst {
		return 0
	}
	return time.Duration((p.spent - p.Burst) / p.PerSecond * float64(time.Second))
}

// Wait spends n, and waits as long as that takes, unless done is closed before.
func (p *Pace) Wait(n float64, done <-chan struct{}) {
	d := p.take(n)
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}
