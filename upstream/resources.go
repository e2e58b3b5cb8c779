package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/outward"
	"github.com/mcsh-dev/mcsh/upstream/pace"
	"github.com/mcsh-dev/mcsh/upstream/results"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/mcsh-dev/mcsh/upstream/sessions"
)

// ErrNoResource is the cause of an error about a resource or prompt that no server lists.
var ErrNoResource = errors.New("no server lists it")

// Owner returns the server that lists a URI or template, in either form, and the original.
func (p *Pool) Owner(ctx context.Context, uri string) (server, original string, err error) {
	if server, original, ok := outward.Split(uri); ok {
		return server, original, nil
	}
	if uri == "" {
		return "", "", stages.Errorf(stages.InvalidArguments, "resources/list shows the URIs", "the URI is empty")
	}
	_ = p.Load(ctx) // the caller of Load reports its error
	var owners, matching []string
	for _, sc := range p.shown(ctx) {
		lists := sc.offers.current()
		_, listed := lists.known(Resources, uri)
		if _, template := lists.known(Templates, uri); listed || template {
			owners = append(owners, sc.server.Name)
		} else if lists.matches(uri) {
			matching = append(matching, sc.server.Name)
		}
	}
	if owners == nil {
		owners = matching
	}
	switch len(owners) {
	case 1:
		return owners[0], uri, nil
	case 0:
		return "", "", stages.Errorf(stages.InvalidArguments, "name its server too, or write "+outward.URI("SERVER", texts.Cut(uri, maxNamed)),
			"resource %q not found: %w", texts.Cut(uri, maxNamed), ErrNoResource)
	}
	return "", "", stages.Errorf(stages.InvalidArguments, "name one of them as its server, or write "+outward.URI(owners[0], texts.Cut(uri, maxNamed)),
		"%d servers list the resource %q: %s", len(owners), texts.Cut(uri, maxNamed), quoted(owners[:min(len(owners), 10)]))
}

// matches reports whether a URI fits a template of the lists.
func (l *offerLists) matches(uri string) bool {
	if l == nil || len(uri) > maxKey {
		return false
	}
	return slices.ContainsFunc(l.of[Templates], func(t Offer) bool { return fitsTemplate(uri, t.Key) })
}

// fitsTemplate reports whether a URI may be one of a template: any text may stand for an expression. The time is linear.
func fitsTemplate(uri, template string) bool {
	literal, rest, found := strings.Cut(template, "{")
	uri, fits := strings.CutPrefix(uri, literal)
	for fits && found {
		_, rest, _ = strings.Cut(rest, "}")
		if literal, rest, found = strings.Cut(rest, "{"); !found {
			return strings.HasSuffix(uri, literal)
		}
		_, uri, fits = strings.Cut(uri, literal)
	}
	return fits && uri == ""
}

// Contents is a result for a resource or prompt, or the whole result of a tool, with the server that gave it.
type Contents struct {
	Server   string
	Result   json.RawMessage // as the server sent it
	Memory   *memory.Lease   // of Result; the caller closes it
	Verbatim bool            // its clients see no other server, so nothing in it is changed for them
}

// Read reads a resource: call.Name is its URI in either form, or call.Server says whose original it is.
func (p *Pool) Read(ctx context.Context, call stages.Call) (Contents, error) {
	if call.Server == "" {
		var err error
		if call.Server, call.Name, err = p.Owner(ctx, call.Name); err != nil {
			return Contents{}, err
		}
	} else {
		call.Name = originalOf(call.Server, call.Name)
	}
	return p.ask(ctx, Resources, call, "resources/read", []byte(`"uri":`), []byte(texts.JSON(call.Name)))
}

// originalOf is the original of a URI of a server, in either form.
func originalOf(server, uri string) string {
	if named, original, ok := outward.Split(uri); ok && named == server {
		return original
	}
	return uri
}

// Prompt gets a prompt of a server: call.Name, with call.Args.
func (p *Pool) Prompt(ctx context.Context, call stages.Call) (Contents, error) {
	members := [][]byte{[]byte(`"name":`), []byte(texts.JSON(call.Name))}
	if len(call.Args) > 0 {
		members = append(members, []byte(`,"arguments":`), call.Args)
	}
	return p.ask(ctx, Prompts, call, "prompts/get", members...)
}

// Complete completes an argument of a prompt or template of a server: call.Name, of that kind. call.Args are the members
// argument and context of the request.
func (p *Pool) Complete(ctx context.Context, kind Kind, call stages.Call) (Contents, error) {
	ref := map[string]string{"type": "ref/resource", "uri": call.Name}
	if kind == Prompts {
		ref = map[string]string{"type": "ref/prompt", "name": call.Name}
	}
	members := [][]byte{[]byte(`"ref":`), []byte(texts.JSON(ref))}
	rpc.Members(call.Args, func(name, value []byte) { members = append(members, []byte(`,"`), name, []byte(`":`), value) })
	return p.ask(ctx, kind, call, "completion/complete", members...)
}

// ask makes a request about an offer of a server, if the operator allows that. Requests with other methods than those of a
// completion have the name in a header, for proxies.
func (p *Pool) ask(ctx context.Context, kind Kind, call stages.Call, method string, members ...[]byte) (Contents, error) {
	ctx = forCall(ctx, call)
	send := func(lease *memory.Lease) query {
		return query{Call: call, noun: kinds[kind].noun, send: func(ctx context.Context, s *sessions.Session, c stages.Call, a *asking) (json.RawMessage, *rpc.Failure) {
			empty(lease) // of the answer before, which asked something
			r := &rpc.Request{Method: method, BeforeSend: c.MaySend, Lease: lease, Ask: a.answerQuestion, Params: a.params(s, 0, members...), Headers: sessions.WithTrace(nil, c.Trace)}
			if method != "completion/complete" {
				r.Name = c.Name
			}
			return s.Request(ctx, r)
		}}
	}
	for {
		sc, err := p.conn(ctx, call.Server)
		if err != nil {
			return Contents{}, err
		}
		lease := sc.pool.options.Results.Lease()
		q := send(lease)
		if err := sc.mayAsk(kind, q); err != nil {
			lease.Close()
			return Contents{Server: sc.server.Name}, err
		}
		raw, err := sc.call(ctx, q)
		if err == nil {
			err = sc.fits(raw, q, wantedLists[method])
		}
		if err == nil {
			return Contents{sc.server.Name, raw, lease, ViewOf(ctx).Only() != ""}, nil
		}
		if lease.Close(); !errors.Is(err, pace.ErrReplaced) {
			return Contents{Server: sc.server.Name}, sc.hideError(err)
		}
	}
}

// mayAsk refuses a name that nothing can have, and what the operator does not allow.
func (sc *serverConn) mayAsk(kind Kind, q query) error {
	if !validKey(q.Name) {
		return stages.Errorf(stages.InvalidArguments, "give it as the server lists it",
			"the name of the %s is empty, has control characters, or has more than %d bytes: %q", q.noun, maxKey, texts.Cut(q.Name, maxNamed))
	}
	if why := sc.filters.refusal(kind, q.Name); why != "" {
		return stages.Errorf(stages.Denied, "use another one, or ask the operator", "%s may not be used: %s", q.label(sc.server.Name), why)
	}
	return nil
}

// wantedLists are the members without which a result is broken, by the method.
var wantedLists = map[string]string{"resources/read": "contents", "prompts/get": "messages"}

// fits refuses a result that is too long, or that [results.CheckContents] refuses.
func (sc *serverConn) fits(raw json.RawMessage, q query, list string) error {
	if size, most := int64(len(raw)), sc.pool.options.ResultMax; size > most {
		return stages.OverLimit("result", "the operator can raise the limit with --limit result=SIZE",
			"%s has %d bytes, more than the limit of %d", q.label(sc.server.Name), size, most)
	}
	return results.CheckContents(raw, q.noun, list)
}

// Outward returns the result as clients of the gateway see it: with the URIs that they read, and without what belongs to the apps
// of one server.
func (c Contents) Outward() json.RawMessage {
	if c.Verbatim {
		return c.Result
	}
	return outward.Result(c.Server, c.Result)
}

// outwards changes a block into that for clients of the gateway; nil: nothing is to be changed.
func (c Contents) outwards() func(block []byte) []byte {
	if c.Verbatim {
		return nil
	}
	return func(block []byte) []byte { return outward.Block(c.Server, block) }
}

// outwardBlocks changes the blocks of a result into those for clients of the gateway. The data of the result keeps the
// originals.
func outwardBlocks(ctx context.Context, blocks []json.RawMessage, server string, lease *memory.Lease) error {
	if ViewOf(ctx).Only() != "" {
		return nil
	}
	for i, block := range blocks {
		changed := outward.Block(server, block)
		if bytes.Equal(changed, block) {
			continue
		}
		if err := lease.Grow(int64(len(changed))); err != nil {
			return err
		}
		blocks[i] = changed
	}
	return nil
}

// Outward is the offer as clients of the gateway see it: with another value of the member that names it, and without what
// belongs to the apps of one server.
func (o Offer) Outward(kind Kind, key string) json.RawMessage {
	return outward.Named(o.Raw, kinds[kind].key, func([]byte) []byte { return []byte(texts.JSON(key)) })
}
