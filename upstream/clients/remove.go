package clients

import "fmt"

// Outcomes for the gateway's entry, besides [Added], [Replaced] and [Same].
const (
	Removed  = "removed"
	Restored = "removed, and the server that it replaced is back"
	Missing  = "not there"
)

// Remove removes the entry of the gateway, and objects and files that were made for it. Other changes since then stay. A
// server that the entry replaced comes back if nothing else has changed since.
func (c Client) Remove(path string, data []byte, original Original, g Gateway) (Edit, error) {
	was, there, err := c.find(path, data, g.Name)
	switch {
	case err != nil:
		return Edit{}, err
	case !there:
		return Edit{Outcome: Missing, Data: data}, nil
	case !c.ours(was, g):
		return Edit{}, fmt.Errorf("%s: %w: %q is another server there", path, ErrTaken, g.Name)
	}
	for _, backup := range original.Backups {
		if edit, ok := c.restore(path, data, backup.Data, g); ok {
			return edit, nil
		}
	}
	empty := original.Made
	if len(original.Backups) > 0 && !empty {
		_, hadServers, _ := c.servers(path, original.Backups[0].Data) // an unreadable file counts as having had them
		empty = !hadServers
	}
	edited, err := c.editor(path).drop(data, c.keys[0], g.Name, empty)
	if err == nil {
		err = c.check(path, data, edited, g.Name, func(servers map[string]any) { delete(servers, g.Name) })
	}
	switch {
	case err != nil:
		return Edit{}, err
	case original.Made && c.isEmpty(path, edited):
		edited = nil
	case edited == nil: // the file stays, but is empty
		edited = []byte{}
	}
	return Edit{Outcome: Removed, Data: edited}, nil
}

// restore returns a backup from before the entry was written, if only the entry has changed since.
func (c Client) restore(path string, data, backup []byte, g Gateway) (Edit, bool) {
	was, there, err := c.find(path, backup, g.Name)
	if err != nil || there && c.ours(was, g) || !c.editor(path).adds(data, backup, c.keys[0], g.Name) {
		return Edit{}, false
	}
	edit, change := Edit{Outcome: Removed, Data: backup}, func(servers map[string]any) { delete(servers, g.Name) }
	if there {
		edit.Outcome, change = Restored, func(servers map[string]any) { servers[g.Name] = was }
	}
	return edit, c.check(path, data, backup, g.Name, change) == nil
}
