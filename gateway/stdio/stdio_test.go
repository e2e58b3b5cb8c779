package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

const (
	handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
`
	echoCall = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}` + "\n"
	hangCall = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hang","arguments":{}}}` + "\n"
	cancel   = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}` + "\n"
)

// twoTools is a server with a tool that answers and one that ends when it is cancelled, or when its time is up.
func twoTools() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "two", Version: "1"}, nil)
	schema := map[string]any{"type": "object"}
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "here"}}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "hang", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return server
}

// Requests from before the end of the input are answered, whatever else the input holds, and nothing waits for ever.
func TestStdioEnd(t *testing.T) {
	for name, tt := range map[string]struct{ input, want string }{
		"nothing":             {"", ""},
		"a session":           {handshake + echoCall, "here"},
		"one shot":            {echoCall, "here"},
		"many shots":          {echoCall + strings.Replace(echoCall, `"id":2`, `"id":"b"`, 1), `"id":"b"`},
		"an unknown tool":     {strings.Replace(echoCall, "echo", "ohce", 1), "ohce"},
		"a cancelled call":    {handshake + hangCall + cancel + echoCall, "here"},
		"a notification only": {cancel, ""},
		"half a last line":    {echoCall + `{"id":5`, "-32700"},
		"an early version":    {strings.Replace(strings.Replace(handshake, "2025-06-18", "2024-11-05", 1), "notifications/", "", 1) + echoCall, "here"},
		"a bare initialized":  {strings.Split(handshake, "\n")[0] + "\n" + `{"method":"initialized"}` + "\n" + echoCall, "here"},
		"a strange cancel":    {handshake + strings.Replace(cancel, "3", "[3]", 1) + echoCall, "here"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				if err := Serve(t.Context(), Options{Server: twoTools(), In: strings.NewReader(tt.input), Out: &out}); err != nil {
					t.Error(err)
				}
				if got := out.String(); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
					t.Errorf("got %q, want %q in it", got, tt.want)
				}
				for _, unwanted := range []string{handshakeID, `"id":3`} { // the second is cancelled
					if strings.Contains(out.String(), unwanted) {
						t.Errorf("the client gets an answer that it does not want: %s", &out)
					}
				}
			})
		})
	}
}

// A request before the handshake is an error with a code.
func TestStdioBeforeHandshake(t *testing.T) {
	for name, input := range map[string]string{
		"a method that there is":     `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`,
		"a method that there is not": `{"jsonrpc":"2.0","id":7,"method":"tools/cell"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Serve(t.Context(), Options{Server: twoTools(), In: strings.NewReader(input), Out: &out}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"7 -32600"}, answers(t, out.Bytes())); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// nested is a call with arguments that are nested depth levels deep, and an id where clients put it.
func nested(depth int) string {
	depth -= 2 // the message and its params
	return `{"jsonrpc":"2.0","method":"ping","params":{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `},"id":7}`
}

// sized is a call with an argument that makes it size bytes long.
func sized(size int) string {
	const head, tail = `{"jsonrpc":"2.0","method":"ping","params":{"a":"`, `"},"id":"s:7"}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// refusals are inputs and the answers to them, each as its id and the code of its error.
var refusals = map[string]struct {
	input string
	want  []string
}{
	"deepest":             {nested(maxDepth), []string{"7 0"}},
	"too deep":            {nested(maxDepth + 1), []string{"7 -32600"}},
	"far too deep":        {nested(1 << 20), []string{"7 -32600"}},
	"too deep and open":   {strings.Repeat(`{"id":`, 2000), []string{"null -32600"}},
	"longest":             {sized(maxInput), []string{`"s:7" 0`}},
	"longest, CR":         {sized(maxInput) + "\r", []string{`"s:7" 0`}},
	"too long":            {sized(maxInput + 1), []string{`"s:7" -32600`}},
	"far too long":        {sized(3 * maxInput), []string{`"s:7" -32600`}},
	"too long, no JSON":   {strings.Repeat("x", maxInput+1), []string{"null -32600"}},
	"no JSON":             {"hello", []string{"null -32700"}},
	"half a message":      {`{"jsonrpc":"2.0","id":7,"method":"pi`, []string{"null -32700"}},
	"message on lines":    {"{\n\"id\":7}", []string{"null -32700", "null -32700"}},
	"two on a line":       {nested(3) + nested(3), []string{"null -32700"}},
	"not UTF-8":           {"\xff\xfe{}", []string{"null -32700"}},
	"blank":               {"\n \t\r\n\r\n", nil},
	"null":                {"null", []string{"null -32600"}},
	"number":              {"5", []string{"null -32600"}},
	"empty batch":         {"[]", []string{"null -32600"}},
	"batch":               {"[" + nested(3) + "]", []string{"null -32600"}},
	"array of members":    {`["id",7]`, []string{"null -32600"}},
	"empty object":        {"{}", []string{"null -32600"}},
	"object as id":        {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, []string{"null -32600"}},
	"array as id":         {`{"jsonrpc":"2.0","id":[7],"method":"ping"}`, []string{"null -32600"}},
	"boolean as id":       {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, []string{"null -32600"}},
	"fraction as id":      {`{"jsonrpc":"2.0","id":7.5,"method":"ping"}`, []string{"7.5 -32600"}},
	"huge id":             {`{"jsonrpc":"2.0","id":1e99,"method":"ping"}`, []string{"1e99 -32600"}},
	"rounded id":          {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, []string{"9007199254740993 -32600"}},
	"large id":            {`{"jsonrpc":"2.0","id":9007199254740994,"method":"ping"}`, []string{"9007199254740994 0"}},
	"two ids":             {`{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}`, []string{"null -32600"}},
	"string as id":        {`{"jsonrpc":"2.0","id":"a,\"}","method":"ping"}`, []string{`"a,\"}" 0`}},
	"version 1.0":         {`{"jsonrpc":"1.0","id":"a","method":"ping"}`, []string{`"a" -32600`}},
	"no version":          {`{"id":7,"method":"ping"}`, []string{"7 -32600"}},
	"number as version":   {`{"jsonrpc":2.0,"id":7,"method":"ping"}`, []string{"7 -32600"}},
	"no method":           {`{"jsonrpc":"2.0","id":7}`, []string{"7 -32600"}},
	"number as method":    {`{"jsonrpc":"2.0","id":7,"method":5}`, []string{"7 -32600"}},
	"answer to nobody":    {`{"jsonrpc":"2.0","id":7,"result":{}}`, nil},
	"error without id":    {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, nil},
	"string as error":     {`{"jsonrpc":"2.0","id":7,"error":"no"}`, nil},
	"answer that is deep": {strings.Replace(nested(2000), "method", "result", 1), nil},
}

// twins are refusals of megabytes that differ little from another one. They are left out by day.
var twins = []string{"longest, CR", "far too long", "too long, no JSON"}

// A line that holds no message is answered, once, and what comes after it as if it had not been.
func TestStdioRefusals(t *testing.T) {
	for name, tt := range refusals {
		if slices.Contains(twins, name) && !parttest.Night() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				if err := Serve(t.Context(), Options{Server: twoTools(), In: strings.NewReader(handshake + tt.input + "\n" + echoCall), Out: &out}); err != nil {
					t.Error(err)
				}
				want := append([]string{"1 0", "2 0"}, tt.want...)
				slices.Sort(want)
				if diff := cmp.Diff(want, answers(t, out.Bytes())); diff != "" {
					t.Errorf("answers (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// answers returns the ids and the codes of errors of what was written, in order.
func answers(t *testing.T, out []byte) (got []string) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var m struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Error   jsonrpc.Error   `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" || m.ID == nil {
			t.Errorf("%.200q is no answer: %v", line, err)
		}
		if m.Error.Code != 0 && m.Error.Message == "" {
			t.Errorf("%s does not say what is wrong", line)
		}
		got = append(got, fmt.Sprintf("%s %d", m.ID, m.Error.Code))
	}
	slices.Sort(got)
	return got
}

// A call that runs when lines are refused goes on, and is answered.
func TestStdioRunSurvives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, end := make(chan struct{}), make(chan struct{})
		server := twoTools()
		server.AddTool(&mcp.Tool{Name: "long", InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				close(begun)
				select {
				case <-end:
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "survived"}}}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
		in, feed := io.Pipe()
		var out bytes.Buffer
		served := make(chan error)
		go func() {
			served <- Serve(t.Context(), Options{Server: server, In: in, Out: &out})
		}()
		_, _ = io.WriteString(feed, handshake+strings.Replace(strings.Replace(echoCall, "echo", "long", 1), `"id":2`, `"id":5`, 1))
		<-begun
		for _, name := range []string{"too deep", "too long", "half a message", "batch", "null", "object as id", "version 1.0", "string as error"} {
			_, _ = io.WriteString(feed, refusals[name].input+"\n")
		}
		synctest.Wait() // until all of it is dealt with
		close(end)
		feed.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), "survived") {
			t.Errorf("the call that ran is not answered: %.2000s", &out)
		}
	})
}

// Refusals and answers that are written at the same time stay whole.
func TestStdioWholeLines(t *testing.T) {
	const calls = 200
	input := handshake
	want := []string{"1 0"}
	for i := range calls {
		input += strings.Replace(echoCall, `"id":2`, fmt.Sprintf(`"id":%d`, i+10), 1) + "bad\n"
		want = append(want, fmt.Sprintf("%d 0", i+10), "null -32700")
	}
	slices.Sort(want)
	out := &bytewise{}
	if err := Serve(t.Context(), Options{Server: twoTools(), In: strings.NewReader(input), Out: out}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, answers(t, out.b)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// bytewise is a stream that takes time over each byte, so that writers get in each other's way.
type bytewise struct {
	mu sync.Mutex
	b  []byte
}

func (w *bytewise) Write(p []byte) (int, error) {
	for _, b := range p {
		w.mu.Lock()
		w.b = append(w.b, b)
		w.mu.Unlock()
	}
	return len(p), nil
}

// A call of ours whose answer is refused ends with the error.
func TestStdioRefusedAnswer(t *testing.T) {
	in := strings.NewReader(strings.Replace(nested(2000), "method", "result", 1) + "\n")
	var out bytes.Buffer
	c := newConn(t.Context(), nil, Options{In: in, Out: &out})
	m, err := c.next()
	if out.Len() > 0 {
		t.Errorf("got the answer %q to an answer", &out)
	}
	if res, ok := m.(*jsonrpc.Response); !ok || res.ID.Raw() != any(int64(7)) || res.Error == nil {
		t.Errorf("got %v, %v, want an error for call 7", m, err)
	}
	if m, err := c.next(); err != io.EOF {
		t.Errorf("got %v, %v behind it", m, err)
	}
}

// Whatever comes, the server does not panic, answers what is asked after it, and ends with its input.
func FuzzStdio(f *testing.F) {
	f.Add([]byte(handshake + echoCall + hangCall + cancel))
	f.Add([]byte(echoCall))
	f.Add([]byte(behind(plainHeader, strings.TrimSpace(echoCall), "{}")))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n[" + strings.TrimSpace(echoCall) + "]\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":{},"method":"tools/call","params":[]}` + "\n{"))
	for _, tt := range refusals {
		if len(tt.input) < 1<<10 {
			f.Add([]byte(handshake + tt.input + "\n" + echoCall + tt.input))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) {
			const last = "\n" + `{"jsonrpc":"2.0","id":"the last one","method":"ping"}`
			var out bytes.Buffer
			err := Serve(t.Context(), Options{Server: twoTools(), In: io.MultiReader(bytes.NewReader(input), strings.NewReader(last)), Out: &out})
			if hasHeaders(bufio.NewReader(bytes.NewReader(input))) {
				unframed(t, out.Bytes())
				return
			}
			if err != nil {
				t.Error(err)
			}
			if !strings.Contains(out.String(), `"the last one"`) {
				t.Errorf("no answer after it, but %q", &out)
			}
		})
	})
}

// Whatever comes, and in whatever pieces, what is given on is messages that the SDK can read, and all that is no answer is
// either given on or answered.
func FuzzStdioLines(f *testing.F) {
	for _, tt := range refusals {
		if len(tt.input) < 1<<13 {
			f.Add([]byte(handshake+tt.input+"\n"+echoCall+tt.input), uint64(len(tt.input)))
		}
	}
	f.Fuzz(func(t *testing.T, input []byte, seed uint64) {
		var out bytes.Buffer
		in := &pieces{in: bytes.NewReader(input), random: rand.New(rand.NewPCG(seed, 0))}
		c := newConn(t.Context(), nil, Options{In: in, Out: &out})
		c.in = bufio.NewReaderSize(in, 16)
		passed := 0
		for {
			m, err := c.next()
			if err == io.EOF {
				break
			}
			if text, encodes := jsonrpc.EncodeMessage(m); err != nil || encodes != nil || !json.Valid(text) {
				t.Fatalf("%q is given on: %v, %v", text, err, encodes)
			}
			passed++
		}
		var lines int
		for line := range bytes.Lines(input) {
			var m map[string]json.RawMessage
			answer := json.Unmarshal(line, &m) == nil && m["method"] == nil && (m["result"] != nil || m["error"] != nil)
			if m == nil { // a broken message that begins as an answer is not answered either
				answer = bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"error"`))
			}
			if len(bytes.Trim(line, " \t\r\n")) > 0 && !answer {
				lines++
			}
		}
		refused := len(answers(t, out.Bytes()))
		if got := passed + refused; got < lines {
			t.Errorf("%d of %d lines are neither given on nor answered", lines-got, lines)
		}
	})
}

// pieces is a stream that comes in pieces of a random length.
type pieces struct {
	in     io.Reader
	random *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	return p.in.Read(b[:min(len(b), 1+p.random.IntN(20))])
}

// unread is an output that nobody reads.
type unread struct{ ctx context.Context }

func (u unread) Write([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, io.ErrClosedPipe
}

// TestStdioUnread: a client that takes no answer is not read without end.
func TestStdioUnread(t *testing.T) {
	for name, message := range map[string]string{
		"pings":           `{"jsonrpc":"2.0","id":%d,"method":"ping"}`,
		"pings of one id": `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"n":%d}}`,
		"unknown methods": `{"jsonrpc":"2.0","id":"%d","method":"what/ever"}`,
		"what is no JSON": `{"id":%d`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leaveUnread(t, message)
		})
	}
}

// leaveUnread sends a message many times, and takes no answer.
func leaveUnread(t *testing.T, message string) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	in, feed := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, Options{Server: twoTools(), In: in, Out: unread{ctx}}) }()
	var taken atomic.Int64
	go func() {
		for i := range 12_000 {
			if _, err := fmt.Fprintf(feed, message+"\n", i); err != nil {
				return
			}
			taken.Add(1)
		}
	}()
	for before := int64(-1); taken.Load() != before; time.Sleep(time.Second) { // until nothing more is taken
		before = taken.Load()
	}
	if n := taken.Load(); n > 10_000 || n*int64(len(message)) > 100<<20 {
		t.Errorf("%d messages of %d bytes were taken", n, len(message))
	}
	end()
	feed.Close()
	<-served
}
