//go:build linux

package e2e

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// hugeAnswer is how many bytes a hostile server answers with, a little less than one message may have.
const hugeAnswer = 60 << 20

// floods is what flood writes without end, by tool.
var floods = map[string]string{
	"progress": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"` + strings.Repeat("x", 1000) + `"}}` + "\n",
	"changes":  `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n",
	"noise":    strings.Repeat("noise ", 200) + "\n", // on standard error
	"blanks":   strings.Repeat("\n", 64<<10),
	"spaces":   strings.Repeat(strings.Repeat(" ", 60<<10)+"\n", 10),
	"junk":     "Debug: \x1b[31mlistening\n",
	"pings":    `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}` + "\n",
	"answers":  `{"jsonrpc":"2.0","id":1000000000,"result":{}}` + "\n" + `{"jsonrpc":"2.0","id":9000000000,"result":{}}` + "\n",
	"batches":  "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1000000000,"result":{}},`, 1000) + "1]\n",
	"endless":  strings.Repeat("x", 64<<10), // one line without an end
}

// hugeResults is what flood answers to calls of other tools.
var hugeResults = map[string]func() string{
	"blocks":  func() string { return `{"content":[` + repeatTo("{},") + `{}]}` },
	"members": func() string { return `{"structuredContent":{` + numbered(4_000_000, `"%d":0`) + `}}` },
	"asks": func() string {
		return `{"resultType":"input_required","inputRequests":{` + numbered(2_500_000, `"%d":{}`) + `}}`
	},
	"errors": func() string {
		const depth = 4_500
		text := strings.Repeat(`{\"error\":`, depth) + strings.Repeat(" ", hugeAnswer/2) + "1" + strings.Repeat("}", depth)
		return `{"isError":true,"content":[{"type":"text","text":"` + text + `"}]}`
	},
	"controls": controls,
	"links": func() string {
		return `{"isError":true,"content":[{"type":"text","text":"` + repeatTo(`Get \"http://a b`) + `"}]}`
	},
}

// controls is a text of which an answer takes six times the bytes.
func controls() string {
	return `{"content":[{"type":"text","text":"` + strings.Repeat(`\u0001`, 999_000) + `"}]}`
}

// repeatTo repeats text to hugeAnswer.
func repeatTo(text string) string { return strings.Repeat(text, hugeAnswer/len(text)) }

// numbered writes members of an object, each with a name of its own.
func numbered(n int, form string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// flood is a server whose tools write without end from their first call on, or answer with far too much.
func flood() { serveRaw(`{"tools":{"listChanged":true}}`) }

// boasting is a server whose capabilities decode to far more than they say.
func boasting() {
	serveRaw(`{"tools":{},"experimental":{"x":[` + repeatTo("[],") + `[]]}}`)
}

// serveRaw serves the tools of flood on standard input and output.
func serveRaw(capabilities string) {
	in := bufio.NewReader(os.Stdin)
	answer := func(id json.RawMessage, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	}
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"serverInfo":{"name":"flood","version":"1"}}`)
		case "tools/list":
			answer(m.ID, rawTools())
		case "tools/call":
			if result := hugeResults[m.Params.Name]; result != nil {
				answer(m.ID, result())
				continue
			}
			to := os.Stdout
			if m.Params.Name == "noise" {
				to = os.Stderr
			}
			go pour(to, floods[m.Params.Name])
		case "ping":
			answer(m.ID, `{}`)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`+"\n", m.ID)
		}
	}
}

// rawTools lists the tools of flood.
func rawTools() string {
	var tools []string
	add := func(name string) {
		tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
	}
	for name := range floods {
		add(name)
	}
	for name := range hugeResults {
		add(name)
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}

// pour writes text for the time of a hostile run.
func pour(to io.Writer, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), planTimeout*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := io.WriteString(to, text); err != nil {
			return
		}
	}
}

// streams is what a server over HTTP writes into the stream of an answer without end, by tool. The processes of other tests do not make it.
var streams = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"comments": ":\n",
		"names":    "event: " + strings.Repeat("x", 1<<20) + "\n",
		"ids":      "id: " + strings.Repeat("x", 8<<20) + "\n\n",
		"nothings": "data:\n\n",
		"endless":  strings.Repeat("x", 64<<10),
		"retries":  "retry: 0\n",
		"bombs":    strings.Repeat(" ", 1<<20), // compressed, in place of a stream
		"heads":    strings.Repeat("x", 1<<20), // in a header
	}
})

// stream writes the answer of a tool.
func stream(w http.ResponseWriter, tool string) {
	text := streams()[tool]
	switch tool {
	case "heads":
		w.Header().Set("X-Long", text)
	case "bombs":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		pour(z, text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	pour(w, strings.Repeat(text, 1+(64<<10)/len(text)))
}

// hostileStreams is a server in the test's own process whose tools answer with streams that never end.
func hostileStreams(t *testing.T) object {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := ""
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"streams","version":"1"}}`
		case "tools/list":
			var tools []string
			for name := range streams() {
				tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`)
			}
			result = `{"tools":[` + strings.Join(tools, ",") + `]}`
		case "tools/call":
			stream(w, m.Params.Name)
			return
		}
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case result == "":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
	}))
	t.Cleanup(s.Close)
	return object{"streams": object{"type": "http", "url": s.URL}}
}
