package gateway

import "sync"

// A notice is a notification without other contents: that a list has changed, or the resource with uri.
type notice struct{ method, uri string }

// params are the parameters of the notification.
func (n notice) params() map[string]any {
	if n.uri == "" {
		return map[string]any{}
	}
	return map[string]any{"uri": n.uri}
}

// A mailbox keeps the notices that a client has not got yet, each once: however often something changes, the client learns it
// once.
type mailbox struct {
	wake func() // called after each put; it must not block

	mu      sync.Mutex
	waiting []notice        // guarded by mu
	known   map[notice]bool // those of waiting; guarded by mu
}

func (m *mailbox) put(notices ...notice) {
	m.mu.Lock()
	for _, n := range notices {
		if m.known == nil {
			m.known = map[notice]bool{}
		}
		if !m.known[n] {
			m.known[n] = true
			m.waiting = append(m.waiting, n)
		}
	}
	m.mu.Unlock()
	m.wake()
}

// drop removes the notice of a resource that the client does not want any more.
func (m *mailbox) drop(n notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, n)
}

// take empties the mailbox.
func (m *mailbox) take() (all []notice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.waiting {
		if m.known[n] {
			all = append(all, n)
			delete(m.known, n)
		}
	}
	m.waiting = nil
	return all
}
