package upstream_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// The variables that tell a child of the chaos what is wrong with it, and the file whose presence heals it.
const (
	faultVariable = "CHAOS_FAULT"
	cureVariable  = "CHAOS_CURE"
)

// A request is as much of a request as faults look at.
type chaosRequest struct {
	ID     json.RawMessage
	Method string
	lines  *bufio.Reader
}

// chaosChild is a program with one fault, until it is cured.
func chaosChild() {
	fault := stdioFaults[os.Getenv(faultVariable)]
	cured := func() bool { _, err := os.Stat(os.Getenv(cureVariable)); return err == nil }
	if fault.start != nil && !cured() {
		fault.start()
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		req := chaosRequest{lines: in}
		if json.Unmarshal(line, &req) != nil || req.ID == nil {
			continue
		}
		do := fault.on[req.Method]
		if do == nil {
			do = fault.on["*"]
		}
		if do == nil || cured() {
			do = well
		}
		do(req)
	}
}

// well answers as a server without faults.
func well(r chaosRequest) {
	if answer := legacyAnswers[r.Method]; answer != "" {
		r.result(answer)
		return
	}
	if r.Method == "ping" {
		r.result("{}")
		return
	}
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there is no such method"}}`+"\n", r.ID)
}

func (r chaosRequest) result(json string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", r.ID, json)
}

// A stdioFault is what is wrong with a program: as it starts, or with a method ("*" is any).
type stdioFault struct {
	start func()
	on    map[string]func(chaosRequest)
}

func onCall(do func(r chaosRequest)) stdioFault {
	return stdioFault{on: map[string]func(chaosRequest){"tools/call": do}}
}

func onList(do func(r chaosRequest)) stdioFault { return onMethod("tools/list", do) }

func onMethod(method string, do func(r chaosRequest)) stdioFault {
	return stdioFault{on: map[string]func(chaosRequest){method: do}}
}

func answering(result string) stdioFault { return onCall(func(r chaosRequest) { r.result(result) }) }

func silent(chaosRequest) {}

func forever() { select {} }

// stdioFaults are the faults of programs.
var stdioFaults = map[string]stdioFault{
	"stdio exits at the start": {start: func() {
		fmt.Fprintln(os.Stderr, "Error: DATABASE_URL is not set")
		os.Exit(3)
	}},
	"stdio says nothing":    {on: map[string]func(chaosRequest){"*": silent}},
	"stdio banner":          {start: func() { fmt.Println("Welcome!\n\n{\"level\":\"info\"}") }},
	"stdio ends at a probe": {on: map[string]func(chaosRequest){"server/discover": func(chaosRequest) { os.Exit(1) }}},
	"stdio crashes in a call": onCall(func(chaosRequest) {
		fmt.Fprintln(os.Stderr, "panic: out of cheese")
		os.Exit(2)
	}),
	"stdio hangs in a call":                    onCall(silent),
	"stdio hangs wholly":                       onCall(func(chaosRequest) { forever() }),
	"stdio closes its output":                  onCall(func(chaosRequest) { os.Stdout.Close(); forever() }),
	"stdio half a line":                        onCall(func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"resu`+"\n", r.ID) }),
	"stdio half a line and dies":               onCall(func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"resu`, r.ID); os.Exit(4) }),
	"stdio half a line, then one":              onCall(func(r chaosRequest) { fmt.Print(`{"jsonrpc":"2.0","method":"notif`); well(r) }),
	"stdio answers nothing":                    onCall(func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s}`+"\n", r.ID) }),
	"stdio answers no error":                   onCall(func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":null}`+"\n", r.ID) }),
	"stdio opens with nothing":                 onMethod("initialize", func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s}`+"\n", r.ID) }),
	"stdio opens with no error":                onMethod("initialize", func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":null}`+"\n", r.ID) }),
	"stdio opens with null":                    onMethod("initialize", func(r chaosRequest) { r.result("null") }),
	"stdio opens with a text":                  onMethod("initialize", func(r chaosRequest) { r.result(`"hello"`) }),
	"stdio opens with an error that is a text": onMethod("initialize", func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":"oops"}`+"\n", r.ID) }),
	"stdio lists nothing":                      onList(func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s}`+"\n", r.ID) }),
	"stdio cut result":                         onCall(func(r chaosRequest) { fmt.Println(`{"result":{"content":[{"type":"te`) }),
	"stdio too large": onCall(func(r chaosRequest) {
		r.result(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]}`)
	}),
	"stdio too large, id last": onCall(func(r chaosRequest) {
		fmt.Printf(`{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}`+"\n", strings.Repeat("y", 3<<20), r.ID)
	}),
	"stdio floods with garbage": onCall(func(r chaosRequest) {
		for range 3000 {
			fmt.Println("debug: still here")
		}
		well(r)
	}),
	"stdio floods with notifications": onCall(func(r chaosRequest) {
		for range 4000 {
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		}
		well(r)
	}),
	"stdio floods standard error": onCall(func(r chaosRequest) {
		for range 3000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 1000))
		}
		well(r)
	}),
	"stdio is deaf":              onCall(func(chaosRequest) { forever() }),
	"stdio answers twice":        onCall(func(r chaosRequest) { well(r); well(r) }),
	"stdio answers a stranger":   onCall(func(r chaosRequest) { fmt.Println(`{"jsonrpc":"2.0","id":77,"result":{}}`); well(r) }),
	"stdio asks back":            onCall(func(r chaosRequest) { fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`); well(r) }),
	"stdio answers late":         onCall(func(r chaosRequest) { time.Sleep(300 * time.Millisecond); well(r) }),
	"stdio protocol error":       onCall(func(r chaosRequest) { r.fail(-32603, `column \"nope\" does not exist`) }),
	"stdio refuses the argument": onCall(func(r chaosRequest) { r.fail(-32602, `missing required property \"id\"`) }),
	"stdio knows no method":      onCall(func(r chaosRequest) { r.fail(-32601, "method not found") }),
	"stdio error without words":  onCall(func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1}}`+"\n", r.ID) }),
	"stdio error that is a text": onCall(func(r chaosRequest) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":"oops"}`+"\n", r.ID) }),
	"stdio isError":              answering(`{"isError":true,"content":[{"type":"text","text":"MCP error -32602: Input validation error"}]}`),
	"stdio isError in JSON":      answering(`{"isError":true,"content":[{"type":"text","text":"{\"success\":false,\"error\":\"no such table\",\"code\":\"EXECUTION_ERROR\"}"}]}`),
	"stdio null":                 answering(`null`),
	"stdio no object":            answering(`"done"`),
	"stdio content of numbers":   answering(`{"content":[1,2]}`),
	"stdio broken JSON inside":   answering(`{"content":[{"type":"text","text":tru}]}`),
	"stdio wants a person":       answering(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Which account?"}}}}`),
	"stdio answers with a task":  answering(`{"task":{"taskId":"1","status":"working"}}`),
	"stdio list hangs":           onList(silent),
	"stdio list is no list":      onList(func(r chaosRequest) { r.result(`{"tools":{"one":1}}`) }),
	"stdio list is refused":      onList(func(r chaosRequest) { r.fail(-32000, "license expired") }),
	"stdio list without end": onList(func(r chaosRequest) {
		r.result(strings.Replace(legacyAnswers["tools/list"], `{"tools"`, `{"nextCursor":"again","tools"`, 1))
	}),
	"stdio list crashes": onList(func(chaosRequest) { os.Exit(9) }),
}

func (r chaosRequest) fail(code int, message string) {
	fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"%s"}}`+"\n", r.ID, code, message)
}
