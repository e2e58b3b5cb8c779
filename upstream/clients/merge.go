package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// What has become of a server that was to be taken.
const (
	Added    = "added"
	Replaced = "replaced"
	Same     = "already there"
	Kept     = "differs from the one that is there, which was kept"
)

// Merge adds servers to a configuration of ours, which may be empty, and returns it with what has become of each: those
// that are there already stay as they are, unless replace is set. Comments stay; the layout is ours.
func Merge(config []byte, servers []Found, inputs []map[string]any, replace bool) ([]byte, map[string]string, error) {
	if len(bytes.TrimSpace(config)) == 0 {
		config = []byte("{\n\"mcpServers\": {}\n}\n")
	}
	root, err := hujson.Parse(config)
	if err != nil {
		return nil, nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, nil, fmt.Errorf("want an object with servers")
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

// additions are the steps that add servers, and what becomes of each.
func additions(root hujson.Value, servers []Found, replace bool) ([]operation, map[string]string) {
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

// operation is one step of RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// missingInputs adds the declarations of the inputs that servers use.
func missingInputs(root hujson.Value, servers []Found, inputs []map[string]any) []operation {
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

func uses(servers []Found, variable string) bool {
	for _, f := range servers {
		data, _ := json.Marshal(f.Server) // strings and maps of them can always be encoded
		if bytes.Contains(data, []byte(variable)) {
			return true
		}
	}
	return false
}

// equal reports whether an entry says what a server says.
func equal(was hujson.Value, s *Server) bool {
	was = was.Clone()
	was.Standardize()
	data, err := json.Marshal(s)
	if err != nil {
		return false
	}
	var a, b any
	return json.Unmarshal(was.Pack(), &a) == nil && json.Unmarshal(data, &b) == nil && reflect.DeepEqual(a, b)
}
