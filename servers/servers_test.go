package servers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

func TestBuiltins(t *testing.T) {
	var names []string
	for _, b := range servers.Builtins() {
		names = append(names, b.Name)
		if b.Summary == "" || strings.Contains(b.Summary, "\n") {
			t.Errorf("%s: the summary is %q", b.Name, b.Summary)
		}
		for _, o := range b.Options {
			if o.Usage == "" || strings.Contains(o.Usage, "\n") {
				t.Errorf("%s: the usage of %s is %q", b.Name, o.Name, o.Usage)
			}
		}
		for _, options := range []string{"", "{}", "null"} {
			server, err := b.Open(json.RawMessage(options), servers.Host{})
			c := servertest.Connect(t, server, err) // checks the schemas
			if len(c.Tools) == 0 {
				t.Errorf("%s has no tools", b.Name)
			}
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("the names are not sorted: %v", names)
	}
}

func TestOptionErrors(t *testing.T) {
	for _, tt := range []struct{ server, options, want string }{
		{"filesystem", `{"rot":"."}`, `built-in server "filesystem": unknown option "rot", did you mean "root"; known: root, multi, allow_roots, reference, directories, read_only, backup, keep_versions, keep_bytes, max_bytes`},
		{"filesystem", `{"root":1}`, `built-in server "filesystem": option "root": want a string, got 1`},
		{"filesystem", `[]`, `built-in server "filesystem": want a JSON object of options, got []`},
		{"fetch", `{"allowPrivate":true}`, `built-in server "fetch": unknown option "allowPrivate", did you mean "allow_private"; known: allow_private, allow_hosts, max_bytes, timeout`},
		{"fetch", `{"allow_hosts":["a/b"]}`, `built-in server "fetch": option allow_hosts: "a/b" is not a pattern of a host name, such as "*.example.com"`},
		{"fetch", `{"timeout":"1h"}`, `built-in server "fetch": option timeout is 1h0m0s, want at most 10m0s, or 0 for 30s`},
		{"shell", `{"alow":["ls"]}`, `built-in server "shell": unknown option "alow", did you mean "allow"; known: working_dir, timeout, shell, allow, deny, no_stderr, env, max_output, sandbox, verbose`},
		{"demo", `{"latency":"2h"}`, `built-in server "demo": option latency is 2h0m0s, want 0 to 1m0s`},
		{"demo", `{"zzzz":1}`, `built-in server "demo": unknown option "zzzz"; known: latency, seed`},
	} {
		all := servers.Builtins()
		b := all[slices.IndexFunc(all, func(b servers.Builtin) bool { return b.Name == tt.server })]
		if _, err := b.Open(json.RawMessage(tt.options), servers.Host{}); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.options, err, tt.want)
		}
	}
}

// TestWrites: the table says which servers may change the machine, and with which options.
func TestWrites(t *testing.T) {
	writes := map[string]map[string]bool{
		"demo":       {`{}`: false},
		"fetch":      {`{"allow_private":true}`: false},
		"filesystem": {``: true, `{}`: true, `{"backup":true}`: true, `{"read_only":false}`: true, `{"multi":true}`: true, `{"reference":true}`: true, `{"read_only":true}`: false, `{"multi":true,"read_only":true}`: false},
		"pipe":       {`{}`: true},
		"shell":      {`{}`: true, `{"sandbox":true}`: true},
	}
	for _, b := range servers.Builtins() {
		if len(writes[b.Name]) == 0 {
			t.Errorf("the test has no row for %s", b.Name)
		}
		for options, want := range writes[b.Name] {
			if got := b.Writes(json.RawMessage(options)); got != want {
				t.Errorf("%s %s: got %t", b.Name, options, got)
			}
		}
	}
}
