package rpc

import (
	"sync"
	"time"
)

// A Limiter slows down a server that sends too much: a burst passes, and then so much a second. A server that is faster
// is read slowly, so that it blocks in its own writes and costs little here.
type Limiter struct {
	PerSecond, Burst float64

	mu    sync.Mutex
	spent float64   // guarded by mu
	at    time.Time // of spent; guarded by mu
}

// The rate of what a server sends unasked, in messages of at most 4 KiB, and of bytes that are skipped.
const (
	unaskedRate  = 1000
	unaskedBurst = 5000
	unaskedSize  = 4 << 10
	skipRate     = 64 << 20
	skipBurst    = 256 << 20
)

// UnaskedLimiter bounds messages that answer no request. See [MessageCost].
func UnaskedLimiter() Limiter { return Limiter{PerSecond: unaskedRate, Burst: unaskedBurst} }

// MessageCost is the cost of a message of n bytes for an [UnaskedLimiter].
func MessageCost(n int) float64 { return 1 + float64(n/unaskedSize) }

// SkipLimiter bounds the bytes of messages that are too long to be read.
func SkipLimiter() Limiter { return Limiter{PerSecond: skipRate, Burst: skipBurst} }

// take spends n and returns how long to wait before the next one.
func (p *Limiter) take(n float64) time.Duration {
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

// Allow spends n and reports whether that was allowed at once; if not, nothing is spent.
func (p *Limiter) Allow(n float64) bool {
	if p.take(n) == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent -= n
	return false
}

// Wait spends n, and waits as long as that takes, unless done is closed before.
func (p *Limiter) Wait(n float64, done <-chan struct{}) {
	d := p.take(n)
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-done:
	}
}
