package cli

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/mcsh-dev/mcsh/servers/strictjson"
)

// An option is a flag by itself, and what flags say is what the options become.
func TestOptions(t *testing.T) {
	type options struct {
		Name   string        `json:"name" usage:"a"`
		On     bool          `json:"on" usage:"b"`
		Most   int           `json:"most_bytes" usage:"c"`
		Wait   time.Duration `json:"wait" usage:"d"`
		Hosts  []string      `json:"hosts" usage:"e"`
		Hidden string        `json:"-"`
		Unset  string        `json:"unset" usage:"g"`
	}
	flags := pflag.NewFlagSet("server", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	given := addOptions(flags, strictjson.Fields[options](), nil)
	args := []string{"--name", "x", "--on", "--most-bytes=7", "--wait", "1.5s", "--hosts", "a,b", "--hosts", "c"}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	want := options{Name: "x", On: true, Most: 7, Wait: 1500 * time.Millisecond, Hosts: []string{"a,b", "c"}}
	var got options
	if err := strictjson.Decode("option", given(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(given(), &members); err != nil {
		t.Fatal(err)
	}
	if _, ok := members["unset"]; ok {
		t.Errorf("an option that was not given is there: %s", given())
	}
}
