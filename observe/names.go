package observe

import (
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	maxServers = 256     // that have a label of their own: a source of servers may give ever new names
	maxName    = 100     // bytes of a name
	others     = "other" // stands for everything that has no label of its own
)

// names bounds how many values a label has.
type names struct {
	max int

	mu    sync.RWMutex
	known map[string]string // the label of a name; guarded by mu
}

func newNames(max int) *names { return &names{max: max, known: map[string]string{}} }

// label is the value for a name: the first so many have one of their own.
func (n *names) label(name string) string {
	n.mu.RLock()
	label, ok := n.known[name]
	n.mu.RUnlock()
	if ok {
		return label
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if label, ok := n.known[name]; ok { // another call was first
		return label
	}
	if len(n.known) >= n.max {
		return others
	}
	label = clip(name)
	n.known[name] = label
	return label
}

// clip is a name as it may be told: servers choose those of tools.
func clip(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if len(name) <= maxName {
		return name
	}
	name = name[:maxName]
	for !utf8.ValidString(name) {
		name = name[:len(name)-1]
	}
	return name
}
