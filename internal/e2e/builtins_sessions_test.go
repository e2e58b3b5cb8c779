//go:build linux

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/servers/servertest"
)

// earlyInitialize is the handshake of the first version of the protocol.
const earlyInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"early","version":"0"}}}`

// oldSessions are what clients in the wild write, with CALL for a call with the id 9, and the ids of the answers.
var oldSessions = map[string]struct {
	headers bool // before each message; else each is a line
	says    []string
	ids     []int
}{
	"an early version":                 {false, []string{earlyInitialize, `{"jsonrpc":"2.0","method":"initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "CALL"}, []int{1, 2, 9}},
	"an early version, bare":           {false, []string{earlyInitialize, `{"method":"initialized"}`, "CALL"}, []int{1, 9}},
	"an early version with parameters": {false, []string{earlyInitialize, `{"jsonrpc":"2.0","method":"initialized","params":{}}`, "CALL"}, []int{1, 9}},
	"one shot":                         {false, []string{"CALL"}, []int{9}},
	"headers":                          {true, []string{earlyInitialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "CALL"}, []int{1, 2, 9}},
	"an early version with headers":    {true, []string{earlyInitialize, `{"method":"initialized"}`, "CALL"}, []int{1, 9}},
	"one shot with a header":           {true, []string{"CALL"}, []int{9}},
}

// TestBuiltinOldSessions: each built-in server answers clients that write as few do today.
func TestBuiltinOldSessions(t *testing.T) {
	t.Parallel()
	for _, b := range servers.Builtins() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			session := servertest.Sessions(t, b.Name)[0]
			for name, old := range oldSessions {
				j := newJob(t, b.Name, session)
				got := j.answers(t, old.says, old.headers)
				if ids := slices.Sorted(maps.Keys(got)); !slices.Equal(ids, old.ids) {
					t.Errorf("%s: answers to %v, want %v", name, ids, old.ids)
				}
				if diff := cmp.Diff(decoded(t, session.Calls[0].Result), decoded(t, shownResult(t, string(got[9])))); diff != "" {
					t.Errorf("%s: the call (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// answers runs the server with messages as its input, the first call of the job in place of CALL, and returns the results by
// id. Anything else that the server writes fails the test.
func (j job) answers(t *testing.T, says []string, headers bool) map[int]json.RawMessage {
	t.Helper()
	first := j.Calls[0]
	call := fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, first.Tool, first.Args)
	var input strings.Builder
	for _, message := range says {
		if message = strings.ReplaceAll(message, "CALL", call); headers {
			fmt.Fprintf(&input, "Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n%s", len(message), message)
		} else {
			input.WriteString(message + "\n")
		}
	}
	p := program(t, j.Dir, j.args()...)
	p.Env = append(p.Env, "TZ=UTC")
	p.Stdin = strings.NewReader(input.String())
	r := p.run(t)
	if r.status != 0 || r.stderr != "" {
		t.Errorf("exit status %d: %s", r.status, r.stderr)
	}
	got := map[int]json.RawMessage{}
	for _, message := range messagesOf(t, r.stdout, headers) {
		var answer struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal([]byte(message), &answer); err != nil || answer.Error != nil || answer.Result == nil {
			t.Errorf("%v: the server writes %s", err, message)
		}
		got[answer.ID] = json.RawMessage(j.place.Shown(string(answer.Result)))
	}
	return got
}

// messagesOf returns the messages of an output.
func messagesOf(t *testing.T, out string, headers bool) (messages []string) {
	t.Helper()
	if !headers {
		return slices.Collect(strings.Lines(out))
	}
	in := bufio.NewReader(strings.NewReader(out))
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return messages
		}
		head, err := textproto.NewReader(in).ReadMIMEHeader()
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		length, err := strconv.Atoi(head.Get("Content-Length"))
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		message := make([]byte, length)
		if _, err := io.ReadFull(in, message); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		messages = append(messages, string(message))
	}
}

// TestBuiltinEnds: a call that may change something finishes within the grace after a signal and after the end of the input.
func TestBuiltinEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(p *process, input io.Closer) error{
		"SIGTERM":      func(p *process, _ io.Closer) error { return p.Process.Signal(syscall.SIGTERM) },
		"input closed": func(_ *process, input io.Closer) error { return input.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := program(t, dir, "server", "shell", "--grace", "1m")
			input, err := p.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			output, err := p.StdoutPipe()
			if err == nil {
				err = p.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			answers := bufio.NewReader(output)
			io.WriteString(input, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
			if _, err := answers.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			io.WriteString(input, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
			for range 3 { // the session is open for all that follows
				io.WriteString(input, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n")
				if _, err := answers.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			io.WriteString(input, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"execute_command","arguments":{"command":"echo > begun; sleep 2; echo ok | tee done"}}}`+"\n")
			until(t, "the call has begun", func() bool { _, err := os.Stat(filepath.Join(dir, "begun")); return err == nil })
			if err := end(p, input); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(answers)
			if err != nil {
				t.Error(err)
			}
			p.ends(t, patience)
			if text, err := os.ReadFile(filepath.Join(dir, "done")); string(text) != "ok\n" {
				t.Errorf("the call has not finished: %q, %v", text, err)
			}
			if name == "SIGTERM" && !strings.Contains(string(rest), `"id":9,"result"`) {
				t.Errorf("the call has no answer: %s", rest)
			}
		})
	}
}
