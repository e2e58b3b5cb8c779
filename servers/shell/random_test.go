package shell_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/servers/shell"
)

// allowed are the commands of random lines. Of them ok is a program.
var allowed = strings.Split("ok,echo,true,:,printf,read,export,test,[,set,unset", ",")

// A stage runs accepted lines in real shells, and notes the commands that they looked for.
type stage struct{ dir, trace string }

func newStage(t testing.TB) stage {
	t.Helper()
	s := stage{t.TempDir(), filepath.Join(t.TempDir(), "trace")}
	for _, name := range []string{"ok", "canary", "x"} {
		write(t, s.dir, name, "#!/bin/sh\necho "+name+" >> '"+s.trace+"'\n", 0o755)
	}
	return s
}

var notFound = regexp.MustCompile(`(?m)^\S+: \d+: (.*): not found$`)

// safe reports whether a test may run a line: it reaches no other directory, and has no loop that may not end.
func safe(line string) bool {
	return len(line) < 2000 && !strings.ContainsAny(line, "/~") && !strings.Contains(line, "while") && !strings.Contains(line, "until")
}

// verify runs a line in the shell if the rules accept it there, and fails the test if it then looks for a command that is not
// allowed. It reports whether the line was accepted.
func (s stage) verify(t testing.TB, name, line string) bool {
	t.Helper()
	if shell.Check(name, allowed, nil, line) != nil || !safe(line) {
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t, name), "-c", line)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	cmd.Env = []string{"PATH=" + s.dir, "HOME=" + cmd.Dir, "LANG=C.UTF-8", `BASH_FUNC_command_not_found_handle%%=() { echo "$1" >> '` + s.trace + `'; }`}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, _ := cmd.CombinedOutput() // most lines fail
	names := strings.Split(string(must(os.ReadFile(s.trace))), "\n")
	for _, m := range notFound.FindAllStringSubmatch(string(out), -1) {
		names = append(names, m[1])
	}
	for _, command := range names {
		if command != "" && !slices.Contains(allowed, command) {
			t.Errorf("%s looked for %q in the accepted line %q", name, command, line)
		}
	}
	_ = os.Remove(s.trace)
	return true
}

// must returns what was read; a file that is not there is empty.
func must(data []byte, _ error) []byte { return data }

// pieces are what random lines are made of, besides the lines of the table.
var pieces = []string{
	"ok", "canary", "x", "echo", "eval", " ", " ", " ", "\n", ";", "&", "|", "&&", "||", "|&", "&>", ">", "<", ">&", "<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "<<<", "(", ")", "((", "))",
	"{", "}", "{ ", "; }", "$(", "$((", "`", "${", "${x", "${x:-", "${x#", "${x@", "$x", "$", "$'", "$\"", "'", "\"", "\\", "\\\n", " \\\n", "#", " #", "!", "if ", "; then ", "; fi", "else ",
	"for x in ", "; do ", "; done", "case x in ", "x) ", ";; ", " esac", "[[ ", " ]]", "[ ", " ]", "time ", "coproc ", "function ", "x()", "x=", "PATH=", "*", "?", "a[", "]", "@(", "1", "+", "-", "=", "é", "\u00a0", "\r",
}

// random returns a line that is a few changes away from one of the table.
func random(r *rand.Rand, lines []string) string {
	line := lines[r.IntN(len(lines))]
	for range 1 + r.IntN(4) {
		from, piece := r.IntN(len(line)+1), pieces[r.IntN(len(pieces))]
		to := from
		if r.IntN(3) == 0 {
			to = min(len(line), from+r.IntN(4))
		}
		line = line[:from] + piece + line[to:]
	}
	return line
}

func FuzzRules(f *testing.F) {
	for i, r := range rows(f) {
		if i%parttest.Times(6, 1) != 0 {
			continue
		}
		f.Add(strings.ReplaceAll(r.Line, "ls", "ok"))
		f.Add(strings.ReplaceAll(r.Line, "canary", "ok"))
	}
	f.Fuzz(func(t *testing.T, line string) {
		s := newStage(t)
		for _, name := range []string{"dash", "bash"} {
			s.verify(t, name, line)
		}
	})
}
