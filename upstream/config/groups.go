package config

import (
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream"
)

// groupsKey is the member of a file that holds groups of servers: {"groups": {"dev": ["github", "fs-*"]}}.
const groupsKey = "groups"

// Groups returns the groups that Servers has read last. Their servers may be those of other files.
func (f *File) Groups() []upstream.Group {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.last)
}

// readGroups reads groups. The pool checks them, together with those of other files.
func (r *reader) readGroups(m hujson.ObjectMember) {
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		r.fail(m.Value.StartOffset, groupsKey, `want an object with a list of servers per group, such as {"dev": ["github", "fs-*"]}`)
		return
	}
	for _, one := range object.Members {
		name := nameOf(one)
		key := groupsKey + "." + texts.Cut(name, maxShown)
		value := one.Value.Clone()
		value.Minimize()
		list, err := decode[[]string](value.Pack(), "a list of names of servers")
		if err != nil {
			r.fail(one.Value.StartOffset, key, "%v", err)
			continue
		}
		r.groups = append(r.groups, upstream.Group{Name: name, Servers: list, Where: r.where(one.Name.StartOffset)})
	}
}
