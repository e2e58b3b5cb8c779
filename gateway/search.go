package gateway

import "github.com/mcsh-dev/mcsh/upstream"

// A FoundTool is a tool with the name of its server.
type FoundTool struct {
	Server string
	Tool   upstream.CatalogTool
}

// Search are the tools that fit a query, best first, as list_all_tools finds them.
func Search(listings []upstream.Listing, query string) []FoundTool {
	list := toolList{listings: listings}
	var found []FoundTool
	for _, t := range list.ranked(query) {
		found = append(found, FoundTool{t.server.Server, *t.tool})
	}
	return found
}
