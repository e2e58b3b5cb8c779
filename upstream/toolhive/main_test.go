package toolhive

import (
	"sync"
	"testing"

	"github.com/mcsh-dev/mcsh/upstream/toolhive/toolhivetest"
)

// heard is what a source has told.
type heard struct {
	mu   sync.Mutex
	text []string
}

func (h *heard) hear(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, text)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.text...)
}

func newSource(t *testing.T, o Options) *Source {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.disconnect)
	return s
}

// names looks at the servers of a source.
func names(t *testing.T, s *Source) []string {
	t.Helper()
	servers, err := s.Servers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, server := range servers {
		list = append(list, server.Name)
	}
	return list
}

// someone is an API with one workload.
func someone(t *testing.T) *toolhivetest.API {
	a := toolhivetest.New(t)
	a.Set(toolhivetest.Running("alpha", "http://127.0.0.1:1/mcp"))
	return a
}
