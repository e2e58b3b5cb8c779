package durabletest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/porttest"
	"github.com/mcsh-dev/mcsh/internal/postgrestest"
)

type object = map[string]any

// A world is Temporal, a store, an MCP server, and gateways that share them.
type world struct {
	*testing.T
	dir      string
	database string // of Temporal: a file, or the address of one of postgres
	postgres *postgrestest.Server
	engine   *process
	store    []string // flags
	env      []string // of gateways, besides that of the test
	tools    *upstream

	started int
}

// newWorld starts Temporal on a file, and an MCP server. Without flags of a store the world has a directory.
func newWorld(t *testing.T, store ...string) *world {
	t.Helper()
	return startWorld(t, false, store...)
}

func startWorld(t *testing.T, postgres bool, store ...string) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, dir: t.TempDir(), store: store, tools: newUpstream(t)}
	keys := filepath.Join(w.dir, "keys")
	fine(t, os.WriteFile(keys, []byte("k1:"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))+"\n"), 0o600))
	if w.store == nil {
		w.store = []string{"--store", filepath.Join(w.dir, "store")}
		fine(t, os.Mkdir(w.store[1], 0o700))
	}
	w.store = append(w.store, "--store-key-file", keys)
	w.database = filepath.Join(w.dir, "temporal.db")
	if postgres {
		w.postgres = postgrestest.New(t)
		w.database = w.postgres.URL("temporal")
	}
	w.temporal(porttest.Free(t))
	t.Cleanup(func() { w.engine.kill() })
	return w
}

// temporal starts the server of jobs.
func (w *world) temporal(listen string) {
	w.Helper()
	p, err := start(exec.Command(temporalPath, "--listen", listen, "--db", w.database), "Temporal listens on ")
	fine(w.T, err)
	w.engine = p
}

// servers is the configuration of a gateway.
func (w *world) servers() object { return object{"t": object{"url": w.tools.url}} }

// gateway starts a gateway that does so many jobs at once.
func (w *world) gateway(jobs int, more ...string) *process {
	w.Helper()
	return w.gatewayOf(w.servers(), jobs, more...)
}

func (w *world) gatewayOf(servers object, jobs int, more ...string) *process {
	w.Helper()
	return w.serve(servers, slices.Concat([]string{"--temporal", w.engine.address, "--durable-jobs", strconv.Itoa(jobs)}, w.store, more)...)
}

// serve starts a gateway with no other flags than these and where it listens.
func (w *world) serve(servers object, flags ...string) *process {
	w.Helper()
	p, err := w.tryToServe(servers, flags...)
	fine(w.T, err)
	return p
}

func (w *world) tryToServe(servers object, flags ...string) (*process, error) {
	w.Helper()
	w.started++
	dir := filepath.Join(w.dir, "gateway"+strconv.Itoa(w.started))
	fine(w.T, os.Mkdir(dir, 0o700))
	text, err := json.Marshal(object{"mcpServers": servers})
	fine(w.T, err)
	config := filepath.Join(dir, "mcp.json")
	fine(w.T, os.WriteFile(config, text, 0o600))
	command := exec.Command(gatewayPath, append([]string{"serve", "--listen", "127.0.0.1:0", "--config", config, "--drain", "0s"}, flags...)...)
	command.Dir = dir
	command.Env = slices.Concat(os.Environ(), w.env, []string{"MCSH_STATE=off", "MCSH_SANDBOX=local", "TMPDIR=" + dir})
	p, err := start(command, " listens on ")
	if err != nil {
		return nil, err
	}
	w.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGCONT) // of one that is stopped; it may have ended
		p.kill()
		if w.Failed() {
			w.Logf("a gateway with the flags %q said:\n%s", flags, p.log())
		}
	})
	return p, nil
}

// An agent is an MCP client of a gateway.
type agent struct {
	*world
	of      *process
	session *mcp.ClientSession
}

func (w *world) agent(of *process) agent {
	w.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "durabletest", Version: "1"}, nil)
	session, err := client.Connect(w.Context(), &mcp.StreamableClientTransport{Endpoint: of.address, HTTPClient: &http.Client{}}, nil)
	fine(w.T, err)
	w.Cleanup(func() { _ = session.Close() }) // its gateway may be dead
	return agent{w, of, session}
}

// call runs a pipeline and returns the text of the reply.
func (a agent) call(pipeline string, more object) (text string, failed bool, err error) {
	return a.callFor(2*patience, pipeline, more)
}

// callFor waits for the reply for so long.
func (a agent) callFor(limit time.Duration, pipeline string, more object) (text string, failed bool, err error) {
	args := object{"pipeline": json.RawMessage(pipeline)}
	for name, value := range more {
		args[name] = value
	}
	ctx, cancel := context.WithTimeout(a.Context(), limit)
	defer cancel()
	res, err := a.session.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: args})
	if err != nil {
		return "", false, err
	}
	var all strings.Builder
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			all.WriteString(c.Text)
		}
	}
	return all.String(), res.IsError, nil
}

// A status is the reply of a durable run that has not ended.
type status struct {
	Run, Status string
	Progress    struct{ Items, Of, Failed, Calls int64 }
	Attempt     int
}

// submit begins a durable run, and returns its name.
func (a agent) submit(pipeline string) string {
	a.Helper()
	text, failed, err := a.call(pipeline, object{"durable": true, "wait": 0})
	fine(a.T, err)
	var s status
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.Run == "" || failed {
		a.Fatalf("no status of a durable run: %v: %s", err, text)
	}
	return s.Run
}

func from(run string) string { return fmt.Sprintf(`[{"type":"from","run":%q}]`, run) }

func resume(run string) string { return fmt.Sprintf(`[{"type":"from","run":%q,"resume":true}]`, run) }

// succeeds waits for the reply to a run that does.
func (a agent) succeeds(run string) {
	a.Helper()
	if text, failed := a.wait(run); failed {
		a.Fatalf("the run has failed: %s", text)
	}
}

// wait waits for the reply to a run.
func (a agent) wait(run string) (text string, failed bool) {
	a.Helper()
	r := within(a.T, "reply to the run", a.await(run))
	fine(a.T, r.err)
	return r.text, r.failed
}

// A reply is that to a run which has ended, or says why its client does not get it.
type reply struct {
	text   string
	failed bool
	err    error
}

// await waits for the reply to a run.
func (a agent) await(run string) <-chan reply {
	replies := make(chan reply, 1)
	go func() {
		for {
			text, failed, err := a.call(from(run), object{"wait": 60})
			var s status
			if err != nil || json.Unmarshal([]byte(text), &s) != nil || s.Run == "" {
				replies <- reply{text, failed, err}
				return
			}
		}
	}()
	return replies
}

// each is a pipeline that calls tools for items, one after another.
func each(items arguments, options string, tools ...string) string {
	args, err := json.Marshal(items)
	if err != nil {
		panic(err) // it has only numbers and texts
	}
	stages := []string{fmt.Sprintf(`{"type":"tool","server":"t","name":"numbers","args":%s}`, args)}
	for _, tool := range tools {
		stages = append(stages, fmt.Sprintf(`{"type":"tool","server":"t","name":%q,"for_each":true,"on_error":"collect"%s}`, tool, options))
	}
	return "[" + strings.Join(stages, ",") + "]"
}

// A result is what a for_each that collects errors has for an item.
type result struct {
	X     *int
	By    string
	Error *struct {
		Item    struct{ X int }
		Message string
	}
}

// results returns the results of a run, whose output is too long for a reply.
func (a agent) results(run string) []result {
	a.Helper()
	var list []result
	text := a.output(run)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		a.Fatalf("the output is no list of results: %v: %.300s", err, text)
	}
	return list
}

// output returns the whole output of a run, page by page.
func (a agent) output(run string) string {
	a.Helper()
	const page = 1 << 20
	var all strings.Builder
	for {
		uri := fmt.Sprintf("mcsh://runs/%s/output?offset=%d&limit=%d", run, all.Len(), page)
		res, err := a.session.ReadResource(a.Context(), &mcp.ReadResourceParams{URI: uri})
		fine(a.T, err)
		if len(res.Contents) != 1 {
			a.Fatalf("%s has %d contents", uri, len(res.Contents))
		}
		text := res.Contents[0].Text
		all.WriteString(text)
		if len(text) < page {
			return all.String()
		}
	}
}

// A tally says what became of the items of a run.
type tally struct{ lost, repeated, unknown int }

// check compares the results with the calls.
func (a agent) check(list []result, tool string, items int) (sum tally) {
	a.Helper()
	made := a.tools.made(tool)
	seen := map[int]bool{}
	for i, r := range list {
		switch {
		case r.X != nil:
			if seen[*r.X] = true; *r.X != i || made[i] == 0 {
				a.Errorf("result %d is that of item %d, which was called %d times", i, *r.X, made[i])
			}
		case r.Error == nil:
			a.Errorf("result %d is none", i)
		default:
			seen[r.Error.Item.X] = true
			if !strings.Contains(r.Error.Message, "there was no answer, so it may have taken effect") {
				a.Errorf("item %d: %s", r.Error.Item.X, r.Error.Message)
			}
			sum.unknown++
		}
	}
	sum.lost = items - len(seen)
	for _, n := range made {
		sum.repeated += n - 1
	}
	return sum
}
