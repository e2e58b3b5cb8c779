// Package outward writes what servers send as clients of a gateway see it: with URIs that say which server has a resource, and without
// what belongs to the apps of one server.
package outward

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// serversURI begins the URIs by which clients of a gateway read the resources of its servers.
const serversURI = "mcsh://servers/"

// URI is the URI, or the template, by which clients of a gateway read a resource of one of its servers. The original
// stays verbatim at its end, so a template stays one.
func URI(server, original string) string {
	return serversURI + url.PathEscape(server) + "/" + original
}

// Split returns the parts of a URI that [URI] has made, and reports whether it is one.
func Split(uri string) (server, original string, ok bool) {
	rest, ok := strings.CutPrefix(uri, serversURI)
	if !ok {
		return "", "", false
	}
	name, original, _ := strings.Cut(rest, "/")
	server, err := url.PathUnescape(name)
	return server, original, err == nil && server != ""
}

// Result returns a result of a server as clients of the gateway see it.
func Result(server string, result json.RawMessage) json.RawMessage {
	uri := func(one []byte) []byte { return object(server, one) }
	block := func(one []byte) []byte { return Block(server, one) }
	result = rpc.EditMember(result, "contents", func(list []byte) []byte { return rpc.EditElements(list, uri) })
	result = rpc.EditMember(result, "content", func(list []byte) []byte { return rpc.EditElements(list, block) })
	return rpc.EditMember(result, "messages", func(list []byte) []byte {
		return rpc.EditElements(list, func(message []byte) []byte {
			return rpc.EditMember(message, "content", func(content []byte) []byte {
				if content[0] == '[' {
					return rpc.EditElements(content, block)
				}
				return block(content)
			})
		})
	})
}

// Block returns a content block of a server as clients of the gateway see it. Clients may read the type of a block in different
// ways, so every type is changed.
func Block(server string, block []byte) []byte {
	return rpc.EditMember(object(server, block), "resource", func(r []byte) []byte { return object(server, r) })
}

// object returns a JSON object with the URI that clients read, and without the metadata of MCP Apps. An app reads the resources and
// calls the tools of its own server, by the names that they have there.
func object(server string, object []byte) []byte {
	return Named(object, "uri", func(uri []byte) []byte {
		if uri[0] != '"' {
			return uri
		}
		return []byte(texts.JSON(URI(server, rpc.Text(uri))))
	})
}

// Named returns a JSON object with another value of the member that names it, and without the metadata of MCP Apps.
func Named(object []byte, member string, name func(value []byte) []byte) []byte {
	return rpc.EditMember(rpc.EditMember(object, "_meta", WithoutApp), member, name)
}

// WithoutApp returns metadata, a JSON object, without the members of MCP Apps. Anything else stays as it is.
func WithoutApp(meta []byte) []byte {
	found := false
	less := rpc.Without(meta, func(name string) bool { found = found || IsApp(name); return IsApp(name) })
	if !found {
		return meta
	}
	return less
}

// IsApp reports whether a member of metadata belongs to MCP Apps: ui, and the older ui/resourceUri. Some readers ignore case.
func IsApp(name string) bool {
	name = strings.ToLower(name)
	return name == "ui" || strings.HasPrefix(name, "ui/")
}
