package preview

import "strings"

const (
	minMapKeys    = 12 // keys from which on an object may be a map
	minSparseKeys = 24 // keys from which on objects that share few of them may be maps
)

// foldMaps makes maps of the objects below n whose keys look like data.
func (p *profile) foldMaps(n *node) {
	if n.looksLikeMap() {
		p.fold(n)
	}
	for _, child := range n.children() {
		p.foldMaps(child)
	}
}

// looksLikeMap reports whether n has many keys and values of one kind, and most keys are no words or are in few of the
// objects only.
func (n *node) looksLikeMap() bool {
	if len(n.keys) < minMapKeys {
		return false
	}
	var kinds [2]int
	data, present := 0, int64(0)
	for i := range n.keys {
		e := &n.keys[i]
		if looksLikeData(e.name) {
			data++
		}
		present += e.present
		mask := e.n.kindMask()
		switch {
		case i == 0 || mask == kinds[0]:
			kinds[0] = mask
		case kinds[1] == 0 || mask == kinds[1]:
			kinds[1] = mask
		default:
			return false
		}
	}
	sparse := len(n.keys) >= minSparseKeys && 5*present < n.kinds[kindObject]*int64(len(n.keys))
	return sparse || 10*data >= 7*len(n.keys)
}

// kindMask has a bit for every kind of value other than null.
func (n *node) kindMask() (mask int) {
	for k := kindBool; k < numKinds; k++ {
		if n.kinds[k] > 0 {
			mask |= 1 << k
		}
	}
	return mask
}

// looksLikeData reports whether a key is rather an identifier or an address than a field's name.
func looksLikeData(key string) bool {
	return len(key) > 40 || strings.ContainsAny(key, "0123456789@/ ")
}
