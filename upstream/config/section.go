package config

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tailscale/hujson"
)

// Section returns a member of the file that is not about servers, as JSON, and its place for messages; nil: there is none.
func (f *File) Section(ctx context.Context, name string) (value json.RawMessage, place string, err error) {
	r := &reader{ctx: ctx, file: f, read: checksums{}}
	if r.data, err = r.readFile(f.Path); err != nil {
		return nil, "", fmt.Errorf("reading the configuration: %w", err)
	}
	root, err := hujson.Parse(r.data)
	if err != nil {
		return nil, "", syntaxError(f.Path, err)
	}
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, "", nil // Servers reports it
	}
	for _, m := range object.Members {
		switch {
		case nameOf(m) != name:
		case value != nil:
			return nil, "", fmt.Errorf("%s: %s: it is there twice, first at %s", r.where(m.Name.StartOffset), name, place)
		default:
			place = r.where(m.Name.StartOffset)
			m.Value.Standardize()
			value = m.Value.Pack()
		}
	}
	return value, place, nil
}
