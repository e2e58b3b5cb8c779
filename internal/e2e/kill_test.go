//go:build linux

package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/internal/porttest"
)

// soon is how long mcsh may take to end after a signal.
const soon = patience

// waiting is a pipeline whose third item of five does not come before its call is ended, and the file that tells when
// it is waited for. The commands around it show that the sandbox is in use.
func waiting(t *testing.T) (pipeline []object, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "waiting")
	return []object{
		command("jq", "-n", "-c", "{n: range(5)}"),
		with(with(toolStage("odd", "get_late", object{"at": 2, "file": file}), "for_each", true), "concurrency", 1),
		command("jq", "-c", "map(.n)"),
	}, file
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// begin runs a pipeline in the background. The function that it returns waits for the reply.
func begin(t *testing.T, session *mcp.ClientSession, pipeline []object) func() (string, bool) {
	t.Helper()
	return beginCall(t, session, pipelineCall(pipeline))
}

// beginCall is begin for a call that was made ready.
func beginCall(t *testing.T, session *mcp.ClientSession, call *mcp.CallToolParams) func() (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	type reply struct {
		res *mcp.CallToolResult
		err error
	}
	replied := make(chan reply, 1)
	go func() {
		defer cancel()
		res, err := session.CallTool(ctx, call)
		replied <- reply{res, err}
	}()
	return func() (string, bool) {
		t.Helper()
		r := <-replied
		if r.err != nil {
			t.Fatalf("calling execute_pipeline: %v", r.err)
		}
		return textOf(r.res), r.res.IsError
	}
}

// TestKilledPart kills, in the middle of a run, what the run depends on. The error says so, and the next run in the
// same gateway works.
func TestKilledPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, argv string // of the process to kill
		want       []string
	}{
		{"server", filepath.Base(os.Args[0]), []string{
			"Stage 2 (tool odd/get_late) failed at item 3", "SERVER_UNAVAILABLE", "signal: killed", "Try: ", "Done before: 2 items",
		}},
		{"sandbox worker", "mcsh-worker", []string{"failed", "sandbox", "Try: "}},
	} {
		for _, version := range versions {
			t.Run(test.name+" "+version, func(t *testing.T) {
				t.Parallel()
				g := serveStdio(t, object{"odd": child(t, "odd")}, version, nil)
				pipeline, file := waiting(t)
				reply := begin(t, g.ClientSession, pipeline)
				until(t, "the third call", func() bool { return exists(file) })
				pids := g.children(t, test.argv)
				if len(pids) == 0 {
					t.Fatalf("mcsh has started nothing called %s", test.argv)
				}
				for _, pid := range pids {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				}
				text, failed := reply()
				for _, want := range test.want {
					if !failed || !strings.Contains(text, want) {
						t.Errorf("%q does not say %q", text, want)
					}
				}
				if strings.Contains(text, "taken effect") {
					t.Errorf("%q: the tool only reads", text)
				}
				good := mustExecute(t, g.ClientSession, toolStage("odd", "get_item", object{"n": 7}), command("jq", "-c", ".item"))
				if good != "7\n" {
					t.Errorf("afterwards: got %q", good)
				}
			})
		}
	}
}

// TestSignals ends mcsh run and mcsh serve in the middle of a run. By day TestEnds ends mcsh serve with SIGINT.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		servers := object{"odd": child(t, "odd")}
		t.Run("run "+sig.String(), func(t *testing.T) {
			t.Parallel()
			pipeline, file := waiting(t)
			p := mcsh(t, servers, "run", encode(t, pipeline))
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "the third call", func() bool { return exists(file) })
			p.stop(t, sig)
			if got := p.ends(t, soon); got != 130 {
				t.Errorf("exit status %d, want 130: %s", got, p.stderr.String())
			}
			p.leftNothing(t)
		})
		if sig == syscall.SIGINT && !parttest.Night() {
			continue
		}
		t.Run("serve stdio "+sig.String(), func(t *testing.T) {
			t.Parallel()
			g := serveStdio(t, servers, versions[1], nil)
			file := g.busy(t, g.ClientSession)
			until(t, "the third call", func() bool { return exists(file) })
			g.stop(t, sig)
			if got := g.ends(t, soon); got != 0 {
				t.Errorf("exit status %d, want 0: %s", got, g.stderr.String())
			}
		})
		t.Run("serve HTTP "+sig.String(), func(t *testing.T) {
			t.Parallel()
			p, url := serveHTTP(t, servers)
			file := p.busy(t, connectHTTP(t, url, versions[1], nil))
			until(t, "the third call", func() bool { return exists(file) })
			p.stop(t, sig)
			begun := time.Now()
			until(t, "mcsh serve ends", func() bool { _, there := processes(t)[p.Process.Pid]; return !there })
			if d := time.Since(begun); d > soon {
				t.Errorf("it took %v to end", d)
			}
		})
	}
}

// stop takes note of the processes below p and sends a signal.
func (p *process) stop(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if p.look(t) < 2 {
		t.Errorf("%d processes are below mcsh, want a server and a worker", len(p.seen))
	}
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// busy begins a run that is not to end by itself, and returns the file that tells when it waits.
func (p *process) busy(t *testing.T, session *mcp.ClientSession) string {
	t.Helper()
	pipeline, file := waiting(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		_, _ = session.CallTool(ctx, pipelineCall(pipeline)) // there may be no reply
		close(ended)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return file
}

// TestClosedInput ends mcsh serve by the end of its input.
func TestClosedInput(t *testing.T) {
	t.Parallel()
	g := serveStdio(t, object{"odd": child(t, "odd")}, versions[0], nil)
	mustExecute(t, g.ClientSession, toolStage("odd", "get_item", object{"n": 7}), command("tail", "-n", "+1"))
	g.look(t)
	if err := g.input.Close(); err != nil {
		t.Fatal(err)
	}
	if got := g.ends(t, soon); got != 0 {
		t.Errorf("exit status %d, want 0: %s", got, g.stderr.String())
	}
}

// TestKilledGateway kills mcsh itself, which can then close nothing: what it has started ends all the same.
func TestKilledGateway(t *testing.T) {
	t.Parallel()
	pipeline, file := waiting(t)
	p := mcsh(t, object{"odd": child(t, "odd")}, "run", encode(t, pipeline))
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the third call", func() bool { return exists(file) })
	p.stop(t, syscall.SIGKILL)
	p.ends(t, soon)
	until(t, "servers and workers end", func() bool { return !alive(t, p.tmp) && !p.survives(t) })
}

// survives reports whether a process that was below p is still there.
func (p *process) survives(t *testing.T) bool {
	t.Helper()
	table := processes(t)
	for pid, began := range p.seen {
		if table[pid].began == began {
			return true
		}
	}
	return false
}

// TestReaderStops has a reader that takes one line.
func TestReaderStops(t *testing.T) {
	t.Parallel()
	p := mcsh(t, object{"odd": child(t, "odd")}, "run", encode(t, []object{
		command("jq", "-n", "-c", "{n: range(100000)}"),
		with(with(object{"type": "tool", "server": "odd", "name": "get_item"}, "for_each", true), "collect", "lines"),
		command("tail", "-n", "+1"),
	}))
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "{\"item\":0}\n" {
		t.Errorf("got %q, %v", line, err)
	}
	p.look(t)
	out.Close()
	if got := p.ends(t, soon); got != 0 {
		t.Errorf("exit status %d: %s", got, p.stderr.String())
	}
	p.leftNothing(t)
}

// TestRestartedServer kills servers over HTTP under a live gateway and starts them again at the same address. Their
// sessions are gone, which they say with the id of the request: one with 400, one with 404. The next call works.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, path string
		command    func(t *testing.T, address string) *exec.Cmd
	}{
		{"npm everything", "/mcp", func(t *testing.T, address string) *exec.Cmd { return everythingAt(t, "streamableHttp", address) }},
		{"404", "", func(t *testing.T, address string) *exec.Cmd {
			c := mcptest.Child(t, "sessions")
			cmd := exec.Command(c.Name)
			cmd.Env = append(os.Environ(), addressVariable+"="+address)
			for name, value := range c.Env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			return cmd
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			address := porttest.Free(t)
			_, gateway := serveHTTP(t, object{"s": object{"url": "http://" + address + test.path}})
			session := connectHTTP(t, gateway, versions[0], nil)
			for round := range 3 {
				kill := listensAt(t, test.command(t, address), address)
				text, failed := execute(t, session, toolStage("s", "echo", object{"message": "hello"}))
				if failed || !strings.Contains(text, "hello") {
					t.Fatalf("round %d: got %s", round, text)
				}
				kill()
			}
		})
	}
}
