package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/workspace"
)

const (
	helperRoot  = "MCSH_TEST_APPEND_ROOT" // the workspace of TestAppendHelper
	killedBytes = 300 << 10
	killedAt    = 700 << 10 // the size of a file that the process may not exceed: 600 KiB that are there, 100 KiB of the data
)

// TestAppendKilled kills a process when it has written a part of the data, to the mirror or to the file, and has the next
// writer come, as it finds it or after somebody else has changed the file.
func TestAppendKilled(t *testing.T) {
	long := strings.Repeat("what was there\n", 40<<10) // the kernel ends the process 100 KiB behind it
	open := strings.TrimSuffix(long, "\n")             // the data begins with a newline
	full := strings.Repeat("x", killedAt-1)            // only the newline fits
	for name, test := range map[string]struct {
		file, mirror string // before
		change       string // what somebody makes of the file; empty: nobody does
		want, kept   string // the file at last, and the mirror
	}{
		"in the file":                       {long, "", "", long + "next\n", "next\n"},
		"in the mirror":                     {"short\n", long, "", "short\nnext\n", long + "next\n"},
		"in the file, with a newline":       {open, "", "", open + "\nnext\n", "\nnext\n"},
		"in the mirror, with a newline":     {"short", long, "", "short\nnext\n", long + "\nnext\n"},
		"after the newline":                 {full, "", "", full + "\nnext\n", "\nnext\n"},
		"after the newline in the mirror":   {"short", full, "", "short\nnext\n", full + "\nnext\n"},
		"with a newline, the file then new": {open, "", "new", "new\nnext\n", "\n" + killedData() + "\nnext\n"},
		"in the file, then edited":          {long, "", long + "edited\n", long + "edited\nnext\n", killedData() + "next\n"},
		"in the file, then new":             {long, "", "new\n", "new\nnext\n", killedData() + "next\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, root := openRoot(t)
			file, mirror := filepath.Join(root, "log"), filepath.Join(root, ".mcsh/audit/log")
			for _, err := range []error{
				os.MkdirAll(filepath.Dir(mirror), 0o755),
				os.WriteFile(file, []byte(test.file), 0o644),
				os.WriteFile(mirror, []byte(test.mirror), 0o644),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			helper := exec.Command(os.Args[0], "-test.run=^TestAppendHelper$")
			helper.Env = append(os.Environ(), helperRoot+"="+root)
			said, err := helper.CombinedOutput()
			if err == nil || !strings.Contains(err.Error(), "signal: file size limit exceeded") {
				t.Fatalf("the process was not killed: %v\n%s", err, said)
			}
			torn := files(t, root)
			if torn["log"]+torn[".mcsh/audit/log"] == test.file+test.mirror {
				t.Fatal("it has written nothing")
			}
			if added := int64(len(torn["log"]+torn[".mcsh/audit/log"]) - len(test.file+test.mirror)); countOf(t, root) < added+int64(2*len(test.mirror)) {
				t.Errorf("it has written %d bytes, and counted %d", added, countOf(t, root))
			}
			if test.change != "" {
				if err := os.WriteFile(file, []byte(test.change), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for i, text := range []string{"", "next\n"} {
				if _, err := save(t, d, []string{"other", "log"}[i], text, workspace.SaveOptions{Append: true}); err != nil {
					t.Fatal(err)
				}
			}
			got := files(t, root)
			if diff := cmp.Diff(test.want, got["log"]); diff != "" {
				t.Errorf("the file (-want +got)\n%.2000s", diff)
			}
			if diff := cmp.Diff(test.kept, got[".mcsh/audit/log"]); diff != "" {
				t.Errorf("the mirror (-want +got)\n%.2000s", diff)
			}
		})
	}
}

func killedData() string { return strings.Repeat("of the killed\n", killedBytes/14) }

// TestAppendHelper is no test but the process of TestAppendKilled: one that may write no file beyond a size, and dies when
// it does.
func TestAppendHelper(t *testing.T) {
	root := os.Getenv(helperRoot)
	if root == "" {
		t.Skip("TestAppendKilled starts it")
	}
	var deadly [4]uint64 // the sigaction of what the Go runtime ignores
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGXFSZ), uintptr(unsafe.Pointer(&deadly)), 0, 8, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: killedAt, Max: killedAt}); err != nil {
		t.Fatal(err)
	}
	_, err := save(t, open(t, root), "log", killedData(), workspace.SaveOptions{Append: true})
	t.Fatalf("it lives on: %v", err)
}
