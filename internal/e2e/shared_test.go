//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// ledger is a server with a tool that writes each of its calls to the end of a file. It refuses a call that names a file that is not
// there, and creates that: it refuses once.
func ledger() *mcptest.Upstream {
	return mcptest.New(mcptest.Tool{Name: "post", Destructive: true, Do: func(args map[string]any) (string, error) {
		if mark, _ := args["refuse"].(string); mark != "" {
			if f, err := os.OpenFile(mark, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
				return "", errors.New("not now")
			}
		}
		path, _ := args["file"].(string)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := fmt.Fprintf(f, "%v\n", args["x"]); err != nil {
			return "", err
		}
		ms, _ := strconv.Atoi(fmt.Sprint(args["ms"]))
		time.Sleep(time.Duration(ms) * time.Millisecond) // the work of the tool
		return fmt.Sprintf(`{"posted":%v}`, args["x"]), nil
	}})
}

// posted returns how often each line is in a file of the ledger.
func posted(t *testing.T, file string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSpace(line)]++
	}
	return times
}

// onStores runs a test for three gateways that share a directory, and at the same time for three that share a bucket.
func onStores(t *testing.T, servers func(t *testing.T) object, test func(t *testing.T, b *balancer)) {
	keys := filepath.Join(t.TempDir(), "keys")
	fine(t, os.WriteFile(keys, []byte("k1:"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))+"\n"), 0o600))
	s3 := storetest.S3(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3.SecretKey)
	for name, args := range map[string][]string{
		"directory": {"--store", t.TempDir()},
		"S3":        {"--store", "s3://" + s3.Bucket + "/mcsh", "--store-endpoint", s3.Endpoint},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []*replica
			for range 3 {
				list = append(list, newReplica(t, servers(t), append(args, "--store-key-file", keys)...))
			}
			test(t, balance(t, list...))
		})
	}
}

func demoAndLedger(t *testing.T) object {
	return object{"demo": object{"builtin": "demo"}, "ledger": child(t, "ledger")}
}

var runName = regexp.MustCompile(`\brun(?:": "| )(r_[a-z2-7]{26})\b`)

func fromRun(run string) object { return object{"type": "from", "run": run} }

func resumed(run string) object { return object{"type": "from", "run": run, "resume": true} }

// posts is a plan with three calls of the ledger, of which the second one is refused once if refuse names a file.
func posts(file string, n int, refuse string) []object {
	items := fmt.Sprintf(`range(3) | {x: (%d + .), file: %q, ms: 100} + if . == 1 then {refuse: %q} else {} end`, 3*n, file, refuse)
	return []object{command("jq", "-n", "-c", items), with(toolStage("ledger", "post", object{}), "for_each", true)}
}

// TestReplicas: what one gateway keeps the others use as their own: outputs, runs that stopped, pages of resources.
func TestReplicas(t *testing.T) {
	onStores(t, demoAndLedger, func(t *testing.T, b *balancer) {
		agent := connectHTTP(t, b.url, versions[1], nil)
		run := runOf(t, called(t, agent, toolStage("demo", "list_orders", object{}), command("jq", "-c", ".orders | length")))
		want := mustExecute(t, agent, fromRun(run))
		for range 3 {
			if got := mustExecute(t, agent, fromRun(run)); got != want {
				t.Errorf("from: got %q, want %q", got, want)
			}
			res, err := agent.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mcsh://runs/" + run + "/output?offset=0&limit=4"})
			if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != want {
				t.Errorf("a page: %+v, %v", res, err)
			}
		}
		file := filepath.Join(t.TempDir(), "ledger")
		text, failed := execute(t, agent, posts(file, 0, file+".refuse")...)
		stopped := runName.FindStringSubmatch(text)
		if !failed || stopped == nil {
			t.Fatalf("a run with a refused call: %q", text)
		}
		if got := mustExecute(t, agent, resumed(stopped[1])); !strings.Contains(got, "[{\"posted\":0},\n{\"posted\":1},\n{\"posted\":2}]") {
			t.Errorf("the run that stopped continues at another gateway: %q", got)
		}
		if diff := cmp.Diff(map[string]int{"0": 1, "1": 1, "2": 1}, posted(t, file)); diff != "" {
			t.Errorf("calls of the run that stopped and continued (-want +got):\n%s", diff)
		}
		if got, failed := execute(t, agent, fromRun("r_aaaaaaaaaaaaaaaaaaaaaaaaaa")); !failed || !strings.Contains(got, "there is no run") {
			t.Errorf("a run that never was: %q", got)
		}
	})
}

// TestReplicaKilled: a gateway is killed in the middle of a for_each; another one continues it, no item is called twice, and
// only the outcomes of the calls in flight are unknown.
func TestReplicaKilled(t *testing.T) {
	const items, concurrency = 60, 4
	onStores(t, demoAndLedger, func(t *testing.T, b *balancer) {
		file := filepath.Join(t.TempDir(), "ledger")
		doomed, other := b.replicas[0], b.replicas[1]
		named := make(chan string, 100)
		agent := connectHTTP(t, "http://"+doomed.address+"/mcp", versions[1], &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, p *mcp.ProgressNotificationClientRequest) {
				if found := runName.FindStringSubmatch(p.Params.Message); found != nil {
					select {
					case named <- found[1]:
					default:
					}
				}
			},
		})
		rescuer := connectHTTP(t, "http://"+other.address+"/mcp", versions[1], nil)
		plan := []object{
			command("jq", "-n", "-c", fmt.Sprintf(`range(%d) | {x: ., file: %q, ms: 400}`, items, file)),
			with(with(toolStage("ledger", "post", object{}), "for_each", true), "concurrency", concurrency),
		}
		ended := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		go func() {
			call := pipelineCall(plan)
			call.SetProgressToken("p")
			_, err := agent.CallTool(ctx, call)
			ended <- err
		}()
		until(t, "the for_each is in its middle", func() bool { return len(posted(t, file)) >= items/2 })
		run := within(t, "the run is named", named)
		fine(t, doomed.Process.Kill())
		doomed.ends(t, patience)
		if err := within(t, "the call has ended", ended); err == nil {
			t.Error("the call of the killed gateway succeeded")
		}
		text := mustExecute(t, rescuer, with(resumed(run), "on_error", "collect"))
		var results []struct {
			Error *struct{ Item struct{ X int } }
		}
		_, list, _ := strings.Cut(text, "\n") // behind the note
		if err := json.Unmarshal([]byte(list), &results); err != nil || len(results) != items {
			t.Fatalf("%d results of %d items: %v: %s", len(results), items, err, text)
		}
		times, unknown := posted(t, file), 0
		for x, result := range results {
			n := times[strconv.Itoa(x)]
			switch {
			case n == 1 && result.Error == nil:
			case n <= 1 && result.Error != nil && result.Error.Item.X == x:
				unknown++ // the call was on its way, or about to be made
			default:
				t.Errorf("item %d was called %d times: %+v", x, n, result.Error)
			}
		}
		if unknown > concurrency {
			t.Errorf("the calls of %d items are unknown, of which %d were made at a time: %s", unknown, concurrency, text)
		}
	})
}

// TestRestartsWithStore: through a rolling restart no call of many agents fails, no finished run is lost, and no item of a run that
// stops and is continued is called twice.
func TestRestartsWithStore(t *testing.T) {
	onStores(t, demoAndLedger, func(t *testing.T, b *balancer) {
		dir := t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range parttest.Times(4, 50) {
			session := connectHTTP(t, b.url, versions[1], nil)
			file := filepath.Join(dir, strconv.Itoa(i))
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if err := useReplicas(session, file, n); err != nil {
						t.Errorf("agent %d, round %d: %v", i, n, err)
						return
					}
				}
			})
		}
		rolling(b.replicas, func(r *replica) { r.restart(t); b.await(t) })()
		stop()
		all.Wait()
		files, err := os.ReadDir(dir)
		fine(t, err)
		for _, f := range files {
			for x, n := range posted(t, filepath.Join(dir, f.Name())) {
				if n != 1 {
					t.Errorf("%s: item %s was called %d times", f.Name(), x, n)
				}
			}
		}
	})
}

// useReplicas makes a run with effects, continues it where it stops, which every second one does, and begins another one with it.
func useReplicas(session *mcp.ClientSession, file string, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	refuse, steps := "", 1
	if n%2 == 1 {
		refuse, steps = fmt.Sprint(file, ".", n), 2
	}
	plan, found := posts(file, n, refuse), []string(nil)
	for step := range steps {
		res, err := session.CallTool(ctx, pipelineCall(plan))
		if err != nil {
			return fmt.Errorf("step %d of a run: %w", step, err)
		}
		text := res.Content[0].(*mcp.TextContent).Text
		if found = runName.FindStringSubmatch(text); found == nil || res.IsError != (step < steps-1) {
			return fmt.Errorf("step %d of a run: %s", step, text)
		}
		plan = []object{resumed(found[1])}
	}
	for range 2 {
		res, err := session.CallTool(ctx, pipelineCall([]object{fromRun(found[1]), command("jq", "-c", "length")}))
		if err != nil {
			return fmt.Errorf("from: %w", err)
		}
		if got := textOf(res); res.IsError || got != "3\n" {
			return fmt.Errorf("from: %s", got)
		}
	}
	return nil
}
