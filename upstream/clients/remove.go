package clients

import (
	"bytes"
	"fmt"
)

// What becomes of the entry of the gateway, besides [Added], [Replaced] and [Same].
const (
	Removed  = "removed"
	Restored = "removed, and the server that it took the place of is back"
	Missing  = "not there"
)

// Remove takes the entry of the gateway out again, and with it the places that were made for it. What has changed since
// stays. A server that the entry took the place of comes back where nothing else has changed since.
func (c Client) Remove(path string, data []byte, past Past, g Gateway) (Edit, error) {
	was, there, err := c.find(path, data, g.Name)
	switch {
	case err != nil:
		return Edit{}, err
	case !there:
		return Edit{Outcome: Missing, Data: data}, nil
	case !c.ours(was, g):
		return Edit{}, fmt.Errorf("%s: %w: %q is another server there", path, ErrTaken, g.Name)
	}
	if before, ok := c.replaced(path, data, past, g); ok {
		return Edit{Outcome: Restored, Data: before}, nil
	}
	edited, err := c.without(path, data, past, g.Name)
	if err == nil {
		err = c.check(path, data, edited, g.Name, func(servers map[string]any) { delete(servers, g.Name) })
	}
	if err != nil {
		return Edit{}, err
	}
	blank := len(past.Backups) > 0 && isBlank(past.Backups[0].Data)
	switch {
	case past.Made && c.isEmpty(path, edited):
		edited = nil
	case blank && c.isEmpty(path, edited):
		edited = past.Backups[0].Data
	case edited == nil: // nothing is left in a file that stays
		edited = []byte{}
	}
	return Edit{Outcome: Removed, Data: edited}, nil
}

// replaced finds the file as it was when the entry took the place of another server, if only that has changed since.
func (c Client) replaced(path string, data []byte, past Past, g Gateway) ([]byte, bool) {
	for _, backup := range past.Backups {
		was, there, err := c.find(path, backup.Data, g.Name)
		if err != nil || !there || c.ours(was, g) || !c.editor(path).alike(data, backup.Data, c.keys[0], g.Name) {
			continue
		}
		if c.check(path, data, backup.Data, g.Name, func(servers map[string]any) { servers[g.Name] = was }) == nil {
			return backup.Data, true
		}
	}
	return nil, false
}

// without is the file without the entry: as one of the backups where that is all that has changed. Of a file of whose
// past nothing is known only the entry goes.
func (c Client) without(path string, data []byte, past Past, name string) ([]byte, error) {
	drop := func(before []byte, empty bool) ([]byte, error) {
		return c.editor(path).drop(data, before, c.keys[0], name, empty)
	}
	if past.Made || len(past.Backups) == 0 {
		return drop(nil, past.Made)
	}
	var newest []byte
	for i, backup := range past.Backups {
		_, hadServers, _ := c.servers(path, backup.Data) // one that cannot be read had a place
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
