//go:build unix

package doccheck

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// patience is how long one command of a document may take.
const patience = 5 * time.Minute

// transcripts are documents whose output the commands themselves have written, with -update.
var transcripts = []string{"docs/first-ten-minutes.md"}

var update = flag.Bool("update", false, "write what the commands of transcripts print into them")

// unrun are commands that are shown but not run here: they would run this test again.
var unrun = []string{"go test", "make check", "make test", "make fuzz", ".ci/run"}

// TestDocuments runs the commands of the documents.
func TestDocuments(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "README.md")); err != nil {
		t.Skip("README.md is missing: there is nothing to check")
	}
	bin := t.TempDir()
	if err := parttest.Build(bin, "cmd/mcsh", "cmd/mcsh-worker"); err != nil {
		t.Fatal(err)
	}
	for _, name := range documents(t, root) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		commands := parse(text)
		if len(commands) == 0 {
			if name == "README.md" {
				t.Error("README.md shows no command in a console block")
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if !slices.Contains(transcripts, name) { // those begin in an empty directory
				if err := clone(root, dir); err != nil {
					t.Fatal(err)
				}
			}
			if *update && slices.Contains(transcripts, name) {
				renew(t, filepath.Join(root, name), commands, dir, bin)
				return
			}
			for _, wrong := range run(t.Context(), commands, dir, bin) {
				t.Errorf("%s:%s", name, wrong)
			}
		})
	}
}

// shared are variables for the commands that compile: with them packages are compiled once for this test, the image and
// whatever directory the repository is in.
var shared = []string{"CGO_ENABLED=0", "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath")}

// TestSamples runs documents whose mistakes are known.
func TestSamples(t *testing.T) {
	for name, want := range map[string][]string{
		"good.md": nil,
		"bad.md": {
			"4: echo two\nwrote:\n  two\nwant:\n  one",
			"6: exit 3\nexited with 3, want 0; it wrote:\n  ",
			"7: true\nexited with 0, want 1; it wrote:\n  ",
		},
	} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t.Context(), parse(text), t.TempDir(), t.TempDir()); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// documents returns the documents below root that may show commands.
func documents(t *testing.T, root string) []string {
	t.Helper()
	names := []string{"README.md"}
	for _, dir := range []string{"docs", "examples"} {
		err := fs.WalkDir(os.DirFS(root), dir, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && !d.IsDir() && strings.HasSuffix(name, ".md") {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// clone copies the files of a repository, without its history and what was built or installed in it.
func clone(root, dir string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch d.Name() {
		case ".git", "node_modules", "bin", ".cache":
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, info.Mode().Perm())
	})
}

// run runs commands in dir and says what went wrong.
func run(ctx context.Context, commands []command, dir, bin string) []string {
	var wrong []string
	for _, c := range commands {
		if slices.ContainsFunc(unrun, func(prefix string) bool { return strings.HasPrefix(c.text, prefix) }) {
			continue
		}
		out, exit, err := execute(ctx, c.text, dir, bin)
		got := strings.Split(strings.TrimRight(out, "\n"), "\n")
		for i := range got {
			got[i] = strings.TrimRight(got[i], " \t\r")
		}
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%d: %s\n%v; it wrote:\n%s", c.line, c.text, err, indent(got)))
		case exit != c.exit:
			wrong = append(wrong, fmt.Sprintf("%d: %s\nexited with %d, want %d; it wrote:\n%s", c.line, c.text, exit, c.exit, indent(got)))
		case c.want != nil && !matches(c.want, got):
			wrong = append(wrong, fmt.Sprintf("%d: %s\nwrote:\n%s\nwant:\n%s", c.line, c.text, indent(got), indent(c.want)))
		}
	}
	return wrong
}

// execute runs one command in a process group of its own, so that nothing it started outlives it.
func execute(ctx context.Context, text, dir, bin string) (out string, exit int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var both bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &both, &both
	cmd.Env = append(slices.Concat(os.Environ(), shared), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1",
		"XDG_CONFIG_HOME="+filepath.Join(dir, ".cache", "config"), "XDG_STATE_HOME="+filepath.Join(dir, ".cache", "state"),
		"DBUS_SESSION_BUS_ADDRESS=", "XDG_RUNTIME_DIR=") // nobody's own
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, time.Second
	if err := cmd.Start(); err != nil {
		return "", 0, err
	}
	err = cmd.Wait()
	if killed := kill(); killed != nil && !errors.Is(killed, syscall.ESRCH) {
		return both.String(), 0, fmt.Errorf("ending what the command left running: %w", killed)
	}
	if ctx.Err() != nil {
		return both.String(), 0, fmt.Errorf("did not end within %v", patience)
	}
	var status *exec.ExitError
	if errors.As(err, &status) {
		return both.String(), status.ExitCode(), nil
	}
	return both.String(), 0, err
}

func indent(lines []string) string { return "  " + strings.Join(lines, "\n  ") }
