//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

// A job is a session of [servertest] for a client.
type job struct {
	Target any               `json:"target"` // an address, or a command with its arguments
	Token  string            `json:"token"`
	Dir    string            `json:"cwd"`
	Calls  []servertest.Call `json:"calls"`

	server  string
	session servertest.Session
	place   servertest.Place
	tmp     string // of a command
}

// A worked is what a client has of a job.
type worked struct {
	Tools   []string          `json:"tools"`
	Results []json.RawMessage `json:"results"`
}

// newJob prepares a session in a directory of its own, which a web server shows too.
func newJob(t *testing.T, server string, s servertest.Session) job {
	t.Helper()
	dir := s.Dir(t)
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(os.DirFS(dir)))
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.Copy(w, r.Body) // the client sees what is missing
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	j := job{Dir: dir, server: server, session: s, place: servertest.Place{Dir: dir, URL: web.URL}}
	for _, c := range s.Calls {
		c.Args, c.Result = json.RawMessage(j.place.Real(string(c.Args))), nil
		j.Calls = append(j.Calls, c)
	}
	return j
}

// args are the arguments of mcsh.
func (j job) args() []string {
	args := []string{"server", j.server}
	for _, flag := range j.session.Flags {
		args = append(args, j.place.Real(flag))
	}
	return args
}

// overStdio lets the client start the server.
func (j job) overStdio(t *testing.T) job {
	j.tmp = t.TempDir()
	j.Target = append([]string{"env", "TMPDIR=" + j.tmp, "TZ=UTC", "MCSH_SANDBOX=local", mcshPath()}, j.args()...)
	return j
}

// overHTTP starts the server for clients with a token.
func (j job) overHTTP(t *testing.T) job {
	t.Helper()
	_, j.Target, j.Token = builtinHTTP(t, j.Dir, j.args()...)
	return j
}

// builtinHTTP starts a built-in server whose callers authenticate, and returns its address and a token.
func builtinHTTP(t *testing.T, dir string, args ...string) (p *process, url, token string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	token = newToken(t, file, "e2e")
	p = program(t, dir, append(args, "--listen", "127.0.0.1:0", "--tokens", file)...)
	p.Env = append(p.Env, "TZ=UTC") // of the times in texts
	return p, p.listening(t), token
}

// builtinClients do jobs.
var builtinClients = []struct {
	name string
	over func(job, *testing.T) job
	do   func(*testing.T, []job) []worked
}{
	{"go over stdio", job.overStdio, goJobs(versions[0])},
	{"go over HTTP", job.overHTTP, goJobs(versions[1])},
	{"Python over stdio", job.overStdio, pythonJobs},
	{"Python over HTTP", job.overHTTP, pythonJobs},
	{"TypeScript v1 over stdio", job.overStdio, nodeJobs("sdk", "legacy")},
	{"TypeScript v1 over HTTP", job.overHTTP, nodeJobs("sdk", "legacy")},
	{"TypeScript v2 over stdio", job.overStdio, nodeJobs("client", "auto")},
	{"TypeScript v2 over HTTP", job.overHTTP, nodeJobs("client", "auto")},
}

// builtinNight are the clients that have the other transport by day.
var builtinNight = []string{"Python over stdio", "TypeScript v1 over stdio", "TypeScript v2 over HTTP"}

// TestBuiltinCalls: each tool of each built-in server answers each client as servertest's calls say. UPDATE=1 writes what
// the first client gets. By day each SDK has one transport, and that of Go both.
func TestBuiltinCalls(t *testing.T) {
	t.Parallel()
	for i, c := range builtinClients {
		if slices.Contains(builtinNight, c.name) && !parttest.Night() {
			continue
		}
		update := os.Getenv("UPDATE") != ""
		if update && i > 0 {
			break
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var jobs []job
			for _, b := range servers.Builtins() {
				for _, s := range servertest.Sessions(t, b.Name) {
					jobs = append(jobs, c.over(newJob(t, b.Name, s), t))
				}
			}
			for i, got := range c.do(t, jobs) {
				jobs[i].check(t, got, update)
			}
			if update {
				write(t, jobs)
			}
		})
	}
}

// check compares what a client has with what the calls say.
func (j job) check(t *testing.T, got worked, update bool) {
	t.Helper()
	about := j.server + " " + strings.Join(j.session.Flags, " ")
	var called []string
	for _, c := range j.Calls {
		called = append(called, c.Tool)
	}
	slices.Sort(called)
	slices.Sort(got.Tools)
	if diff := cmp.Diff(got.Tools, slices.Compact(called)); diff != "" && !j.session.Some {
		t.Errorf("%s: calls in servers/servertest/calls/%s.json for the tools (-the server +the calls):\n%s", about, j.server, diff)
	}
	if len(got.Results) != len(j.Calls) {
		t.Fatalf("%s: %d results for %d calls", about, len(got.Results), len(j.Calls))
	}
	for i, raw := range got.Results {
		want, shown := &j.session.Calls[i].Result, shownResult(t, j.place.Shown(string(raw)))
		if update {
			*want = shown
			continue
		}
		if diff := cmp.Diff(decoded(t, *want), decoded(t, shown)); diff != "" {
			t.Errorf("%s: %s %s (-want +got):\n%s", about, j.Calls[i].Tool, j.session.Calls[i].Args, diff)
		}
	}
	until(t, "the server ends with its client", func() bool { return j.tmp == "" || !alive(t, j.tmp) })
}

// shownResult is a result as a call shows it.
func shownResult(t *testing.T, text string) json.RawMessage {
	t.Helper()
	var r struct {
		Structured json.RawMessage  `json:"structuredContent"`
		Content    []map[string]any `json:"content"`
		IsError    bool             `json:"isError"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if r.IsError || len(r.Content) == 0 {
		t.Errorf("the result has an error or no blocks: %s", text)
	}
	if r.Structured != nil {
		return r.Structured
	}
	if len(r.Content) == 1 && r.Content[0]["type"] == "text" {
		return json.RawMessage(encode(t, r.Content[0]["text"]))
	}
	for _, block := range r.Content {
		if data, _ := block["data"].(string); len(data) > 20 {
			block["data"] = data[:20] + "…"
		}
	}
	return json.RawMessage(encode(t, r.Content))
}

func decoded(t *testing.T, text json.RawMessage) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// write writes the results of the jobs into the source of servertest.
func write(t *testing.T, jobs []job) {
	t.Helper()
	for _, b := range servers.Builtins() {
		var sessions []servertest.Session
		for _, j := range jobs {
			if j.server == b.Name {
				sessions = append(sessions, j.session)
			}
		}
		servertest.Write(t, "../../servers/servertest", b.Name, sessions)
	}
}

func goJobs(version string) func(*testing.T, []job) []worked {
	return func(t *testing.T, jobs []job) (done []worked) {
		for _, j := range jobs {
			var transport mcp.Transport
			switch target := j.Target.(type) {
			case string:
				transport = &mcp.StreamableClientTransport{Endpoint: target, HTTPClient: &http.Client{Transport: bearer(j.Token)}}
			case []string:
				cmd := exec.Command(target[0], target[1:]...)
				cmd.Dir = j.Dir
				transport = &mcp.CommandTransport{Command: cmd}
			}
			session := connect(t, transport, version, nil)
			client := servertest.New(t, session)
			var w worked
			for name := range client.Tools {
				w.Tools = append(w.Tools, name)
			}
			for _, c := range j.Calls {
				w.Results = append(w.Results, json.RawMessage(encode(t, client.Call(t, c.Tool, string(c.Args)).CallToolResult)))
			}
			done = append(done, w)
			session.Close()
		}
		return done
	}
}

func pythonJobs(t *testing.T, jobs []job) []worked {
	return scriptJobs(t, jobs, pythonPath(t), "calls.py")
}

func nodeJobs(part, era string) func(*testing.T, []job) []worked {
	return func(t *testing.T, jobs []job) []worked {
		nodeDir(t, "@modelcontextprotocol/"+part)
		return scriptJobs(t, jobs, "node", ownScript(t, "calls.mjs"), part, era)
	}
}

// scriptJobs runs a script that does jobs.
func scriptJobs(t *testing.T, jobs []job, argv ...string) (done []worked) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(encode(t, jobs))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if err := json.Unmarshal(out, &done); err != nil || len(done) != len(jobs) {
		t.Fatalf("%d of %d jobs are done: %v in %s", len(done), len(jobs), err, out)
	}
	return done
}
