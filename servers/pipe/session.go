package pipe

import (
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions keep the directory of each session, until it ends. Where the process is the session there is one. Without a
// session, in the stateless protocol and behind a gateway, nothing is kept.
type sessions struct {
	alone bool

	mu   sync.Mutex
	dirs map[*mcp.ServerSession]string // nil is the session of the process; guarded by mu
}

// key returns the key of a session, if it keeps a directory.
func (s *sessions) key(session *mcp.ServerSession) (key *mcp.ServerSession, keeps bool) {
	switch {
	case s.alone:
		return nil, true
	case session == nil || session.ID() == "":
		return nil, false
	}
	return session, true
}

// get returns the directory of a session, relative to the root.
func (s *sessions) get(session *mcp.ServerSession) string {
	key, keeps := s.key(session)
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir, ok := s.dirs[key]; keeps && ok {
		return dir
	}
	return "."
}

// set sets the directory of a session that keeps one.
func (s *sessions) set(session *mcp.ServerSession, dir string) {
	key, keeps := s.key(session)
	if !keeps {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirs == nil {
		s.dirs = map[*mcp.ServerSession]string{}
	}
	_, known := s.dirs[key]
	s.dirs[key] = dir
	if key != nil && !known {
		go func() {
			_ = key.Wait() // how it ends does not matter
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.dirs, key)
		}()
	}
}
