package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/conformancetest"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/remote"
)

// TestConformance runs the official suite against a client that is made of a pool: this binary, as a child. Expected
// failures are named, with the reason.
func TestConformance(t *testing.T) {
	t.Parallel()
	child := mcptest.Child(t, "conformance")
	var env []string
	for name, value := range child.Env {
		env = append(env, name+"="+value)
	}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			conformancetest.Run{
				Revision: revision, Baseline: "testdata/conformance.yml",
				Also: []string{"json-schema-2020-12-preservation", "auth/client-credentials-basic"},
			}.Client(t, child.Name, env...)
		})
	}
	for _, scenario := range []string{"auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"} {
		t.Run(scenario, func(t *testing.T) { conformancetest.ClientScenario(t, "2025-03-26", scenario, child.Name, env...) })
	}
}

// A scenario is what the suite says of one, in the environment.
type scenario struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`

	ToolCalls []conformanceCall `json:"toolCalls"` // those to make

	person  func(scopes []string) error // signs in
	signIns int
}

type conformanceCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// conformanceClient does what a scenario asks: it lists the tools, and calls those named or else all.
func conformanceClient() {
	var s scenario
	if given := os.Getenv("MCP_CONFORMANCE_CONTEXT"); given != "" {
		if err := json.Unmarshal([]byte(given), &s); err != nil {
			conformanceFailed(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	endpoint := upstream.Endpoint{URL: os.Args[len(os.Args)-1], Name: "suite"}
	dir, err := os.MkdirTemp("", "mcsh-conformance")
	if err != nil {
		conformanceFailed(err)
	}
	defer os.RemoveAll(dir)
	kept, err := openLogins(dir)
	if err != nil {
		conformanceFailed(err)
	}
	switch name := os.Getenv("MCP_CONFORMANCE_SCENARIO"); name {
	case "elicitation-sep1034-client-defaults":
		conformanceFailed(errors.New("there is nobody whom the server could ask"))
	case "auth/client-credentials-basic":
		endpoint.OAuth = &upstream.OAuth{Issuer: issuerOf(endpoint.URL), ClientID: s.ClientID, ClientSecret: s.ClientSecret}
	default:
		endpoint.Logins = kept
		endpoint.SignIn = upstream.SignIn{ClientID: s.ClientID, ClientSecret: s.ClientSecret, ClientMetadataURL: clientDocument}
		if s.ClientSecret != "" {
			endpoint.SignIn.Issuer = issuerOf(endpoint.URL)
		}
	}
	pool := upstream.NewPool(upstream.Options{
		Sources:      []upstream.Source{upstream.Static{{Name: "suite", Dial: upstream.HTTP(endpoint)}}},
		ProbeTimeout: time.Minute, // the suite starts all its servers at once
	})
	s.person = func(scopes []string) error { return kept.signIn(ctx, endpoint, scopes) }
	err = s.play(ctx, pool)
	if closed := pool.Close(); err == nil {
		err = closed
	}
	if err != nil {
		conformanceFailed(err)
	}
}

// issuerOf is what an operator knows from the documents of a server: where one signs in.
func issuerOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		conformanceFailed(err)
	}
	resp, err := http.Get(u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource" + u.Path)
	if err != nil {
		conformanceFailed(err)
	}
	defer resp.Body.Close()
	var resource struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&resource); err != nil || len(resource.Servers) == 0 {
		conformanceFailed(fmt.Errorf("the resource has no authorization server: %v", err))
	}
	return resource.Servers[0]
}

func conformanceFailed(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (s *scenario) play(ctx context.Context, pool *upstream.Pool) error {
	listing := pool.Catalog(ctx)[0]
	for s.signIn(listing.Err) {
		listing = pool.Catalog(ctx)[0]
	}
	if listing.Err != nil {
		return listing.Err
	}
	calls := s.ToolCalls
	for _, t := range listing.Tools {
		switch {
		case s.ToolCalls != nil:
		case t.Name == "json_schema_2020_12_tool": // its schema is given back, as it came
			calls = append(calls, conformanceCall{"json_schema_echo", fmt.Appendf(nil, `{"schema":%s}`, t.InputSchema)})
		case t.Name == "json_schema_echo":
		case t.Name == "add_numbers":
			calls = append(calls, conformanceCall{t.Name, json.RawMessage(`{"a":5,"b":3}`)})
		default:
			args, _ := t.Example(ctx)
			calls = append(calls, conformanceCall{t.Name, args})
		}
	}
	for _, c := range calls {
		call := stages.Call{Server: listing.Server, Name: c.Name, Args: c.Arguments}
		_, err := pool.CallTool(ctx, call)
		for s.signIn(err) {
			_, err = pool.CallTool(ctx, call)
		}
		fmt.Printf("%s %s: %v\n", c.Name, c.Arguments, err) // what errors there may be, the suite judges
	}
	return nil
}

// signIn does what an error says to a person, a few times: mcsh login, with the scopes that it names.
func (s *scenario) signIn(err error) bool {
	if err == nil || !strings.Contains(err.Error(), "run mcsh login suite") && !remote.NeedsSignIn(err) || s.signIns == 3 {
		return false
	}
	s.signIns++
	_, named, _ := strings.Cut(err.Error(), "run mcsh login suite")
	var scopes []string
	for _, word := range strings.Fields(named) {
		if word != "--scope" {
			scopes = append(scopes, strings.TrimRight(word, ";,."))
		}
	}
	if err := s.person(scopes); err != nil {
		fmt.Println("signing in:", err)
		return false
	}
	return true
}
