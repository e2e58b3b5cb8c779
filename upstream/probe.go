package upstream

import (
	"encoding/json"

	"github.com/mcsh-dev/mcsh/stages"
)

// maxProbes is how many tools of one list are probed.
const maxProbes = 50

// probe calls, behind everything else and one after another, each tool of a list whose results nobody knows yet, that
// only reads and that needs no argument, where the operator wants that. A tool that fails is not probed again before its
// schema changes.
func (u *unit) probe(list *toolList) {
	if !u.server.Probe {
		return
	}
	u.tasks.start(func() {
		left := maxProbes
		for _, t := range list.tools {
			d := t.details()
			if !t.readOnly || t.refused != "" || d.Denied != "" || len(d.Tool.Input.Required) > 0 || left == 0 || u.life.Err() != nil {
				continue
			}
			if !u.shapes.probeOnce(t) {
				continue
			}
			left--
			// That it fails is no news to anybody: nobody asked for it.
			_, _ = u.callTool(u.life, t, stages.Call{Server: u.server.Name, Name: t.name, Args: json.RawMessage("{}"), Reading: true})
		}
	})
}

// probeOnce reports whether a tool is to be probed: nothing is known of its results, and it was not tried before.
func (s *shapes) probeOnce(t *tool) bool {
	if s.result(t).Known() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.of(t, nil)
	tried := k.probed
	k.probed = true
	return !tried
}
