//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// users is a site that lists users with the addresses of their profiles, some of whom are active.
func users(t *testing.T) *httptest.Server {
	t.Helper()
	names := []string{"Grace", "Ada", "Edsger", "Barbara", "Alan"}
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("GET /users", func(w http.ResponseWriter, _ *http.Request) {
		var list []object
		for i := range names {
			list = append(list, object{"id": i, "profile_url": fmt.Sprintf("%s/profiles/%d", s.URL, i)})
		}
		writeJSON(w, list)
	})
	mux.HandleFunc("GET /profiles/{id}", func(w http.ResponseWriter, r *http.Request) {
		var id int
		if _, err := fmt.Sscan(r.PathValue("id"), &id); err != nil || id >= len(names) {
			http.NotFound(w, r)
			return
		}
		writeJSON(w, object{"name": names[id], "active": id != 2})
	})
	return s
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

const activeUsers = `[{"active":true,"name":"Ada"},{"active":true,"name":"Alan"},{"active":true,"name":"Barbara"},{"active":true,"name":"Grace"}]` + "\n"

// printed is the example of the documentation.
const printed = `[
  {"type": "tool", "name": "fetch", "server": "fetch", "args": {"url": "https://api.example.com/users"}},
  {"type": "command", "command": "jq", "args": ["-c", ".[] | {url: .profile_url}"]},
  {"type": "tool", "name": "fetch", "server": "fetch", "for_each": true},
  {"type": "command", "command": "jq", "args": ["-c", "[.[] | select(.active)] | sort_by(.name)"]}
]`

func onHost(site *httptest.Server) string {
	return strings.ReplaceAll(printed, "https://api.example.com", site.URL)
}

func TestPrintedExample(t *testing.T) {
	t.Parallel()
	t.Run("built-in", func(t *testing.T) {
		t.Parallel()
		servers := object{"fetch": object{"builtin": "fetch", "allow_private": true}}
		wantActive(t, mcsh(t, servers, "run", onHost(users(t))))
	})
	t.Run("npm", func(t *testing.T) {
		t.Parallel()
		servers := object{"fetch": nodeServer(t, "@tokenizin/mcp-npx-fetch")}
		// The tool that answers with what the site sent has another name there.
		wantActive(t, mcsh(t, servers, "run", strings.ReplaceAll(onHost(users(t)), `"name": "fetch"`, `"name": "fetch_json"`)))
	})
	t.Run("PyPI", func(t *testing.T) {
		t.Parallel()
		pythonFetch(t)
	})
}

func wantActive(t *testing.T, p *process) {
	t.Helper()
	if r := p.run(t); r.status != 0 || r.stdout != activeUsers {
		t.Errorf("status %d, got %q, want %q; %s", r.status, r.stdout, activeUsers, r.stderr)
	}
}

// pythonFetch runs the example with a server that writes two lines of its own before what it has fetched, so that its
// text is no JSON and a stage must take them off.
func pythonFetch(t *testing.T) {
	program := os.Getenv("MCSH_TEST_FETCH")
	if _, err := os.Stat(program); err != nil {
		parttest.Missing(t, "MCSH_TEST_FETCH does not name mcp-server-fetch from PyPI; .ci/run parts installs it")
	}
	servers := object{"fetch": object{"command": program, "args": []string{"--ignore-robots-txt", "--allow-private-ips"}}}
	site := users(t)
	r := mcsh(t, servers, "run", onHost(site)).run(t)
	for _, want := range []string{"Stage 2 (command jq) failed", "unexpected 'C' at line 1", "looks like text, not JSON", "Contents of " + site.URL + "/users"} {
		if r.status == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("status %d; %q does not say %q", r.status, r.stderr, want)
		}
	}
	fetch := object{"type": "tool", "server": "fetch", "name": "fetch"}
	data := command("tail", "-n", "+3")
	got := must(t, servers,
		with(fetch, "args", object{"url": site.URL + "/users"}), data,
		command("jq", "-c", ".[] | {url: .profile_url}"),
		object{"type": "for_each", "stages": []object{fetch, data}},
		command("jq", "-c", "[.[] | select(.active)] | sort_by(.name)"))
	if got != activeUsers {
		t.Errorf("got %q, want %q", got, activeUsers)
	}
}
