package state

import (
	"encoding/json"
	"time"
)

// Tools is the tool list of a server as it was last fetched.
type Tools struct {
	Fetched time.Time         `json:"fetched"`
	List    []json.RawMessage `json:"list"`
	Cut     string            `json:"cut,omitempty"` // why there may be more tools, or empty
}

// Tools reads a tool list, and reports whether there is one.
func (d *Dir) Tools(k Key) (Tools, bool) {
	var t Tools
	ok := d.read("tools", k, maxTools, &t)
	return t, ok
}

// SaveTools replaces a tool list.
func (d *Dir) SaveTools(k Key, t Tools) error { return d.write("tools", k, maxTools, t) }
