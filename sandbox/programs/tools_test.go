package programs_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// toolInput is what the real tools are given: something for everyone to find.
const toolInput = "x,1 a b\nab 12\nhello x world\n\n1 2\n1 2\n2 3\nyx,20 c\n\tq\té\n"

// inputs are those of programs that want something else.
var inputs = map[string]string{
	"bc":     "1/3\n2^70\n",
	"base64": "aGVsbG8gd29ybGQK",
	"numfmt": "1000\n2048\n",
	"tsort":  "a b\nb c\na c\n",
	"join":   "1 a,b x\n2 b,c\n3 d\n",
	"comm":   "1 one\n2 three\nhello x world\n",
	"column": "a,b c,d\n1,2 3,4\n",
}

// namedInputs are files as a worker makes them of named inputs: canonical arguments name them as they stand in "args".
var namedInputs = map[string]string{"@b": "1 one\n2 two\nx,1 a b\nyx,20 q\n", "@c": "1 2\nhello x world\n"}

// inputDir returns a directory with the files of namedInputs.
func inputDir(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range namedInputs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tool runs an executable without any sandbox in an empty directory and returns its output and exit code.
func tool(t *testing.T, dir, stdin string, argv []string) (out string, code int) {
	t.Helper()
	return toolWith(t, dir, t.TempDir(), stdin, argv)
}

// toolWith is tool with tmp as its directory for temporary files.
func toolWith(t *testing.T, dir, tmp, stdin string, argv []string) (out string, code int) {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		parttest.Missing(t, "%s is not installed", argv[0])
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_CTYPE=C.UTF-8", "TZ=UTC", "TMPDIR=" + tmp}
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", argv, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%q does not end", argv)
	}
	return stdout.String() + stderr.String(), cmd.ProcessState.ExitCode()
}

// TestToolsAgree runs every accepted argv twice with the real tool, as it was given and in canonical form: the output
// and the exit code are the same.
func TestToolsAgree(t *testing.T) {
	ran := 0
	for _, r := range readJSON[[]row](t, "testdata/accepted.json") {
		p, _ := programs.Find(r.Command)
		if p.Bin == "" || slices.Equal(r.Args, []string{"--version"}) || r.Differs != "" {
			continue
		}
		t.Run(r.Command+" "+strings.Join(r.Args, " "), func(t *testing.T) {
			stdin := toolInput
			if s, ok := inputs[r.Command]; ok {
				stdin = s
			}
			dir := inputDir(t)
			want, wantCode := tool(t, dir, stdin, append([]string{p.Bin}, r.Args...))
			got, gotCode := tool(t, dir, stdin, r.Argv)
			if got != want || gotCode != wantCode {
				t.Errorf("%q -> %q (exit %d)\n%q -> %q (exit %d)", r.Args, want, wantCode, r.Argv, got, gotCode)
			}
			if gotCode != 0 && !slices.Contains(p.SuccessCodes, gotCode) && !strings.HasPrefix(r.Command+strings.Join(r.Args, ""), "sort-") {
				t.Errorf("%q fails with exit code %d: %s", r.Argv, gotCode, got)
			}
			ran++
		})
	}
	if ran == 0 {
		parttest.Missing(t, "none of the tools is installed")
	}
}

// TestVersions: every executable says that it is the implementation which the grammar describes.
func TestVersions(t *testing.T) {
	for _, p := range programs.All() {
		t.Run(p.Name, func(t *testing.T) {
			inv, err := programs.Parse(p.Name, []string{"--version"}, programs.Given{Files: p.FilesOnly})
			if err != nil {
				t.Fatal(err)
			}
			if p.Bin == "" {
				var out, errOut bytes.Buffer
				if code := run(t.Context(), p, inv.Argv[1:], nil, strings.NewReader(""), &out, &errOut); code != 0 || out.Len() == 0 {
					t.Errorf("exit %d, %q, %q", code, out.String(), errOut.String())
				}
				return
			}
			out, code := tool(t, t.TempDir(), "", inv.Argv)
			if code != 0 || !strings.Contains(out, p.Mark) {
				t.Errorf("exit %d, %q does not hold %q", code, out, p.Mark)
			}
		})
	}
}

// TestExamples runs the examples of the table.
func TestExamples(t *testing.T) {
	for _, p := range programs.All() {
		if p.Example == nil {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			inv, err := programs.Parse(p.Name, p.Example, programs.Given{Inputs: exampleInputs(p), Files: p.FilesOnly})
			if err != nil {
				t.Fatal(err)
			}
			if inv.Timer > 0 {
				return // the worker waits
			}
			if p.Bin == "" {
				var errOut bytes.Buffer
				if code := run(t.Context(), p, inv.Argv[1:], nil, strings.NewReader("[]"), &errOut, &errOut); code != 0 {
					t.Errorf("exit %d: %s", code, errOut.String())
				}
				return
			}
			stdin := toolInput
			if s, ok := inputs[p.Name]; ok && p.Name != "numfmt" {
				stdin = s
			} else if p.Name == "numfmt" {
				stdin = "a 1000\nb 2048\n"
			}
			dir := inputDir(t)
			if out, code := tool(t, dir, stdin, inv.Argv); code != 0 && !slices.Contains(p.SuccessCodes, code) {
				t.Errorf("%q: exit %d: %s", inv.Argv, code, out)
			}
		})
	}
}

// TestScratch: sort really uses the directory that TMPDIR names.
func TestScratch(t *testing.T) {
	inv, err := programs.Parse("sort", []string{"-n"}, programs.Given{})
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("some line that has to be sorted\n", 4_000_000)
	missing := filepath.Join(t.TempDir(), "missing")
	if out, code := toolWith(t, t.TempDir(), missing, big, inv.Argv); code == 0 || !strings.Contains(out, missing) {
		t.Errorf("sort without its directory: exit %d, %.200q", code, out)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the directory was made")
	}
}

// TestSearchBytes: grep and rg lose no line and change no byte of input that is not clean UTF-8.
func TestSearchBytes(t *testing.T) {
	const (
		latin1 = "ERROR one\nERROR caf\xe9\nfine \xe9\nERROR two\n"
		nul    = "ERROR one\nERROR a\x00b\nfine \x00\nERROR two\n"
		mark   = "\uFEFFERROR one\nERROR two\n"
		utf16  = "\xff\xfeE\x00\n\x00" // of which the line E begins with a byte order mark
	)
	tests := []struct {
		args     []string
		in, want string
	}{
		{[]string{"ERROR"}, latin1, "ERROR one\nERROR caf\xe9\nERROR two\n"},
		{[]string{"-c", "ERROR"}, latin1, "3\n"},
		{[]string{"-v", "ERROR"}, latin1, "fine \xe9\n"},
		{[]string{"-o", "ERROR"}, latin1, "ERROR\nERROR\nERROR\n"},
		{[]string{"ERROR"}, nul, "ERROR one\nERROR a\x00b\nERROR two\n"},
		{[]string{"-c", "ERROR"}, nul, "3\n"},
		{[]string{"-v", "ERROR"}, nul, "fine \x00\n"},
		{[]string{"-o", "ERROR"}, nul, "ERROR\nERROR\nERROR\n"},
		{[]string{"ERROR"}, mark, mark},
		{[]string{"E"}, utf16, "\xff\xfeE\x00\n"},
	}
	for _, name := range []string{"grep", "rg"} {
		for _, tt := range tests {
			inv, err := check(name, tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if got, code := tool(t, t.TempDir(), tt.in, inv.Argv); got != tt.want || code != 0 {
				t.Errorf("%s %q < %q: got %q, exit %d, want %q", name, tt.args, tt.in, got, code, tt.want)
			}
		}
	}
}

// TestSearchBytesWithPCRE: rg -P reads UTF-8 only, which a hint says.
func TestSearchBytesWithPCRE(t *testing.T) {
	inv, err := check("rg", []string{"-P", "ERROR"})
	if err != nil {
		t.Fatal(err)
	}
	said, code := tool(t, t.TempDir(), "ERROR caf\xe9\n", inv.Argv)
	if hint := programs.Hint("rg", programs.Complaint{Message: said}); code != 2 || !strings.Contains(hint, "--no-unicode") {
		t.Errorf("got %q, exit %d, hint %q", said, code, hint)
	}
}
