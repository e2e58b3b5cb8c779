package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// A bench has what rows need: the programs as they ship, and a directory.
type bench struct {
	sizes  sizes
	dir    string
	mcsh   string // the paths of the programs
	worker string
	self   string
}

// newBench builds the programs.
func newBench(ctx context.Context, s sizes) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mcsh-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{sizes: s, dir: dir, self: self, mcsh: filepath.Join(dir, "mcsh"), worker: filepath.Join(dir, "mcsh-worker")}
	if err := parttest.Build(dir, "cmd/mcsh", "cmd/mcsh-worker"); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) close() error { return os.RemoveAll(b.dir) }

// A stack is what a row has started, to be ended in the opposite order.
type stack []func() error

func (s *stack) push(end func() error) { *s = append(*s, end) }

func (s *stack) close() error {
	var errs []error
	for _, end := range slices.Backward(*s) {
		errs = append(errs, end())
	}
	*s = nil
	return errors.Join(errs...)
}

// upstreamArg makes this program the upstream server, on standard input and output.
const upstreamArg = "upstream"

func serveUpstream(ctx context.Context) {
	_ = newUpstream(0).MCP().Run(ctx, &mcp.StdioTransport{MaxLineLength: -1}) // the error is the end of input
}

const (
	hello     = `{"id":1,"name":"a small result"}`
	helloURI  = "bench://hello"
	idSchema  = `{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}`
	rowsCount = 50
)

// newUpstream makes the server that both sides of a comparison call.
func newUpstream(latency time.Duration) *mcptest.Upstream {
	var list []string
	for i := range rowsCount {
		list = append(list, fmt.Sprintf(`{"id":%d,"name":"name of item %d","tags":["a","b"],"price":%d.25}`, i, i, i*3))
	}
	u := mcptest.New(
		mcptest.Tool{Name: "hello", ReadOnly: true, Text: hello},
		mcptest.Tool{Name: "rows", ReadOnly: true, Text: "[" + strings.Join(list, ",") + "]"},
		mcptest.Tool{Name: "bulk", ReadOnly: true, Do: bulk},
		mcptest.Tool{Name: "wait", ReadOnly: true, Latency: latency, Schema: idSchema, Do: func(args map[string]any) (string, error) {
			return fmt.Sprintf(`{"id":%v}`, args["id"]), nil
		}},
	)
	u.MCP().AddResource(&mcp.Resource{URI: helloURI, Name: "hello"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: helloURI, Text: hello}}}, nil
	})
	return u
}

// bulk answers with so many bytes of JSON lines.
func bulk(args map[string]any) (string, error) {
	n, err := strconv.Atoi(fmt.Sprint(args["bytes"]))
	if err != nil || n < 1 {
		return "", fmt.Errorf("bytes: %v", args["bytes"])
	}
	block := records(int64(n))
	return strings.Repeat(string(block), max(1, n/len(block))), nil
}

// serverName is how pipelines call the upstream server.
const serverName = "shop"

// newPool makes a pool of one server in memory.
func newPool(u *mcptest.Upstream) *upstream.Pool {
	return upstream.NewPool(upstream.Options{Sources: []upstream.Source{upstream.Static{{Name: serverName, Dial: u.Dial}}}})
}

// newSandbox starts the real sandbox as mcsh does: a worker lasts for several runs of one caller.
func (b *bench) newSandbox(ctx context.Context) (*sandbox.Pool, error) {
	return sandbox.New(ctx, sandbox.Options{Driver: local.New(local.Options{Worker: []string{b.worker}}), Lasting: true})
}

// benchCaller is whose runs those are that this program makes itself.
const benchCaller = "bench"

// compile compiles a pipeline that is fed.
func compile(ctx context.Context, steps []step, tools stages.Tools, commands stages.Commands) (*stages.Pipeline, error) {
	return compileWith(ctx, steps, stages.Deps{Tools: tools, Commands: commands, Caller: benchCaller, Schemas: schemas.Stages()})
}

// compileWith compiles a pipeline that is given input.
func compileWith(ctx context.Context, steps []step, deps stages.Deps) (*stages.Pipeline, error) {
	p, mistakes := stages.CompileFed(ctx, []byte(pipelineOf(steps...)), deps)
	if mistakes != nil {
		var errs []error
		for _, m := range mistakes {
			errs = append(errs, m)
		}
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// A step is a stage as an agent writes it.
type step map[string]any

func command(name string, args ...string) step {
	return step{"type": "command", "command": name, "args": args}
}

// pipelineOf writes a pipeline.
func pipelineOf(steps ...step) string {
	text, err := json.Marshal(steps)
	if err != nil {
		panic(err) // steps are tables of this program
	}
	return string(text)
}

// numbers are items for the tool that waits.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"id":%d}`+"\n", i)
	}
	return b.String()
}
