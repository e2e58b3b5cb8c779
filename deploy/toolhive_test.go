package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// entry is what a test looks at of an entry of the registry.
type entry struct {
	Packages []struct{ Identifier string }
	Meta     map[string]map[string]map[string]json.RawMessage `json:"_meta"`
}

// publish fills the digest in as a release does, and returns the directory of what is published.
func publish(t *testing.T, digest string) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "published")
	return dir, exec.Command("./registry.sh", dir, digest).Run()
}

// digest is one of an image.
var digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)

// Nothing is published without the digest of an image.
func TestPublish(t *testing.T) {
	for _, wrong := range []string{"", "DIGEST", "sha256:DIGEST", digest[:70], digest + "0", strings.ToUpper(digest), digest + "\n" + digest, "latest"} {
		if dir, err := publish(t, wrong); err == nil {
			t.Errorf("%q is published", wrong)
		} else if _, err := os.Stat(dir); err == nil {
			t.Errorf("%q: something is written", wrong)
		}
	}
}

// The entry for ToolHive's registry is one that it takes, and the registry holds it and nothing else.
func TestToolHive(t *testing.T) {
	published, err := publish(t, digest)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	read(t, filepath.Join("testdata", "server.schema.json"), &schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	read(t, filepath.Join(published, "server.json"), &value)
	if err := resolved.Validate(value); err != nil {
		t.Error(err)
	}
	var unfilled any
	read(t, filepath.Join("toolhive", "server.json"), &unfilled)
	if resolved.Validate(unfilled) == nil {
		t.Error("the schema takes an entry without a digest")
	}
	for name, wrong := range map[string]func(map[string]any){
		"a name without a slash": func(v map[string]any) { v["name"] = "mcsh" },
		"a long description":     func(v map[string]any) { v["description"] = string(make([]byte, 101)) },
		"two packages":           func(v map[string]any) { v["packages"] = append(v["packages"].([]any), v["packages"].([]any)...) },
		"an unknown member":      func(v map[string]any) { v["image"] = "x" },
		"no extras":              func(v map[string]any) { delete(v, "_meta") },
	} {
		var other map[string]any
		read(t, filepath.Join(published, "server.json"), &other)
		wrong(other)
		if resolved.Validate(other) == nil {
			t.Errorf("the schema takes %s", name)
		}
	}
	var e entry
	read(t, filepath.Join(published, "server.json"), &e)
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
