//go:build linux

package worker

import (
	"slices"
	"strconv"
	"sync"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// maxIdle is how many applets wait for an item or a program: twice what one for_each runs side by side, so that
// two that feed each other keep theirs.
const maxIdle = 8

// An idlePool holds the applets that wait for an item or a program.
type idlePool struct {
	mu   sync.Mutex
	idle []*kept // the one that has waited longest first
}

// keptKey tells the commands apart that an applet can be kept for. It is asked for with every item.
func keptKey(c wire.Command, memory int64) string {
	b := make([]byte, 0, 256)
	b = strconv.AppendInt(b, memory, 10)
	b = strconv.AppendInt(append(b, ' '), int64(c.Timeout), 10)
	b = strconv.AppendUint(append(b, ' '), uint64(c.Set), 10)
	for _, words := range [][]string{{c.Name}, c.Argv, c.Inputs} {
		b = strconv.AppendInt(append(b, ' '), int64(len(words)), 10)
		for _, word := range words {
			b = strconv.AppendInt(append(b, ' '), int64(len(word)), 10)
			b = append(append(b, ' '), word...)
		}
	}
	return string(b)
}

// take returns an applet of that key that waits, nil if there is none.
func (i *idlePool) take(key string) *kept {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := len(i.idle) - 1; n >= 0; n-- {
		k := i.idle[n]
		if k.key != key {
			continue
		}
		i.idle = slices.Delete(i.idle, n, n+1)
		if k.reads() {
			return k
		}
		k.end() // it has died while it waited
	}
	return nil
}

// free returns the applet that has waited longest of those that can get another program and have these limits, nil if there
// is none.
func (i *idlePool) free(limits jail.Limits) *kept {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := 0; n < len(i.idle); {
		k := i.idle[n]
		if k.items || k.limits != limits || !k.reusable() {
			n++
			continue
		}
		i.idle = slices.Delete(i.idle, n, n+1)
		if k.reads() {
			return k
		}
		k.end() // it has died while it waited
	}
	return nil
}

// atHand returns how many wait that can get another program.
func (i *idlePool) atHand() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range i.idle {
		if !k.items && k.reusable() {
			n++
		}
	}
	return n
}

// renew has up to n applets, those that have waited least, forget what they were, ends the others and returns how many
// there are.
func (i *idlePool) renew(n int) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.idle
	i.idle = nil
	for _, k := range slices.Backward(all) {
		if len(i.idle) == n || !k.reusable() || k.forget() != nil {
			k.end()
			continue
		}
		i.idle = append(i.idle, k)
	}
	slices.Reverse(i.idle)
	return len(i.idle)
}

// put adds one, and ends the one that has waited longest where they are too many.
func (i *idlePool) put(k *kept) {
	i.mu.Lock()
	i.idle = append(i.idle, k)
	var oldest *kept
	if len(i.idle) > maxIdle {
		oldest, i.idle = i.idle[0], slices.Delete(i.idle, 0, 1)
	}
	i.mu.Unlock()
	if oldest != nil {
		oldest.end()
	}
}

// count returns how many wait.
func (i *idlePool) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.idle)
}

// memory returns the bytes of memory that those have that wait.
func (i *idlePool) memory() (sum int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, k := range i.idle {
		alone, _ := usedBy(k.statm)
		sum += alone
	}
	return sum
}

// drain ends all of them.
func (i *idlePool) drain() {
	i.mu.Lock()
	idle := i.idle
	i.idle = nil
	i.mu.Unlock()
	for _, k := range idle {
		k.end()
	}
}
