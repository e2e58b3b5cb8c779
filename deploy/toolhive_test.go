package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// entry is what a test looks at of an entry of the registry.
type entry struct {
	Packages []struct{ Identifier string }
	Meta     map[string]map[string]map[string]json.RawMessage `json:"_meta"`
}

// The entry for ToolHive's registry is one that it takes, and the registry holds it and nothing else.
func TestToolHive(t *testing.T) {
	var schema jsonschema.Schema
	read(t, filepath.Join("testdata", "server.schema.json"), &schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	read(t, filepath.Join("toolhive", "server.json"), &value)
	if err := resolved.Validate(value); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string]func(map[string]any){
		"a name without a slash": func(v map[string]any) { v["name"] = "mcsh" },
		"a long description":     func(v map[string]any) { v["description"] = string(make([]byte, 101)) },
		"two packages":           func(v map[string]any) { v["packages"] = append(v["packages"].([]any), v["packages"].([]any)...) },
		"an unknown member":      func(v map[string]any) { v["image"] = "x" },
		"no extras":              func(v map[string]any) { delete(v, "_meta") },
	} {
		var other map[string]any
		read(t, filepath.Join("toolhive", "server.json"), &other)
		wrong(other)
		if resolved.Validate(other) == nil {
			t.Errorf("the schema takes %s", name)
		}
	}
	var e entry
	read(t, filepath.Join("toolhive", "server.json"), &e)
	extras := e.Meta["io.modelcontextprotocol.registry/publisher-provided"]["io.github.stacklok"]
	if got := slices.Collect(maps.Keys(extras)); !slices.Equal(got, []string{e.Packages[0].Identifier}) {
		t.Errorf("the extras are those of %q, the image is %s", got, e.Packages[0].Identifier)
	}
}

// The registry is a file of the upstream format with one server.
func TestRegistry(t *testing.T) {
	var registry struct {
		Schema  string `json:"$schema"`
		Version string
		Meta    struct {
			Updated time.Time `json:"last_updated"`
		}
		Data struct{ Servers []json.RawMessage }
	}
	read(t, filepath.Join("toolhive", "registry.json"), &registry)
	if registry.Version != "1.0.0" || registry.Meta.Updated.IsZero() || registry.Schema == "" || len(registry.Data.Servers) != 1 {
		t.Fatalf("got %+v", registry)
	}
	var want, got bytes.Buffer
	data, err := os.ReadFile(filepath.Join("toolhive", "server.json"))
	if err == nil {
		err = json.Compact(&want, data)
	}
	if err == nil {
		err = json.Compact(&got, registry.Data.Servers[0])
	}
	if err != nil || got.String() != want.String() {
		t.Errorf("%v: the registry holds another entry than server.json:\n%s\n%s", err, &got, &want)
	}
}

// read reads a file of JSON.
func read(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
