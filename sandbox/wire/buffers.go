package wire

import "sync"

// Buffers are what data moves in, of [MaxData] bytes each. Small chains come by the thousand, so they are shared.
type Buffers struct{ pool sync.Pool }

// Get returns a buffer that nobody else has.
func (b *Buffers) Get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, MaxData)
	return &p
}

// Put gives a buffer back.
func (b *Buffers) Put(p *[]byte) { b.pool.Put(p) }
