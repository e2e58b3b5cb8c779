package preview

import "strings"

const (
	minMapKeys    = 12 // keys of the smallest map
	minSparseKeys = 24 // keys of the smallest map that is recognized because its objects share few keys
)

// foldMaps turns the objects at and below n whose keys look like data into maps.
func (p *profile) foldMaps(n *node) {
	if n.looksLikeMap() {
		p.fold(n)
	}
	for _, child := range n.children() {
		p.foldMaps(child)
	}
}

// looksLikeMap reports whether n has many keys and values of one kind, and most keys look like data or occur in few of
// the objects.
func (n *node) looksLikeMap() bool {
	if len(n.keys) < minMapKeys {
		return false
	}
	kinds := map[uint]bool{}
	data, present := 0, int64(0)
	for i := range n.keys {
		e := &n.keys[i]
		if looksLikeData(e.name) {
			data++
		}
		present += e.present
		if mask := e.n.kindMask(); mask != 0 {
			kinds[mask] = true
		}
	}
	if len(kinds) > 2 {
		return false
	}
	sparse := len(n.keys) >= minSparseKeys && 5*present < n.kinds[kindObject]*int64(len(n.keys))
	return sparse || 10*data >= 7*len(n.keys)
}

// kindMask has a bit for every kind of value other than null.
func (n *node) kindMask() (mask uint) {
	for k := kindBool; k < numKinds; k++ {
		if n.kinds[k] > 0 {
			mask |= 1 << k
		}
	}
	return mask
}

// looksLikeData reports whether a key looks like an identifier or an address and not like a field's name.
func looksLikeData(key string) bool {
	return len(key) > 40 || strings.ContainsAny(key, "0123456789@/ ")
}
