package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/internal/oidctest"
)

// A groupsTest is a running gateway with groups and callers.
type groupsTest struct {
	*controlTest
	base    string
	callers map[string]string // their tokens
}

// write replaces the configuration.
func (g *groupsTest) write(groups string) {
	g.Helper()
	text := `{"mcpServers": {"demo": {"builtin": "demo"}, "fs-a": {"builtin": "filesystem", "root": "."}}, "groups": ` + groups + `}`
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		g.Fatal(err)
	}
}

// ask sends a request, and returns the status and the answer.
func (g *groupsTest) ask(caller, path string) string {
	g.Helper()
	tool := ""
	if strings.HasPrefix(path, "/mcp") {
		tool = "list_all_tools"
	}
	status, text := askHTTP(g, g.base+path, g.callers[caller], tool, `{"detail":"names"}`)
	said := fmt.Sprint(status)
	for _, server := range []string{"demo", "fs-a"} {
		if strings.Contains(text, server) && path != "/metrics" { // that names a server once it has been asked
			said += " " + server
		}
	}
	return said
}

// TestGroups: callers of a file of tokens and of an issuer have the servers of their groups, and no /metrics or control API;
// a changed configuration gives them others.
func TestGroups(t *testing.T) {
	t.Parallel() // it waits
	g := &groupsTest{controlTest: newControlTest(t), callers: map[string]string{}}
	g.write(`{"dev": ["demo"], "files": ["fs-*"]}`)
	issuer, dir := oidctest.New(t), t.TempDir()
	var calls, controls []byte
	for name, groups := range map[string]string{"alice": "dev", "root": "*", "none": ""} {
		token, entry, err := tokens.New(name, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		entry.Groups, g.callers[name] = groups, token
		calls = tokens.Add(calls, entry)
		if token, entry, err = tokens.New("control-"+name, time.Time{}); err != nil {
			t.Fatal(err)
		}
		entry.Groups, g.callers["control "+name] = groups, token
		controls = tokens.Add(controls, entry)
	}
	for name, data := range map[string][]byte{"calls": calls, "controls": controls} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, teams := range map[string]any{"ida": []string{"files", "everybody"}, "ivo": nil} {
		claims := issuer.Claims(name, "gateway")
		if teams != nil {
			claims["teams"] = teams
		}
		g.callers[name] = issuer.Sign("1", claims)
	}
	s := g.serve("--listen", "127.0.0.1:0", "--tokens", filepath.Join(dir, "calls"), "--control-tokens", filepath.Join(dir, "controls"),
		"--oidc-issuer", issuer.URL, "--oidc-audience", "gateway", "--oidc-groups-claim", "teams")
	_, rest, _ := strings.Cut(s.err.String(), "listens on ")
	g.base = strings.TrimSuffix(strings.Fields(rest)[0], "/mcp")
	eventually(t, "the issuer's keys", func() (string, bool) { said := g.ask("ida", "/mcp"); return said, !strings.HasPrefix(said, "503") })
	g.wants(map[string]string{
		"alice /mcp": "200 demo", "alice /mcp/dev": "200 demo", "alice /mcp/files": "404", "alice /mcp/gone": "404", "alice /metrics": "403",
		"root /mcp": "200 demo fs-a", "root /mcp/files": "200 fs-a", "root /metrics": "200",
		"none /mcp": "200", "none /mcp/dev": "404", "none /metrics": "403",
		"ida /mcp": "200 fs-a", "ida /mcp/files": "200 fs-a", "ida /mcp/dev": "404", "ida /mcp/everybody": "404",
		"ivo /mcp": "200", "ivo /mcp/files": "404",
		"control alice /control/v1/servers": "403", "control none /control/v1/servers": "403", "control root /control/v1/servers": "200 demo fs-a",
		"root /control/v1/servers": "401", "nobody /mcp/dev": "401",
	})
	rows := g.run(exitOK, "gateways", "--state", g.state)
	if d := cmp.Diff([]any{"dev", "files"}, rows[0]["groups"]); d != "" {
		t.Error(d)
	}
	g.write(`{"dev": ["fs-a"]}`)
	eventually(t, "other groups", func() (string, bool) { said := g.ask("alice", "/mcp"); return said, said == "200 fs-a" })
	g.wants(map[string]string{"alice /mcp/dev": "200 fs-a", "ida /mcp": "200", "ida /mcp/files": "404", "root /mcp": "200 demo fs-a"})
}

func (g *groupsTest) wants(answers map[string]string) {
	g.Helper()
	for request, want := range answers {
		at := strings.LastIndexByte(request, ' ')
		if got := g.ask(request[:at], request[at+1:]); got != want {
			g.Errorf("%s: got %s, want %s", request, got, want)
		}
	}
}
