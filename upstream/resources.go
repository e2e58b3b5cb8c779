package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/pace"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// serversURI begins the URIs by which clients of a gateway read the resources of its servers.
const serversURI = "mcsh://servers/"

// OutwardURI is the URI, or the template, by which clients of a gateway read a resource of one of its servers. The original
// stays verbatim at its end, so a template stays one.
func OutwardURI(server, original string) string {
	return serversURI + url.PathEscape(server) + "/" + original
}

// SplitURI returns the parts of a URI that [OutwardURI] has made, and reports whether it is one.
func SplitURI(uri string) (server, original string, ok bool) {
	rest, ok := strings.CutPrefix(uri, serversURI)
	if !ok {
		return "", "", false
	}
	name, original, _ := strings.Cut(rest, "/")
	server, err := url.PathUnescape(name)
	return server, original, err == nil && server != ""
}

// ErrNoResource is the cause of an error about a resource or prompt that no server lists.
var ErrNoResource = errors.New("no server lists it")

// Owner returns the server that lists a URI or template, in either form, and the original.
func (p *Pool) Owner(ctx context.Context, uri string) (server, original string, err error) {
	if server, original, ok := SplitURI(uri); ok {
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
		return "", "", stages.Errorf(stages.InvalidArguments, "name its server too, or write "+OutwardURI("SERVER", texts.Cut(uri, maxNamed)),
			"resource %q not found: %w", texts.Cut(uri, maxNamed), ErrNoResource)
	}
	return "", "", stages.Errorf(stages.InvalidArguments, "name one of them as its server, or write "+OutwardURI(owners[0], texts.Cut(uri, maxNamed)),
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
	if named, original, ok := SplitURI(uri); ok && named == server {
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
		return query{Call: call, noun: kinds[kind].noun, send: func(ctx context.Context, s *session, c stages.Call, a *asking) (json.RawMessage, *rpc.Failure) {
			_ = lease.Grow(-lease.Used()) // of the answer before, which asked something
			r := &rpc.Request{Method: method, BeforeSend: c.Sent, Lease: lease, Ask: a.ask, Params: a.params(s, 0, members...), Headers: withTrace(nil, c.Trace)}
			if method != "completion/complete" {
				r.Name = c.Name
			}
			return s.request(ctx, r)
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
			err = sc.checkContents(raw, q, wantedLists[method])
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
	if why := sc.policy.refusalOf(kind, q.Name); why != "" {
		return stages.Errorf(stages.Denied, "use another one, or ask the operator", "%s may not be used: %s", q.label(sc.server.Name), why)
	}
	return nil
}

// wantedLists are the members without which a result is broken, by the method.
var wantedLists = map[string]string{"resources/read": "contents", "prompts/get": "messages"}

// checkContents refuses a result that is too long, no JSON object, a question, or without the list that is wanted.
func (sc *serverConn) checkContents(raw json.RawMessage, q query, list string) error {
	if size, most := int64(len(raw)), sc.pool.options.ResultMax; size > most {
		return stages.OverLimit("result", "the operator can raise the limit with --limit result=SIZE",
			"%s has %d bytes, more than the limit of %d", q.label(sc.server.Name), size, most)
	}
	r, err := decodeResult(raw)
	if err != nil {
		return stages.Errorf(stages.ToolError, "report it to the makers of the server", "the server sent a result that is not valid: %w", err)
	}
	if asks, inputs := r.requestedInputs(); asks || r.ResultType == "input_required" {
		return stages.Errorf(stages.ToolError, "use another one", "the %s asks for input from a person (%s), which the gateway cannot give", q.noun, inputs)
	}
	if list != "" && !hasList(raw, list) {
		return stages.Errorf(stages.ToolError, "report it to the makers of the server", "the server sent a result that is not valid: %s is not a list of objects", list)
	}
	return nil
}

// hasList reports whether a member of a JSON object, which must be there, is an array of objects.
func hasList(object []byte, member string) bool {
	found, other := false, false
	rpc.Members(object, func(name, value []byte) {
		if rpc.Name(name) != member {
			return
		}
		found = true
		if !rpc.Elements(value, func(one []byte) { other = other || one[0] != '{' }) {
			other = true
		}
	})
	return found && !other
}

// Outward returns the result as clients of the gateway see it: with the URIs that they read, and without what belongs to the apps
// of one server.
func (c Contents) Outward() json.RawMessage {
	if c.Verbatim {
		return c.Result
	}
	uri := func(one []byte) []byte { return changed(withoutApp(one), "uri", c.outwardURI) }
	block := func(one []byte) []byte { return outwardBlock(c.Server, one) }
	result := changed(c.Result, "contents", func(list []byte) []byte { return eachOf(list, uri) })
	result = changed(result, "content", func(list []byte) []byte { return eachOf(list, block) })
	return changed(result, "messages", func(list []byte) []byte {
		return eachOf(list, func(message []byte) []byte {
			return changed(message, "content", func(content []byte) []byte {
				if content[0] == '[' {
					return eachOf(content, block)
				}
				return block(content)
			})
		})
	})
}

func (c Contents) outwardURI(uri []byte) []byte { return outwardText(c.Server, uri) }

// outwardText is OutwardURI for a string of JSON. Anything else stays.
func outwardText(server string, uri []byte) []byte {
	if uri[0] != '"' {
		return uri
	}
	return []byte(texts.JSON(OutwardURI(server, rpc.Text(uri))))
}

// outwardBlock returns a content block of a server as clients of the gateway see it. Clients may read the type
// of a block in different ways, so every type is changed.
func outwardBlock(server string, block []byte) []byte {
	uri := func(v []byte) []byte { return outwardText(server, v) }
	block = changed(withoutApp(block), "uri", uri)
	return changed(block, "resource", func(r []byte) []byte { return changed(withoutApp(r), "uri", uri) })
}

// withoutApp takes the metadata of MCP Apps off a JSON object. An app reads the resources and calls the tools of its own
// server, by the names that they have there.
func withoutApp(object []byte) []byte { return changed(object, "_meta", WithoutApp) }

// WithoutApp returns metadata, a JSON object, without the members of MCP Apps. Anything else stays as it is.
func WithoutApp(meta []byte) []byte {
	found, out := false, []byte("{")
	if !rpc.Members(meta, func(name, value []byte) {
		if IsApp(rpc.Name(name)) {
			found = true
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), name...), `":`...), value...)
	}) || !found {
		return meta
	}
	return append(out, '}')
}

// IsApp reports whether a member of metadata belongs to MCP Apps: ui, and the older ui/resourceUri. Some readers ignore case.
func IsApp(name string) bool {
	name = strings.ToLower(name)
	return name == "ui" || strings.HasPrefix(name, "ui/")
}

// outwardBlocks changes the blocks of a result into those for clients of the gateway. The data of the result keeps the
// originals.
func outwardBlocks(ctx context.Context, blocks []json.RawMessage, server string, lease *memory.Lease) error {
	if ViewOf(ctx).Only() != "" {
		return nil
	}
	for i, block := range blocks {
		changed := outwardBlock(server, block)
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
	return changed(withoutApp(o.Raw), kinds[kind].key, func([]byte) []byte { return []byte(texts.JSON(key)) })
}

// changed returns a JSON object with another value of a member. Other spellings of the name, which some readers take for it,
// and repetitions are left out. An object without any of them stays as it is.
func changed(object []byte, member string, change func(value []byte) []byte) []byte {
	if !hasMember(object, member) {
		return object
	}
	out, found := bytes.Buffer{}, false
	out.Grow(len(object) + 128)
	out.WriteByte('{')
	if !rpc.Members(object, func(name, value []byte) {
		if decoded := rpc.Name(name); strings.EqualFold(decoded, member) {
			if found || decoded != member {
				return
			}
			name, value, found = []byte(member), change(value), true
		}
		if out.Len() > 1 {
			out.WriteByte(',')
		}
		out.WriteByte('"')
		out.Write(name)
		out.WriteString(`":`)
		out.Write(value)
	}) {
		return object
	}
	out.WriteByte('}')
	return out.Bytes()
}

// hasMember reports whether a JSON object has a member, in any spelling of its name.
func hasMember(object []byte, member string) (has bool) {
	rpc.Members(object, func(name, _ []byte) { has = has || strings.EqualFold(rpc.Name(name), member) })
	return has
}

// eachOf returns a JSON array with changed elements. Anything else stays as it is.
func eachOf(array []byte, change func(one []byte) []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(array) + 128)
	if !rpc.Elements(array, func(one []byte) {
		out.WriteByte(choose[byte](out.Len() == 0, '[', ','))
		out.Write(change(one))
	}) {
		return array
	}
	if out.Len() == 0 {
		out.WriteByte('[')
	}
	out.WriteByte(']')
	return out.Bytes()
}

// data makes pipeline data of a resource: one text is its text; several contents, or blobs, are one JSON object each.
func (c Contents) data() (res stages.Result, err error) {
	var list []json.RawMessage
	texts, single, many := true, json.RawMessage(nil), false
	rpc.Members(c.Result, func(name, value []byte) {
		if rpc.Name(name) != "contents" {
			return
		}
		rpc.Elements(value, func(one []byte) {
			if many = len(list) >= maxBlocks; many {
				return
			}
			list = append(list, one)
			single = nil
			rpc.Members(one, func(name, value []byte) {
				if rpc.Name(name) == "text" && value[0] == '"' {
					single = value
				}
			})
			texts = texts && single != nil
		})
	})
	switch {
	case many:
		return res, stages.Errorf(stages.LimitExceeded, askForLess, "%w", errManyBlocks)
	case len(list) == 0:
		return stages.Result{None: true}, nil
	case len(list) == 1 && texts:
		return stages.Result{Data: rpc.Unquote(single)}, nil
	}
	return c.objects(list, texts), nil
}

// objects are contents as one JSON object each.
func (c Contents) objects(list []json.RawMessage, texts bool) stages.Result {
	res := stages.Result{Kind: stages.Values}
	var out bytes.Buffer
	for i, one := range list {
		if i > 0 {
			out.WriteByte('\n')
		}
		from := int64(out.Len())
		out.Write(oneLine(one))
		res.Spans = append(res.Spans, stages.Span{From: from, To: int64(out.Len())})
		if !texts {
			block := slices.Concat([]byte(`{"type":"resource","resource":`), one, []byte(`}`))
			if !c.Verbatim {
				block = outwardBlock(c.Server, block)
			}
			res.Blocks = append(res.Blocks, block)
		}
	}
	res.Data = out.Bytes()
	return res
}
