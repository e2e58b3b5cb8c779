package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// bareVariable is a variable as shells write it, in a string of JSON. Nobody replaces it.
var bareVariable = regexp.MustCompile(`"(?:[^"\\]*[^"\\$])?\$([A-Z_][A-Z0-9_]*)[^"]*"`)

// checkConfig says which configuration is read, and what in it may not mean what it looks like. Its mistakes are those of
// the servers' row.
func checkConfig(_ context.Context, d *diagnosis) []finding {
	files := d.program.configFiles(d.settings)
	if len(files) == 0 {
		return []finding{{Status: statusNote, Text: "there is no configuration: the built-in servers are there", Hint: "mcsh import takes the servers of other MCP clients"}}
	}
	var found []finding
	for _, path := range files {
		data, err := namedfile.Read(path, config.MaxFile)
		if err != nil {
			continue // the servers' row says it
		}
		found = append(found, finding{Status: statusOK, Text: path + " is read"})
		for i, line := range bytes.Split(data, []byte("\n")) {
			for _, m := range bareVariable.FindAllSubmatch(line, -1) {
				found = append(found, finding{
					Status: statusWarning, Text: fmt.Sprintf("%s:%d: $%s is not replaced here", path, i+1, m[1]),
					Hint: fmt.Sprintf("write ${%s}, or $$%s where a dollar sign is meant", m[1], m[1]),
				})
			}
		}
	}
	return found
}
