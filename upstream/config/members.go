package config

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tailscale/hujson"
)

// A Member is a member of the file, or of an object in it.
type Member struct {
	Name string

	offset int
	value  hujson.Value
	file   *reader
}

// Members reads the file and returns its members.
func (f *File) Members(ctx context.Context) ([]Member, error) {
	r, root := f.open(ctx)
	members, _ := r.members(root) // Servers reports a file that is no object
	return members, errors.Join(r.errs...)
}

// Place returns file:line, for messages.
func (m Member) Place() string { return m.file.where(m.offset) }

// Members returns the members of the value, repeated ones too; false: it is no object.
func (m Member) Members() ([]Member, bool) { return m.file.members(m.value) }

// JSON returns the value, without comments.
func (m Member) JSON() json.RawMessage {
	v := m.value.Clone()
	v.Minimize()
	return v.Pack()
}

func (r *reader) members(v hujson.Value) (list []Member, isObject bool) {
	object, isObject := v.Value.(*hujson.Object)
	if !isObject {
		return nil, false
	}
	for _, m := range object.Members {
		list = append(list, Member{Name: nameOf(m), offset: m.Name.StartOffset, value: m.Value, file: r})
	}
	return list, true
}
