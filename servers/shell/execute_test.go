package shell_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/servertest"
	"github.com/mcsh-dev/mcsh/servers/shell"
)

// patience is how long a test waits for a condition.
const patience = time.Minute

// eventually waits for a condition.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after %v: %s", patience, what)
		}
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options shell.Options
		line    string
		want    reply
	}{
		{"output", shell.Options{}, "echo a; echo b", reply{Output: "a\nb\n"}},
		{"standard error follows", shell.Options{}, "echo e >&2; echo o", reply{Output: "o\ne\n"}},
		{"without standard error", shell.Options{NoStderr: true}, "echo e >&2; echo o", reply{Output: "o\n"}},
		{"exit code", shell.Options{}, "exit 7", reply{ReturnCode: 7}},
		{"killed by a signal", shell.Options{}, "kill -9 $$", reply{ReturnCode: -1}},
		{"a dash first", shell.Options{NoStderr: true}, "-x; echo $?", reply{Output: "127\n"}},
		{"a plus first", shell.Options{NoStderr: true}, "+x; echo $?", reply{Output: "127\n"}},
		{"nothing to read", shell.Options{}, "cat; echo $?", reply{Output: "0\n"}},
		{"no output", shell.Options{}, "", reply{}},
		{"lines", shell.Options{}, "x=1\necho $x", reply{Output: "1\n"}},
		{"text that is not UTF-8", shell.Options{}, `printf 'a\377b'`, reply{Output: "a\uFFFDb"}},
		{"everything runs without patterns", shell.Options{}, "f() { echo $((x + 1)); }; eval 'f'", reply{Output: "1\n"}},
		{"variables", shell.Options{
			Environ: map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/h", "LANG": "C", "SECRET": "s", "GOOS": "x", "GOARCH": "y", "NAMED": "z"},
			Env:     []string{"GO*", "NAMED", "ABSENT"},
		}, `echo "$HOME $LANG $GOOS $GOARCH $NAMED [$SECRET] [$ABSENT]"`, reply{Output: "/h C x y z [] []\n"}},
		{"all variables", shell.Options{Environ: map[string]string{"A": "1", "B": "2"}, Env: []string{"*"}}, `echo $A$B`, reply{Output: "12\n"}},
		{"no relative directory in PATH with patterns", shell.Options{Environ: map[string]string{"PATH": ".:/usr/bin::/bin:x"}, Deny: []string{"rm"}}, `echo "$PATH"`, reply{Output: "/usr/bin:/bin\n"}},
		{"characters with patterns", shell.Options{
			Environ: map[string]string{"PATH": "/usr/bin:/bin", "LANG": "zh_CN.GBK", "LC_ALL": "zh_TW", "LC_CTYPE": "de_DE.utf8@euro"},
			Env:     []string{"LC_*"}, Deny: []string{"rm"},
		}, `echo "$LANG $LC_ALL $LC_CTYPE"`, reply{Output: "C.UTF-8 C.UTF-8 de_DE.utf8@euro\n"}},
		{"characters without patterns", shell.Options{Environ: map[string]string{"LANG": "zh_CN.GBK"}}, `echo "$LANG"`, reply{Output: "zh_CN.GBK\n"}},
		{"denied", shell.Options{Deny: []string{"rm*"}}, "ls; /bin/rmdir x", reply{Output: denied, ReturnCode: -1, Reason: `"/bin/rmdir" is denied`}},
		{"not allowed", shell.Options{Allow: []string{"ls*,cat"}}, "ls | sort", reply{Output: denied, ReturnCode: -1, Reason: `"sort" is not allowed`}},
		{"the base name is allowed", shell.Options{Allow: []string{"ec*", "true"}}, "/bin/echo x; true", reply{Output: "x\n"}},
		{"deny wins", shell.Options{Allow: []string{"echo"}, Deny: []string{"e*"}}, "echo x", reply{Output: denied, ReturnCode: -1, Reason: `"echo" is denied`}},
		{"a wrapper", shell.Options{Allow: []string{"*"}}, "env ls", reply{Output: denied, ReturnCode: -1, Reason: `"env" can run other commands: it needs its own name in allow, without a star`}},
		{"a wrapper where only others are denied", shell.Options{Deny: []string{"rm"}}, "ls | env", reply{Output: denied, ReturnCode: -1, Reason: `"env" can run other commands: it needs its own name in allow, without a star; to keep all others allowed: --allow '*,env'`}},
		{"a variable where only others are denied", shell.Options{Deny: []string{"rm"}}, "PATH=.", reply{Output: denied, ReturnCode: -1, Reason: `the variable "PATH" decides what runs: it needs its own name in allow; to keep all others allowed: --allow '*,PATH'`}},
		{"a function", shell.Options{Shell: "bash", Allow: []string{"*"}}, "f() { ls; }", reply{Output: denied, ReturnCode: -1, Reason: `functions are not allowed: write their commands out, or allow must have "function" and their names`}},
		{"an array", shell.Options{Shell: "bash", Allow: []string{"*"}}, "x=(a b)", reply{Output: denied, ReturnCode: -1, Reason: "arrays cannot be checked: use plain variables or a loop over words"}},
		{"arithmetic", shell.Options{Allow: []string{"*"}}, "echo $((x))", reply{Output: denied, ReturnCode: -1, Reason: "arithmetic can be checked only with numbers in it, without variables"}},
		{"an arithmetic command", shell.Options{Shell: "bash", Allow: []string{"*"}}, "((x))", reply{Output: denied, ReturnCode: -1, Reason: "arithmetic can be checked only with numbers in it, without variables"}},
		{"beyond ASCII", shell.Options{Allow: []string{"*"}}, "echo h\u00e9", reply{Output: denied, ReturnCode: -1, Reason: "the line has characters beyond ASCII outside quotes: put quotes around them"}},
		{"backquotes", shell.Options{Allow: []string{"*"}}, "echo `ls`", reply{Output: denied, ReturnCode: -1, Reason: "backquotes cannot be checked: write $(\u2026)"}},
		{"not parsed", shell.Options{Allow: []string{"*"}}, "echo 'x", reply{Output: denied, ReturnCode: -1, Reason: "cannot be parsed: 1:6: reached EOF without closing quote `'`"}},
		{"much output", shell.Options{MaxOutput: 10}, "printf 0123456789abcdef", reply{Output: "01234\n[... 6 bytes left out ...]\nbcdef", Omitted: 6}},
		{"much output on both", shell.Options{MaxOutput: 10}, "printf 0123456789abcdef; printf 0123456789ABCDEF >&2", reply{Output: "01234\n[... 22 bytes left out ...]\nBCDEF", Omitted: 22}},
		{"much on standard error", shell.Options{MaxOutput: 10}, "printf 012; printf 0123456789ABCDEF >&2", reply{Output: "01201\n[... 9 bytes left out ...]\nBCDEF", Omitted: 9}},
		{"output at the limit", shell.Options{MaxOutput: 9}, "printf 01234; printf 5678 >&2", reply{Output: "012345678"}},
		{"out of time", shell.Options{Timeout: 15 * time.Second}, "echo a; sleep 1000", reply{Output: "a\nCommand timed out after 15s", ReturnCode: -1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.want.Command = tt.line
			if diff := cmp.Diff(tt.want, open(t, tt.options)(tt.line)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotStarted: a line that cannot start is a normal result.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run := open(t, shell.Options{WorkingDir: dir})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if got := run("echo x"); got.ReturnCode != -1 || !strings.HasPrefix(got.Output, "Failed to execute: ") {
		t.Errorf("got %+v, want a line that begins with Failed to execute", got)
	}
}

// TestLargeOutput: a flood of output takes no memory, and does not stop the command.
func TestLargeOutput(t *testing.T) {
	t.Parallel()
	got := open(t, shell.Options{MaxOutput: 1000})("head -c 30000000 /dev/zero; head -c 30000000 /dev/zero >&2; echo end >&2")
	if got.Omitted != 60000004-1000 || !strings.HasSuffix(got.Output, "\x00end\n") || got.ReturnCode != 0 {
		t.Errorf("code %d, %d bytes left out, %d bytes of output", got.ReturnCode, got.Omitted, len(got.Output))
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(t testing.TB, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err == nil {
		_, state, _ := strings.Cut(string(stat), ") ")
		return state[0] != 'Z'
	}
	return syscall.Kill(n, 0) == nil
}

// TestEndOfGroup: the processes of a line end with its time, its cancellation, and the end of the line.
func TestEndOfGroup(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"time":         `sleep 1000 & echo $! > pid; (trap '' TERM INT HUP; sleep 1000)`,
		"cancellation": `sleep 1000 & echo $! > pid; wait`,
		"end":          `sleep 1000 & echo $! > pid`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := shell.Options{WorkingDir: t.TempDir(), Environ: map[string]string{"PATH": os.Getenv("PATH")}, Timeout: time.Hour}
			if name == "time" {
				o.Timeout = 15 * time.Second
			}
			server, err := shell.New(o)
			c := servertest.Connect(t, server, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := c.Session.CallTool(ctx, params(line))
				ended <- err
			}()
			var pid string
			eventually(t, "the line wrote its file", func() bool {
				data, _ := os.ReadFile(filepath.Join(o.WorkingDir, "pid"))
				pid = strings.TrimSpace(string(data))
				return strings.HasSuffix(string(data), "\n")
			})
			if name == "cancellation" {
				cancel()
			}
			if err := <-ended; (err != nil) != (name == "cancellation") {
				t.Errorf("the call ended with %v", err)
			}
			eventually(t, "the process in the background has ended", func() bool { return !alive(t, pid) })
		})
	}
}

// TestLeftGroup: a process that leaves the group and holds the output open does not hold the call, whose result says so. It goes on.
func TestLeftGroup(t *testing.T) {
	t.Parallel()
	setsid := program(t, "setsid")
	dir := t.TempDir()
	got := open(t, shell.Options{WorkingDir: dir})(setsid + ` sh -c 'echo $$ > pid; exec sleep 1000' & while ! [ -s pid ]; do sleep 0.01; done; echo x; exit 3`)
	data, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	const want = "x\n[... the output ends here: a process that the command left behind held it open ...]"
	if got.Output != want || got.ReturnCode != 3 || !alive(t, strconv.Itoa(pid)) {
		t.Errorf("got %+v; alive %v", got, alive(t, strconv.Itoa(pid)))
	}
}

// TestManyAtOnce: calls do not wait for each other, and leave no goroutine.
func TestManyAtOnce(t *testing.T) {
	check := servertest.CheckGoroutines(t)
	t.Run("calls", func(t *testing.T) {
		run := open(t, shell.Options{})
		done := make(chan string)
		for range 8 {
			go func() { done <- run(`: > "$$"; while set -- [0-9]*; [ $# -lt 8 ]; do sleep 0.01; done; echo x`).Output }()
		}
		for range 8 {
			if got := <-done; got != "x\n" {
				t.Errorf("got %q", got)
			}
		}
	})
	check()
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	server, err := shell.New(shell.Options{WorkingDir: t.TempDir()})
	c := servertest.Connect(t, server, err)
	for _, tt := range []struct{ args, want string }{
		{`{}`, `InvalidArgument: argument "command" is missing`},
		{`{"command":"a\u0000b"}`, `InvalidArgument: the command contains a NUL character; leave it out`},
		{texts.JSON(map[string]string{"command": strings.Repeat("x", 64<<10+1)}), `LimitExceeded: the command has 65537 bytes, more than 65536; write a script to a file, and run that`},
	} {
		if r := c.Call(t, "execute_command", tt.args); !r.Error || r.Text != tt.want {
			t.Errorf("%.60s: got %q, want %q", tt.args, r.Text, tt.want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	program(t, "bash")
	dir := t.TempDir()
	write(t, dir, "zsh", "#!/bin/sh\n", 0o755)
	write(t, dir, "plain", "", 0o644)
	if err := os.Symlink(filepath.Join(dir, "zsh"), filepath.Join(dir, "sh")); err != nil {
		t.Fatal(err)
	}
	path := map[string]string{"PATH": os.Getenv("PATH")}
	for _, tt := range []struct {
		options shell.Options
		want    string // the beginning of the error; empty: none
	}{
		{shell.Options{}, ""},
		{shell.Options{Shell: "bash", Allow: []string{"ls"}, Environ: path}, ""},
		{shell.Options{Shell: filepath.Join(dir, "zsh")}, ""},
		{shell.Options{Shell: "bash"}, `option shell: there is no program "bash"`},
		{shell.Options{Shell: filepath.Join(dir, "plain")}, `option shell: there is no program "`},
		{shell.Options{Shell: filepath.Join(dir, "zsh"), Allow: []string{"ls"}}, "options allow and deny are for sh, dash and bash, whose lines are parsed: "},
		{shell.Options{Shell: filepath.Join(dir, "sh"), Deny: []string{"ls"}}, "options allow and deny are for sh, dash and bash, whose lines are parsed: "},
		{shell.Options{WorkingDir: filepath.Join(dir, "none")}, "option working_dir: "},
		{shell.Options{WorkingDir: filepath.Join(dir, "plain")}, "option working_dir: "},
		{shell.Options{Timeout: -1}, "option timeout is "},
		{shell.Options{Timeout: 25 * time.Hour}, "option timeout is 25h0m0s, want at most 24h0m0s"},
		{shell.Options{MaxOutput: 5 << 20}, "option max_output is 5242880, want 1 to 4194304"},
		{shell.Options{Allow: []string{}}, "option allow is empty"},
		{shell.Options{Allow: []string{""}}, `option allow: "" is no pattern`},
		{shell.Options{Allow: []string{"ls,"}}, `option allow: "" is no pattern`},
		{shell.Options{Allow: []string{"git push"}}, `option allow: "git push" is no pattern`},
		{shell.Options{Deny: []string{"*rm"}}, `option deny: "*rm" is no pattern`},
		{shell.Options{Env: []string{"["}}, `option env: "[" is not the name of a variable`},
		{shell.Options{Env: []string{"A=b"}}, `option env: "A=b" is not the name of a variable`},
		{shell.Options{Allow: []string{"ls"}, Environ: map[string]string{"PATH": ".:bin:"}}, "options allow and deny: PATH has no absolute directory"},
		{shell.Options{Deny: []string{"ls"}}, "options allow and deny: PATH has no absolute directory"},
		{shell.Options{Sandbox: true}, "option sandbox: there is no container engine here"},
		{shell.Options{Sandbox: true, Contain: func(string) (shell.Runner, error) { return nil, errors.New("no engine") }}, "option sandbox: no engine"},
	} {
		_, err := shell.New(tt.options)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%+v: got %v, want %q", tt.options, err, tt.want)
		}
	}
}

// TestDescription: what clients and agents learn of the tool.
func TestDescription(t *testing.T) {
	t.Parallel()
	server, err := shell.New(shell.Options{Allow: []string{"ls*,cat"}, Deny: []string{"Lsof"}, Environ: map[string]string{"PATH": "/bin"}})
	c := servertest.Connect(t, server, err)
	tool := c.Tools["execute_command"]
	if len(c.Tools) != 1 || tool == nil || tool.OutputSchema == nil {
		t.Fatalf("got the tools %v", c.Tools)
	}
	a := tool.Annotations
	if a.ReadOnlyHint || a.IdempotentHint || !*a.DestructiveHint || !*a.OpenWorldHint {
		t.Errorf("got the annotations %+v", a)
	}
	if want := "Runs a command line in a shell and returns its output and exit code. Allowed commands: ls*, cat. Denied commands: lsof."; tool.Description != want {
		t.Errorf("got the description %q, want %q", tool.Description, want)
	}
}

func TestVerbose(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	run := open(t, shell.Options{Verbose: true, Log: &log, Deny: []string{"rm"}})
	run("echo a\nexit 3")
	run("rm x")
	if want := "mcsh: shell: \"echo a\\nexit 3\": 3\nmcsh: shell: \"rm x\": -1 (\"rm\" is denied)\n"; log.String() != want {
		t.Errorf("got %q, want %q", log.String(), want)
	}
}

// A recorder is a Runner that notes what it is asked to run.
type recorder struct {
	argv, env []string
	limited   bool
	closed    int
}

func (r *recorder) Close() error {
	r.closed++
	return nil
}

func (r *recorder) Run(ctx context.Context, argv, env []string, stdout, stderr io.Writer) (int, error) {
	r.argv, r.env = argv, env
	_, r.limited = ctx.Deadline()
	io.WriteString(stdout, "out\n")
	io.WriteString(stderr, "err\n")
	return 5, nil
}

// TestSessions: the end of the last session frees the runner, each time.
func TestSessions(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	server, err := shell.New(shell.Options{Sandbox: true, Contain: func(string) (shell.Runner, error) { return r, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]func() error{}
	for i, step := range []struct {
		does, session string
		closed        int
	}{
		{"begin", "a", 0},
		{"begin", "b", 0},
		{"end", "a", 0},
		{"end", "a", 0},
		{"end", "b", 1},
		{"end", "b", 1},
		{"begin", "c", 1},
		{"end", "c", 2},
	} {
		if step.does == "begin" {
			ends[step.session] = server.Begin()
		} else if err := ends[step.session](); err != nil {
			t.Error(err)
		}
		if r.closed != step.closed {
			t.Errorf("step %d, %s of %s: the runner was closed %d times, want %d", i, step.does, step.session, r.closed, step.closed)
		}
	}
}

// TestSandbox: a sandbox gets the directory, the checked line, and no PATH and HOME of this machine.
func TestSandbox(t *testing.T) {
	t.Parallel()
	r, dir := &recorder{}, t.TempDir()
	run := open(t, shell.Options{
		Sandbox: true, WorkingDir: dir, Deny: []string{"rm"}, Env: []string{"*"}, Environ: map[string]string{"PATH": "/x", "HOME": "/y", "LANG": "C"},
		Contain: func(d string) (shell.Runner, error) {
			if d != dir {
				t.Errorf("the sandbox got %s, want %s", d, dir)
			}
			return r, nil
		},
	})
	if diff := cmp.Diff(reply{Command: "ls -l", Output: "out\nerr\n", ReturnCode: 5}, run("ls -l")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := &recorder{argv: []string{"/bin/sh", "-c", "ls -l"}, env: []string{"LANG=C"}, limited: true}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(recorder{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := run("rm x"); got.Output != denied || r.argv[2] != "ls -l" {
		t.Errorf("got %+v, and the sandbox ran %q", got, r.argv)
	}
}
