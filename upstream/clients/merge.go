package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Outcomes of adding a server.
const (
	Added    = "added"
	Replaced = "replaced"
	Same     = "already there"
	Kept     = "differs from the one that is there, which was kept"
)

// Merge adds servers to a configuration of ours, which may be empty, and returns it with the outcome for each: existing
// ones stay as they are, unless replace is set. Comments stay; the layout is ours.
func Merge(config []byte, servers []Entry, inputs []map[string]any, replace bool) ([]byte, map[string]string, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		config = []byte("{\n\"mcpServers\": {}\n}\n")
	}
	root, err := parse(config)
	if err != nil {
		return nil, nil, err
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, nil, errNoObject
	}
	patch, outcome := additions(root, servers, replace)
	if len(patch) == 0 {
		return config, outcome, nil
	}
	patch = append(patch, missingInputs(root, servers, inputs)...)
	data, err := json.Marshal(patch)
	if err == nil {
		err = root.Patch(data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("adding servers: %w", err)
	}
	root.Format()
	return root.Pack(), outcome, nil
}

// additions are the operations that add servers, and the outcome for each.
func additions(root hujson.Value, servers []Entry, replace bool) ([]operation, map[string]string) {
	key := "/mcpServers"
	if root.Find(key) == nil && root.Find("/servers") != nil {
		key = "/servers"
	}
	var patch []operation
	if root.Find(key) == nil {
		patch = append(patch, operation{"add", key, map[string]any{}})
	}
	outcome := map[string]string{}
	for _, f := range servers {
		if f.Server == nil {
			continue
		}
		path := key + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(f.Name)
		was := root.Find(path)
		switch {
		case was == nil:
			outcome[f.Name] = Added
		case equal(*was, f.Server):
			outcome[f.Name] = Same
			continue
		case !replace:
			outcome[f.Name] = Kept
			continue
		default:
			outcome[f.Name] = Replaced
		}
		patch = append(patch, operation{"add", path, f.Server})
	}
	return patch, outcome
}

// operation is one step of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// missingInputs adds the declarations of the inputs that servers use.
func missingInputs(root hujson.Value, servers []Entry, inputs []map[string]any) []operation {
	var patch []operation
	there := root.Find("/inputs") != nil
	for _, in := range inputs {
		id, _ := in["id"].(string)
		if id == "" || bytes.Contains(root.Pack(), []byte(`"`+id+`"`)) || !uses(servers, "${input:"+id+"}") {
			continue
		}
		if !there {
			patch = append(patch, operation{"add", "/inputs", []any{}})
			there = true
		}
		patch = append(patch, operation{"add", "/inputs/-", in})
	}
	return patch
}

func uses(servers []Entry, variable string) bool {
	return slices.ContainsFunc(servers, func(f Entry) bool { return strings.Contains(texts.JSON(f.Server), variable) })
}

// equal reports whether an entry and a server are the same.
func equal(was hujson.Value, s *Server) bool {
	was = was.Clone()
	was.Standardize()
	var a, b any
	return json.Unmarshal(was.Pack(), &a) == nil && json.Unmarshal([]byte(texts.JSON(s)), &b) == nil && reflect.DeepEqual(a, b)
}
