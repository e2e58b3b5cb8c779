package observe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/upstream"
)

// newLog is a log of all levels, in a buffer.
func newLog(t *testing.T, format string, hide func(string) string) (*zap.Logger, *bytes.Buffer) {
	t.Helper()
	var buf bytes.Buffer
	log, err := observe.NewLog(&buf, "debug", format, hide)
	if err != nil {
		t.Fatal(err)
	}
	return log, &buf
}

// volatile is what differs from run to run.
var volatile = regexp.MustCompile(`"(ts|elapsed)":("[^"]*"|[0-9.e-]+),?`)

// A line for each call and each run; the name of the request joins them with each other, the reply and the trace.
func TestLog(t *testing.T) {
	log, buf := newLog(t, "json", nil)
	w := newWorld(t, observe.Watch{Calls: log, Level: zapcore.DebugLevel}, nil)
	agent := w.connect(withHeaders{"Traceparent": agentSays})
	first, _ := w.run(agent, `[`+list+`,{"type":"preview"}]`)
	second, _ := w.run(agent, `[{"type":"tool","server":"shop","name":"echo","args":{"id":2}}]`)
	w.run(agent, `[{"type":"tool","server":"shop"}]`) // refused: nothing has run
	got := volatile.ReplaceAllString(buf.String(), "")
	want := fmt.Sprintf(`{"level":"debug","msg":"call","request":%[1]q,"trace":%[3]q,"server":"shop","tool":"numbers","code":"OK","bytes":7,"attempts":1}
{"level":"info","msg":"pipeline","request":%[1]q,"stages":2,"calls":1,"tools":["shop/numbers"],"characters":%[4]s,"trace":%[3]q,"code":"OK"}
{"level":"debug","msg":"call","request":%[2]q,"trace":%[3]q,"server":"shop","tool":"echo","code":"TOOL_ERROR","bytes":0,"attempts":1}
{"level":"info","msg":"pipeline","request":%[2]q,"stages":1,"calls":1,"tools":["shop/echo"],"characters":0,"trace":%[3]q,"code":"TOOL_ERROR","stage":"1"}
`, first, second, agentTrace, regexp.MustCompile(`"characters":([1-9]\d*)`).FindStringSubmatch(got)[1])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !regexp.MustCompile(`^q_[a-z2-7]{12}$`).MatchString(first) || first == second {
		t.Errorf("requests are called %q and %q", first, second)
	}
}

// The refusal of an unknown level or format names the known ones.
func TestLogOptions(t *testing.T) {
	for _, o := range [][2]string{{"loud", "json"}, {"info", "xml"}, {"fatal", "json"}} {
		if _, err := observe.NewLog(os.Stderr, o[0], o[1], nil); err == nil || !strings.Contains(err.Error(), "there are ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Secrets are taken out of lines wherever they stand.
func TestScrub(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		log, buf := newLog(t, format, func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") })
		log.Warn("password hunter2", zap.String("url", "https://user:"+canary+"@host/path?key="+canary+"&a=b\\"+canary))
		log.Warn("a", zap.Error(errors.New(`Post "http://`+canary+`@collector:4318/v1/traces?t=`+canary+`": refused`)))
		log.Warn("b", zap.String("session_id", canary), zap.Strings("list", []string{"Bearer " + canary, "basic " + canary}), zap.Any("any", map[string]string{"x": "hunter2"}))
		log.Warn("d mcsh_" + strings.Repeat("Zq0", 15)[:43])
		log.With(zap.String("with", "hunter2")).Error("c")
		log.Warn("e https://user:"+canary+"@"+canary+"@other/path", zap.String("token", "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiI"+canary+"In0.c2ln"+canary))
		text := buf.String()
		if strings.Contains(text, canary) || strings.Contains(text, "hunter2") || strings.Contains(text, "Zq0") {
			t.Errorf("%s: a secret is left:\n%s", format, text)
		}
		for _, kept := range []string{"host/path", "collector:4318", "other/path", "refused", "password"} {
			if !strings.Contains(text, kept) {
				t.Errorf("%s: %q is gone:\n%s", format, kept, text)
			}
		}
		if n := strings.Count(text, "\n"); n != 6 {
			t.Errorf("%s: %d lines", format, n)
		}
		if format == "json" {
			for line := range strings.Lines(text) {
				if !json.Valid([]byte(line)) {
					t.Errorf("it is no JSON any more: %s", line)
				}
			}
		}
	}
}

// A server's words change neither the colours of a terminal nor the direction of a line, in any part of the line.
func TestUnseen(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		log, buf := newLog(t, format, nil)
		log.Warn("a\x1b[31m\u009b31m", zap.String("field", "b\x1b]0;x\x07\u009b2J\u202eexe.\u2066\x7f é 日本\tc"))
		text := buf.String()
		for _, c := range text {
			if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
				t.Errorf("%s: %U in %q", format, c, text)
			}
		}
		if !strings.Contains(text, "é 日本") || !strings.Contains(text, `\u202eexe.`) {
			t.Errorf("%s: %q", format, text)
		}
		if format == "json" && !json.Valid(buf.Bytes()) {
			t.Errorf("it is no JSON any more: %s", text)
		}
	}
}

// No secret comes out anywhere: not in logs, spans or metrics, whether things go well or not.
func TestSecrets(t *testing.T) {
	c := newCollector(t)
	tracer, end := traced(t)
	pool := &upstream.Pool{}
	log, buf := newLog(t, "json", func(text string) string { return pool.Hide(text) })
	w := newWorld(t, observe.Watch{Tracer: tracer, Calls: log, Level: zapcore.DebugLevel}, nil)
	pool = w.pool
	agent := w.connectAs("2025-11-25", withHeaders{"Authorization": "Bearer " + canary, "Baggage": "key=" + canary, "X-Secret": canary})
	for _, pipeline := range []string{
		`[{"type":"tool","server":"shop","name":"echo","args":{"id":1,"x":"` + canary + `"}}]`,
		`[{"type":"tool","server":"shop","name":"echo","args":{"id":2}}]`,
		`[{"type":"tool","server":"` + canary + `","name":"echo"}]`,
		`[{"type":"tool","server":"shop","name":"` + canary + `"}]`,
		`[{"type":"` + canary + `"}]`,
		`[` + list + `,{"type":"parallel","branches":{"` + canary + `":[{"type":"preview"}]}}]`,
		`[` + list + `,{"type":"tee","path":"` + canary + `"}]`,
		`[{"type":"from","run":"r_` + canary + `"}]`,
	} {
		w.run(agent, pipeline)
	}
	session := agent.ID()
	run := w.runOf(agent, `[`+list+`]`)
	failed := w.runOf(agent, `[{"type":"tool","server":"shop","name":"ids"},{"type":"tool","server":"shop","name":"echo","for_each":true}]`)
	for _, id := range []string{run, failed} { // continued, twice, and refused
		again := w.runOf(agent, `[{"type":"from","run":"`+id+`","resume":true}]`)
		w.run(agent, `[{"type":"from","run":"`+again+`","resume":true}]`, "mode", "dry_run")
		w.run(agent, `[{"type":"from","run":"`+again+`","stage":1}]`)
		w.run(agent, `[{"type":"from","run":"`+id+`","stage":9}]`)
	}

	down := newWorldDown(t, observe.Watch{Tracer: tracer, Calls: log, Level: zapcore.DebugLevel})
	down.run(down.connect(nil), `[{"type":"tool","server":"far","name":"x"}]`)
	end()
	_, metrics := w.scrape()
	_, other := down.scrape()
	for _, secret := range []string{canary, session, run} {
		for where, text := range map[string]string{"log": buf.String(), "traces": c.raw.String(), "metrics": metrics + other} {
			if secret == "" || strings.Contains(text, secret) {
				t.Errorf("%q is in the %s:\n%s", secret, where, text)
			}
			if id := runIDs.FindString(text); id != "" {
				t.Errorf("the id %s of a run is in the %s:\n%s", id, where, text)
			}
		}
	}
	if len(c.spans) == 0 || buf.Len() == 0 {
		t.Error("nothing was traced or logged")
	}
}

// runIDs are the ids that give access to the outputs of runs.
var runIDs = regexp.MustCompile(`r_[a-z2-7]{26}`)

// runOf runs a pipeline and returns the id by which the reply names the run.
func (w *world) runOf(agent *mcp.ClientSession, pipeline string) string {
	w.t.Helper()
	result, err := agent.CallTool(w.t.Context(), &mcp.CallToolParams{
		Name: "execute_pipeline", Arguments: map[string]any{"pipeline": json.RawMessage(pipeline)},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		w.t.Fatal(err)
	}
	run := runIDs.FindString(string(text))
	if run == "" {
		w.t.Fatalf("the reply names no run: %s", text)
	}
	return run
}

// newWorldDown is a gateway in front of a server that cannot be reached, with secrets in its address and headers.
func newWorldDown(t *testing.T, o observe.Watch) *world {
	t.Helper()
	w := &world{t: t, metrics: observe.NewMetrics(observe.Build{}, observe.Probes{})}
	w.pool = upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{
		Name: "far", Secrets: []string{canary},
		Dial: upstream.HTTP(upstream.Endpoint{
			URL: "http://user:" + canary + "@127.0.0.1:1/mcp?key=" + canary, Headers: map[string][]string{"X-Key": {canary}},
		}),
	}}}})
	t.Cleanup(func() { w.pool.Close() })
	o.Metrics, o.Own = w.metrics, gateway.ToolNames()
	w.serve(gateway.Options{Upstream: w.pool, Version: "test", Log: o.Calls, Watch: &o})
	return w
}

// Lines that callers and servers cause are bounded in number and length, and each stays one line.
func TestLogBounds(t *testing.T) {
	for _, format := range []string{"json", "console"} {
		log, buf := newLog(t, format, nil)
		long := strings.Repeat("x", 10_000)
		log.Warn("first line\n2030-01-01T00:00:00.000Z\terror\tinjected"+long, zap.String("text", long), zap.Error(errors.New("a\nb"+long)))
		if text := buf.String(); strings.Count(text, "\n") != 1 || len(text) > 3*5000 {
			t.Errorf("%s: %d lines, %d bytes: %.200s", format, strings.Count(text, "\n"), len(text), text)
		}
		buf.Reset()
		log.Warn("names", zap.Strings("names", slices.Repeat([]string{long}, 100)))
		if len(buf.String()) > 100_000 {
			t.Errorf("%s: a line has %d bytes", format, buf.Len())
		}
		buf.Reset()
		log = log.WithOptions(zap.WithClock(standing{}))
		many := parttest.Times(1200, 20_000)
		for i := range many {
			log.With(zap.Int("caller", i)).Error("method removed")
		}
		log.Warn("something else")
		if text := buf.String(); strings.Count(text, "method removed") != 1000 || !strings.Contains(text, "something else") || !regexp.MustCompile(fmt.Sprintf(`lines were left out.*%d`, many-1000)).MatchString(text) {
			t.Errorf("%s: %d lines, the last ones: %s", format, strings.Count(text, "\n"), text[max(0, len(text)-300):])
		}
		buf.Reset()
		log, buf = newLog(t, format, func(text string) string { return strings.ReplaceAll(text, canary, "***") })
		log.Error("half a secret", zap.String("text", long[:4<<10-3]+canary))
		if text := buf.String(); strings.Contains(text, canary[:3]) {
			t.Errorf("%s: the beginning of a secret is left: %s", format, text[len(text)-100:])
		}
	}
}

// standing is a clock that stands.
type standing struct{ zapcore.Clock }

func (standing) Now() time.Time { return time.Unix(1_900_000_000, 0) }
