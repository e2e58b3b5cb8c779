package wire

// A ring holds bytes that have arrived and were not read yet. It grows with what it holds, up to Window; the credit
// of the protocol keeps it from overflowing.
type ring struct {
	buf   []byte
	start int // index of the oldest byte
	n     int // bytes held
}

const ringStart = 4 << 10

// write appends p, for which there is room within Window.
func (r *ring) write(p []byte) {
	if r.n+len(p) > len(r.buf) {
		r.grow(r.n + len(p))
	}
	end := (r.start + r.n) % len(r.buf)
	n := copy(r.buf[end:], p)
	copy(r.buf, p[n:])
	r.n += len(p)
}

func (r *ring) grow(need int) {
	size := max(len(r.buf), ringStart)
	for size < need {
		size *= 2
	}
	bigger := make([]byte, size)
	held := r.n
	n := r.read(bigger[:held])
	r.buf, r.start, r.n = bigger, 0, n
}

// read moves the oldest bytes to p and returns how many.
func (r *ring) read(p []byte) int {
	total := 0
	for r.n > 0 && total < len(p) {
		chunk := r.buf[r.start:min(r.start+r.n, len(r.buf))]
		n := copy(p[total:], chunk)
		r.start = (r.start + n) % len(r.buf)
		r.n -= n
		total += n
	}
	return total
}

// drop forgets everything and gives the memory back.
func (r *ring) drop() { *r = ring{} }
