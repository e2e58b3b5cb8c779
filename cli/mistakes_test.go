//go:build linux

package cli

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/servers"
)

// A mistake is one of people who attach servers and write pipelines, with the error that they get.
type mistake struct {
	Mistake string
	Tested  string // the file whose tests make it, below the root of the repository
	Says    []string

	// If it is made here: the only server, whose url may begin with HTTP or HTTPS for one that speaks HTTP.
	Config  json.RawMessage
	Args    []string
	Status  int
	Sandbox bool
}

// TestMistakes makes every mistake of a list, or knows where it is made.
func TestMistakes(t *testing.T) {
	t.Parallel() // it waits
	text, err := os.ReadFile("testdata/mistakes.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []mistake
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	binary := oneBinary(t)
	demo := demoOverHTTP(t)
	for _, m := range list {
		t.Run(m.Mistake, func(t *testing.T) {
			if m.Tested != "" {
				said, err := os.ReadFile(filepath.Join("..", m.Tested))
				if err != nil {
					t.Fatal(err)
				}
				m.wantSaid(t, string(said))
				return
			}
			t.Parallel()
			s := prepare(t, binary, m.Args...)
			m.configure(t, s, demo)
			s.Env = append(s.Env, "MCSH_STATE=off", "HOME="+s.Dir, "MCSH_SANDBOX=local")
			_ = s.Run() // its status is looked at
			if got := s.ProcessState.ExitCode(); got != m.Status {
				t.Errorf("exit status %d, want %d", got, m.Status)
			}
			m.wantSaid(t, s.stdout.String()+s.stderr.String())
			s.leftNothing(t)
		})
	}
}

// configure writes the configuration if there is one.
func (m mistake) configure(t *testing.T, s *started, demo string) {
	t.Helper()
	if m.Config == nil {
		return
	}
	server := strings.NewReplacer("HTTPS/", strings.Replace(demo, "http:", "https:", 1)+"/", "HTTP/", demo+"/").Replace(string(m.Config))
	if err := os.WriteFile(filepath.Join(s.Dir, "mcp.json"), []byte(`{"mcpServers": {"s": `+server+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Args = append(s.Args, "--config", "mcp.json")
}

func (m mistake) wantSaid(t *testing.T, said string) {
	t.Helper()
	for _, want := range m.Says {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said in %.3000s", want, said)
		}
	}
}

// demoOverHTTP serves a built-in server.
func demoOverHTTP(t *testing.T) string {
	t.Helper()
	for _, b := range servers.Builtins() {
		if b.Name == "demo" {
			server, err := b.Open(nil, servers.Host{})
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(gateway.NewEndpoint(server.Server, gateway.HTTPOptions{}).Handler())
			t.Cleanup(s.Close)
			return s.URL
		}
	}
	t.Fatal("there is no demo")
	return ""
}
