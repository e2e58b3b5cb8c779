package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a terminal of 80 columns: what one end writes, the other reads.
func terminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	fd := int(user.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { user.Close(); program.Close() })
	return user, program
}

// TestTerminalRun: on a terminal a run shows what it is doing while it is, and leaves the table; what is piped has neither,
// and no colour where nobody wants it.
func TestTerminalRun(t *testing.T) {
	t.Parallel() // it waits
	binary := oneBinary(t)
	for name, c := range map[string]struct {
		ms         int // of the run: long enough for what is to be seen meanwhile, also on a slow machine
		env        []string
		has, lacks []string
	}{
		"a terminal": {5000, nil, []string{"\r\x1b[J", "working for", "1 tool demo/slow", "\x1b[1A\x1b[J", "1 stage, ", "\x1b[1;31merror:"}, nil},
		"no colour":  {5000, []string{"NO_COLOR=1"}, []string{"working for", "error:"}, []string{"\x1b[1;31m"}},
		"dumb":       {900, []string{"TERM=dumb"}, []string{"1 stage, ", "error:"}, []string{"\x1b", "working"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, program := terminal(t)
			seen := make(chan string)
			go func() {
				var text strings.Builder
				buf := make([]byte, 4096)
				for {
					n, err := user.Read(buf)
					text.Write(buf[:n])
					if err != nil { // the other end is closed
						seen <- text.String()
						return
					}
				}
			}()
			for _, args := range [][]string{
				{"run", `[{"type": "tool", "server": "demo", "name": "slow", "args": {"ms": ` + fmt.Sprint(c.ms) + `}}]`},
				{"nosuch"},
			} {
				s := prepare(t, binary, args...)
				s.Env = append(append(s.Env, "TERM=xterm", "NO_COLOR="), c.env...)
				s.Stderr = program
				_ = s.Run() // the second fails
				if out := s.stdout.String(); strings.Contains(out, "\x1b") || args[0] == "run" && strings.TrimSpace(out) != fmt.Sprintf(`{"waited_ms":%d}`, c.ms) {
					t.Errorf("standard output is %q", out)
				}
			}
			program.Close()
			select {
			case text := <-seen:
				for _, words := range c.has {
					if !strings.Contains(text, words) {
						t.Errorf("%q is not in %q", words, text)
					}
				}
				for _, words := range c.lacks {
					if strings.Contains(text, words) {
						t.Errorf("%q is in %q", words, text)
					}
				}
			case <-time.After(patience):
				t.Fatal("the terminal does not end")
			}
		})
	}
}

// TestTerminalBars: while a for_each goes on, a terminal shows how many of its items are done; an interrupt leaves nothing of it.
// With --quiet there is neither this nor the table.
func TestTerminalBars(t *testing.T) {
	binary := oneBinary(t)
	pipeline := `[{"type": "tool", "server": "demo", "name": "list_orders"},
		{"type": "command", "command": "jq", "args": ["-c", ".orders[:50][] | {ms: 1000}"]},
		{"type": "tool", "server": "demo", "name": "slow", "for_each": true, "concurrency": 1, "distinct": false}]`
	bar := regexp.MustCompile(`\d+ of 50 items  \[#*\.*\]`)
	for name, quiet := range map[string]bool{"bars": false, "quiet": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, program := terminal(t)
			seen := &heard{}
			go io.Copy(seen, user) // until the other end is closed
			args := []string{"run", pipeline}
			if quiet {
				args = []string{"run", "--quiet", strings.Replace(pipeline, "[:50]", "[:1]", 1)}
			}
			s := prepare(t, binary, args...)
			s.Env = append(s.Env, "TERM=xterm", "NO_COLOR=1")
			s.Stderr = program
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			if !quiet {
				eventually(t, "a bar", func() (string, bool) { return seen.String(), bar.MatchString(seen.String()) })
				if err := s.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
			_ = s.Wait() // an interrupt is a failure
			if quiet {
				if text := seen.String(); strings.Contains(text, "\x1b") || strings.Contains(text, "busy ms") {
					t.Errorf("got %q", text)
				}
				return
			}
			eventually(t, "the end", func() (string, bool) {
				return seen.String(), strings.Contains(seen.String(), "CANCELLED") || strings.Contains(seen.String(), "interrupted")
			})
			text := seen.String()
			if after := text[strings.LastIndex(text, "\x1b[J"):]; bar.MatchString(after) {
				t.Errorf("an interrupt leaves %q", after)
			}
		})
	}
}

// TestTerminalTable: a list is as narrow as its terminal, and as wide as it is elsewhere.
func TestTerminalTable(t *testing.T) {
	binary, dir := oneBinary(t), t.TempDir()
	text := `{"description": "It counts what nobody has counted for a very long time", "pipeline": [{"type": "preview"}]}`
	if err := os.WriteFile(filepath.Join(dir, "count_things.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	user, program := terminal(t)
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 40}); err != nil {
		t.Fatal(err)
	}
	narrow := prepare(t, binary, "pipeline", "ls", "--pipelines", dir)
	narrow.Stdout = program
	if err := narrow.Run(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := user.Read(line)
	if got, want := string(line[:n]), "count_things@1  only r…  a pers…  It co…\r\n"; err != nil || got != want {
		t.Errorf("on a terminal it is %q, %v, want %q", got, err, want)
	}
	wide := prepare(t, binary, "pipeline", "ls", "--pipelines", dir)
	if err := wide.Run(); err != nil || !strings.Contains(wide.stdout.String(), "for a very long time") {
		t.Errorf("elsewhere it is %s, %v", &wide.stdout, err)
	}
}
