package cli

import (
	"context"
	"encoding/json"

	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/outward"
)

// An offered is an offer as its server lists it.
type offered struct {
	Name, Title, Description, MimeType string
	Size                               int64
	Arguments                          []ui.PromptArgument
}

// read reads what a list says of an offer; what is not as it should be is left out.
func (o *offered) read(raw json.RawMessage) *offered {
	_ = json.Unmarshal(raw, o) // the pool has read it before
	return o
}

// Resources implements [ui.Offers].
func (s *shown) Resources(ctx context.Context) (list []ui.Resource) {
	pool, ctx := s.pool(ctx)
	for _, kind := range []upstream.Kind{upstream.Resources, upstream.Templates} {
		for _, o := range pool.Offers(ctx, kind) {
			said := new(offered).read(o.Raw)
			list = append(list, ui.Resource{
				Server: o.Server, URI: outward.URI(o.Server, o.Key), Original: o.Key, Name: said.Name, Title: said.Title, Description: said.Description,
				Kind: said.MimeType, Size: said.Size, Template: kind == upstream.Templates,
			})
		}
	}
	return list
}

// Prompts implements [ui.Offers].
func (s *shown) Prompts(ctx context.Context) (list []ui.Prompt) {
	pool, ctx := s.pool(ctx)
	for _, o := range pool.Offers(ctx, upstream.Prompts) {
		said := new(offered).read(o.Raw)
		list = append(list, ui.Prompt{Server: o.Server, Name: o.Key, Title: said.Title, Description: said.Description, Arguments: said.Arguments})
	}
	return list
}

// Read implements [ui.Offers].
func (s *shown) Read(ctx context.Context, uri string) (list []ui.Content, err error) {
	raw, err := s.person(ctx).Read(ctx, uri)
	if err != nil {
		return nil, err
	}
	var result struct{ Contents []content }
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, err
	}
	for _, c := range result.Contents {
		list = append(list, c.shown())
	}
	return list, nil
}

// Prompt implements [ui.Offers].
func (s *shown) Prompt(ctx context.Context, server, name string, args map[string]string) (list []ui.Content, err error) {
	raw, err := s.person(ctx).Prompt(ctx, server, name, args)
	if err != nil {
		return nil, err
	}
	var result struct {
		Messages []struct {
			Role    string
			Content content
		}
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, err
	}
	for _, m := range result.Messages {
		c := m.Content.shown()
		c.Role = m.Role
		list = append(list, c)
	}
	return list, nil
}

// A content is a part of a resource, or a content block of a message.
type content struct {
	URI, MimeType, Text, Blob, Data string
	Resource                        *content // that is embedded
}

func (c content) shown() ui.Content {
	if c.Resource != nil {
		return c.Resource.shown()
	}
	blob := c.Blob + c.Data // it has one of them
	return ui.Content{URI: c.URI, Kind: c.MimeType, Text: c.Text, Blob: blob, Size: len(c.Text) + len(blob)*3/4}
}
