package clients

import (
	"bytes"
	"fmt"
)

// Outcomes for the gateway's entry, besides [Added], [Replaced] and [Same].
const (
	Removed  = "removed"
	Restored = "removed, and the server that it took the place of is back"
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
	if before, ok := c.replaced(path, data, original, g); ok {
		return Edit{Outcome: Restored, Data: before}, nil
	}
	edited, err := c.without(path, data, original, g.Name)
	if err == nil {
		err = c.check(path, data, edited, g.Name, func(servers map[string]any) { delete(servers, g.Name) })
	}
	if err != nil {
		return Edit{}, err
	}
	blank := len(original.Backups) > 0 && isBlank(original.Backups[0].Data)
	switch {
	case original.Made && c.isEmpty(path, edited):
		edited = nil
	case blank && c.isEmpty(path, edited):
		edited = original.Backups[0].Data
	case edited == nil: // the file stays, but is empty
		edited = []byte{}
	}
	return Edit{Outcome: Removed, Data: edited}, nil
}

// replaced finds the backup from before the entry replaced another server, if only that has changed since.
func (c Client) replaced(path string, data []byte, original Original, g Gateway) ([]byte, bool) {
	for _, backup := range original.Backups {
		was, there, err := c.find(path, backup.Data, g.Name)
		if err != nil || !there || c.ours(was, g) || !c.editor(path).differOnlyIn(data, backup.Data, c.keys[0], g.Name) {
			continue
		}
		if c.check(path, data, backup.Data, g.Name, func(servers map[string]any) { servers[g.Name] = was }) == nil {
			return backup.Data, true
		}
	}
	return nil, false
}

// without is the file without the entry: one of the backups if nothing else has changed. Without backups, only the entry
// is removed.
func (c Client) without(path string, data []byte, original Original, name string) ([]byte, error) {
	drop := func(before []byte, empty bool) ([]byte, error) {
		return c.editor(path).drop(data, before, c.keys[0], name, empty)
	}
	if original.Made || len(original.Backups) == 0 {
		return drop(nil, original.Made)
	}
	var newest []byte
	for i, backup := range original.Backups {
		_, hadServers, _ := c.servers(path, backup.Data) // an unreadable one counts as having had them
		edited, err := drop(backup.Data, !hadServers)
		if err != nil || bytes.Equal(edited, backup.Data) {
			return edited, err
		}
		if i == 0 {
			newest = edited
		}
	}
	return newest, nil
}
