package config

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcsh-dev/mcsh/upstream"
)

var update = flag.Bool("update", false, "write the results into the cases")

var testEnv = map[string]string{
	"TOKEN": "s3cret", "HOME": "/home/me", "EMPTY": "", "NAME": "TOKEN", "MCSH_INPUT_API_KEY": "given-key", "NUMBER": "17",
	"LINES": "line\nbreak", "BEARER": "tok-1234567",
}

func testLookup(name string) (string, bool) {
	v, ok := testEnv[name]
	return v, ok
}

func newBox(options json.RawMessage) (func(context.Context) (mcp.Transport, error), error) {
	if strings.Contains(string(options), `"rot"`) {
		return nil, fmt.Errorf(`unknown option "rot" beside %s`, options)
	}
	return func(context.Context) (mcp.Transport, error) { return nil, errors.New("a box is not reached") }, nil
}

// filesOf reads from a txtar archive; the first file is the configuration.
func filesOf(archive *txtar.Archive) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		for _, f := range archive.Files {
			if f.Name == filepath.ToSlash(path) && f.Name != "want" {
				return f.Data, nil
			}
		}
		return nil, fs.ErrNotExist
	}
}

func testFile(archive *txtar.Archive) *File {
	return &File{
		Path: archive.Files[0].Name, Lookup: testLookup, ReadFile: filesOf(archive), Builtins: map[string]Builtin{"box": newBox}, Options: map[string][]string{"box": {"env", "sandbox", "timeout"}},
	}
}

func TestFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/files/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file := testFile(archive)
			servers, err := file.Servers(t.Context())
			var got strings.Builder
			for i, e := range file.parse(t.Context()).entries {
				if servers[i].Name != e.name {
					t.Errorf("got the server %s for %s", servers[i].Name, e.name)
				}
				fmt.Fprintln(&got, show(e))
			}
			if err != nil {
				fmt.Fprintln(&got, err)
			}
			want := &archive.Files[len(archive.Files)-1]
			if *update {
				want.Data = []byte(got.String())
				if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// show writes an entry in one line.
func show(e *entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", e.name)
	switch {
	case e.Command != "":
		fmt.Fprintf(&b, " stdio %s %q", e.Command, e.Args)
	case e.URL != "":
		fmt.Fprintf(&b, " %s %s", map[bool]string{true: "sse", false: "http"}[e.endpoint().LegacySSE], e.URL)
	default:
		options, _ := json.Marshal(e.Options)
		fmt.Fprintf(&b, " builtin %s %s", e.Builtin, options)
	}
	if e.Dir != "" {
		fmt.Fprintf(&b, " in %s", e.Dir)
	}
	for _, m := range []struct {
		name   string
		values map[string]string
	}{{"env", e.Env}, {"headers", e.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(m.values)) {
			fmt.Fprintf(&b, " %s %s=%q", m.name, name, m.values[name])
		}
	}
	if e.TLS != (upstream.TLS{}) {
		fmt.Fprintf(&b, " tls %+v of %d files", e.TLS, len(e.Files))
	}
	if e.OAuth != nil {
		fmt.Fprintf(&b, " oauth %+v", *e.OAuth)
	}
	if signIn := e.endpoint().SignIn; !reflect.DeepEqual(signIn, upstream.SignIn{}) {
		fmt.Fprintf(&b, " sign-in %+v", signIn)
	}
	if e.Timeout > 0 {
		fmt.Fprintf(&b, " timeout %v", e.Timeout)
	}
	if e.StartTimeout > 0 {
		fmt.Fprintf(&b, " start timeout %v", e.StartTimeout)
	}
	if e.Asks != upstream.MayAsk || e.Roots != nil {
		fmt.Fprintf(&b, " asks %d roots %q", e.Asks, e.Roots)
	}
	if e.Protocol != upstream.AnyProtocol {
		fmt.Fprintf(&b, " protocol %d", e.Protocol)
	}
	if e.Concurrency > 0 {
		fmt.Fprintf(&b, " concurrency %d", e.Concurrency)
	}
	if e.Rate.N > 0 {
		fmt.Fprintf(&b, " rate %v", e.Rate)
	}
	for _, list := range []struct {
		name  string
		globs []string
	}{{"read-only", e.ReadOnly}, {"allow", e.Allow}, {"deny", e.Deny}} {
		if len(list.globs) > 0 {
			fmt.Fprintf(&b, " %s %v", list.name, list.globs)
		}
	}
	if e.With != nil {
		with, _ := json.Marshal(e.With)
		fmt.Fprintf(&b, " with %s", with)
	}
	if len(e.secrets) > 0 {
		fmt.Fprintf(&b, " hides %q", slices.Sorted(slices.Values(e.secrets)))
	}
	return b.String()
}

func TestReplace(t *testing.T) {
	archive := &txtar.Archive{Files: []txtar.File{{Name: "/etc/mcp.json"}, {Name: "/etc/key", Data: []byte("from-a-file\r\n")}, {Name: "/run/TOKEN", Data: []byte("x\x00")}}}
	for in, want := range map[string]string{
		"plain": "plain", "$TOKEN": "$TOKEN", "${TOKEN}": "s3cret", "a${TOKEN}b${TOKEN}": "as3cretbs3cret",
		"${EMPTY}": "", "${EMPTY:-x}": "x", "${NONE:-a:-b}": "a:-b", "$$": "$", "$${TOKEN}": "${TOKEN}", "$": "$",
		"${TOKEN:?no}": "s3cret", "${workspaceFolder}": "/etc", "${NONE:-}": "", "${workspaceFolderBasename}": "etc",
		"${NONE:-${EMPTY:-${TOKEN}}}!": "s3cret!", "${NONE:-{}}": "{}", "{${TOKEN}}": "{s3cret}", "${env:TOKEN}": "s3cret",
		"${env:NONE:-x}": "x", "${userHome}${/}x": "/home/me/x", "${NONE:-$$}": "$", "${input:api-key}": "given-key",
		"${file:key}": "from-a-file", "${file:/etc/${NONE:-key}}": "from-a-file", "${TOKEN:-${NONE}}": "s3cret",
		"${EMPTY:?give it}":    "error EMPTY: give it",
		"${EMPTY:?}":           "error EMPTY: it must be set",
		"${NONE}":              "error the variable NONE is not set; set it, or write ${NONE:-default}",
		"${NONE:-${NONE2}}":    "error the variable NONE2 is not set; set it, or write ${NONE2:-default}",
		"${file:none}":         "error ${file:none}: there is no file /etc/none",
		"${file:/run/${NAME}}": "error ${file:/run/${NAME}}: the file is not text",
		"${file:}":             "error ${file:} names no file",
		"${command:x}":         "error ${command:x} is not understood; want ${VAR}, ${VAR:-default}, ${VAR:?message}, ${env:VAR}, ${file:PATH} or ${input:ID}; a dollar sign itself is $$",
		"${":                   "error ${ has no closing brace",
		"${A:-${B}":            "error ${A:-${B} has no closing brace",
		"${input:other}":       "error ${input:other} asks a person, and nobody is there; set the variable MCSH_INPUT_OTHER",
		strings.Repeat("${NONE:-", 20) + strings.Repeat("}", 20): "error variables are nested more than 10 deep",
	} {
		e := &entry{reader: &reader{file: testFile(archive), read: checksums{}}}
		got, err := e.replace(in, 0)
		if err != nil {
			got = "error " + err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// TestWorkspace: files that clients keep in a directory of their own belong to the project above.
func TestWorkspace(t *testing.T) {
	for path, want := range map[string]string{
		"/p/.vscode/mcp.json": "/p", "/p/.cursor/mcp.json": "/p", "/p/mcp.json": "/p", "/p/.vscode.d/mcp.json": "/p/.vscode.d",
	} {
		if got, err := (&File{Path: path}).workspace(); got != want || err != nil {
			t.Errorf("%s: got %s, %v, want %s", path, got, err, want)
		}
	}
}

// TestVersion: two readings of the same file are the same servers, and every member makes a difference.
func TestVersion(t *testing.T) {
	versionOf := func(member string) string {
		t.Helper()
		name := "mcp.json"
		f := testFile(&txtar.Archive{Files: []txtar.File{{Name: name, Data: []byte(`{"mcpServers": {"a": {"command": "x"` + member + `}}}`)}}})
		servers, err := f.Servers(t.Context())
		if err != nil || len(servers) != 1 {
			t.Fatalf("%s: %v", member, err)
		}
		return servers[0].Version
	}
	seen := map[string]string{}
	for _, member := range []string{
		"", `, "args": ["a"]`, `, "args": ["b"]`, `, "env": {"A": "1"}`, `, "env": {"A": "2"}`, `, "cwd": "/"`, `, "timeout": 1`,
		`, "concurrency": 1`, `, "readOnly": ["a"]`, `, "tools": {"allow": ["a"]}`, `, "tools": {"deny": ["a"]}`,
		`, "with": {"a": 1}`, `, "with": {"a": 2}`, `, "probe": true`,
		`, "asks": true`, `, "asks": false`, `, "roots": ["/a"]`, `, "roots": ["file:///b"]`,
		`, "startTimeout": 1`, `, "protocol": "2025-11-25"`, `, "protocol": "2026-07-28"`,
	} {
		v := versionOf(member)
		if other, twice := seen[v]; twice {
			t.Errorf("%s and %s have one version", member, other)
		}
		seen[v] = member
		if versionOf(member) != v || versionOf(member+", // comment\n\"description\": \"of no matter\"") != v {
			t.Errorf("%s: the same server has two versions", member)
		}
	}
}

// TestRegularFiles: what is no file is not read, and does not make anybody wait.
func TestRegularFiles(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, "long")
	if err := os.WriteFile(long, make([]byte, MaxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "it is a directory and no regular file", "/dev/zero": "it is a device and no regular file", long: "it is longer than 4 MiB",
		dir + "/none": "there is no file " + dir + "/none", long + "/x": "not a directory",
	} {
		_, err := (&File{Path: path}).Servers(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// fixedFiles are what the fuzzer's configurations can name.
func fixedFiles(config []byte) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		switch path {
		case "mcp.json":
			return config, nil
		case "key":
			return []byte("plant3d-in-a-file\n"), nil
		case ".env":
			return []byte("A_KEY=plant3d-in-env\n"), nil
		}
		return nil, fs.ErrNotExist
	}
}

// FuzzFile: nothing that a file says ends in a panic, a server that is none, or an error without words or with a
// secret.
func FuzzFile(f *testing.F) {
	names, err := filepath.Glob("testdata/files/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","args":["${A:-$}"]},"b":{"builtin":"box","o":[{}]}}}`))
	f.Add([]byte(`{"servers":{"a":{"url":"http://${TOKEN}","headers":{},"tools":{},"timeout":"${SECRET}"}}}`))
	f.Add([]byte(`{"servers":{"a":{"command":"${file:key}","envFile":".env","concurrency":"${file:key}"}}}`))
	secret := func(name string) (string, bool) {
		if name == "SECRET" {
			return "plant3d-in-a-variable", true
		}
		return testLookup(name)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &File{Path: "mcp.json", ReadFile: fixedFiles(data), Lookup: secret, Builtins: map[string]Builtin{"box": newBox}}
		servers, err := c.Servers(t.Context())
		for _, s := range servers {
			if s.Dial == nil || strings.TrimSpace(s.Name) == "" || s.Version == "" || s.Where == "" {
				t.Errorf("got the server %+v", s)
			}
		}
		if err == nil {
			return
		}
		for _, one := range strings.Split(err.Error(), "\n") {
			if one == "" {
				t.Errorf("an error without words: %q", err)
			}
		}
		if !strings.Contains(string(data), "plant3d") && strings.Contains(err.Error(), "plant3d") {
			t.Errorf("a secret in %q", err)
		}
	})
}
