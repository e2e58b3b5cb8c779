package toolhive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// found notes a good answer, and tells of it if it is news.
func (s *Source) found(listed int, flaws []string) {
	s.mu.Lock()
	old := s.state
	s.state.Listed, s.state.Err, s.state.Absent = listed, nil, false
	flawed := !slices.Equal(flaws, s.flaws)
	s.flaws = flaws
	now := s.state
	s.mu.Unlock()
	if old.Err != nil && !old.Absent {
		s.tell(fmt.Sprintf("ToolHive answers again at %s", now.Place))
	}
	if flawed && len(flaws) > 0 {
		s.tell("ToolHive lists what cannot be read and is left out: " + strings.Join(flaws, "; "))
	}
}

// lost notes that there was no answer, and tells of it if it is news.
func (s *Source) lost(err error) {
	var miss *notFound
	absent := errors.As(err, &miss) && miss.nothing()
	s.mu.Lock()
	old := s.state
	s.state.Err, s.state.Absent = err, absent
	s.mu.Unlock()
	switch {
	case absent && s.o.Container:
		if s.watched && !s.advised {
			s.advised = true
			s.tell(advice)
		}
	case old.Err != nil, errors.Is(err, context.Canceled): // it has been told, or nobody waits for it
	case old.Version != "":
		s.tell(fmt.Sprintf("ToolHive does not answer any more at %s: %v. Its servers stay; it is looked for", old.Place, err))
	case s.o.URL != "":
		s.tell(fmt.Sprintf("ToolHive does not answer at %s (%s): %v. It is asked again", s.o.URL, s.o.URLFrom, err))
	case !absent:
		s.tell(err.Error())
	}
}

// advice is for a gateway in a container that sees no ToolHive.
const advice = "no ToolHive answers here. If its servers are wanted: run thv serve on the machine, and the gateway's " +
	"container on the machine's network (--network host); or give the API's address with TOOLHIVE_API_URL or " +
	"--toolhive; or mount the socket of the desktop app and give --toolhive unix:///path/to/socket. --toolhive off ends the search"

func (s *Source) tell(text string) {
	if s.o.Told != nil {
		s.o.Told(text)
	}
}

// disconnect closes what is kept open.
func (s *Source) disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.api != nil {
		s.api.close()
		s.api = nil
	}
}
