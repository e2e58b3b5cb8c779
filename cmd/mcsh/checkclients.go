package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/upstream/clients"
)

// checkClients looks for clients that have the gateway, and servers beside it: an agent would call those itself.
func checkClients(_ context.Context, d *diagnosis) []finding {
	places, err := d.program.places()
	if err != nil {
		return []finding{{Status: statusNote, Text: err.Error()}}
	}
	var found []finding
	for _, c := range clients.All() {
		seen := map[string]bool{}
		for _, path := range c.Files(places) {
			data, err := namedfile.Read(path, clients.MaxFile)
			if err != nil || seen[path] { // the directory may be the user's home
				continue
			}
			seen[path] = true
			others, ours := c.Others(path, data, gatewayName)
			switch {
			case len(ours) == 0 && !c.Has(path, data, gatewayName):
			case len(others) == 0:
				found = append(found, finding{Status: statusOK, Text: fmt.Sprintf("%s has the gateway (%s)", c.Title, path)})
			default:
				found = append(found, finding{
					Status: statusWarning,
					Text:   fmt.Sprintf("%s has %s beside the gateway (%s): an agent calls those directly and carries what they return", c.Title, strings.Join(others, ", "), path),
					Hint:   fmt.Sprintf("mcsh import %s gives them to the gateway; then take them out there", c.Name),
				})
			}
		}
	}
	if len(found) == 0 {
		return []finding{{Status: statusNote, Text: "no MCP client has the gateway yet", Hint: "mcsh connect CLIENT writes it into the client's file; mcsh connect lists the clients"}}
	}
	return found
}
