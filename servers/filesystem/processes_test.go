package filesystem_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/servers/filesystem"
)

// servedRoot names the root that this process serves for a test.
const servedRoot = "MCSH_TEST_FILESYSTEM"

func TestMain(m *testing.M) {
	root := os.Getenv(servedRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	server, err := filesystem.New(filesystem.Options{Root: root, Backup: true})
	if err == nil {
		err = server.Run(context.Background(), &mcp.StdioTransport{})
	}
	fmt.Fprintln(os.Stderr, err)
}

// startProcess starts a server in a process of its own.
func startProcess(t *testing.T, root string) *mcp.ClientSession {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), servedRoot+"="+root)
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A text of the files of TestProcesses begins with the mark of its writer, and each edit adds one before the end.
var (
	filler = strings.Repeat("what stands between\n", 100)
	marks  = regexp.MustCompile(`^(?:start|\+) (\d+\.\d+)$`)
)

func textOf(mark string) string { return "start " + mark + "\n" + filler + "end\n" }

// lastMark returns that of the last change of a text, and whether the text is whole.
func lastMark(text string) (mark string, whole bool) {
	for line := range strings.Lines(text) {
		if m := marks.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			mark = m[1]
		}
	}
	return mark, mark != "" && strings.HasPrefix(text, "start ") && strings.HasSuffix(text, "\nend\n") && strings.Contains(text, filler)
}

// changed are the changes that succeeded: the marks in the files "log" and "log2", which move, and in "back", which is undone.
type changed struct {
	mu         sync.Mutex
	moved      []string // guarded by mu
	back       []string // guarded by mu
	undos, all int      // guarded by mu
}

// TestProcesses lets two processes write, edit, move and undo the same files. Then every change that succeeded is a version
// or was left behind by an undo, every version is whole, and no number is missing.
func TestProcesses(t *testing.T) {
	root := t.TempDir()
	end := time.Now().Add(time.Minute)
	goesOn := func(i int) bool { return i < 40 || parttest.Night() && time.Now().Before(end) }
	var done changed
	var writers sync.WaitGroup
	for p := range 2 {
		s := startProcess(t, root)
		writers.Go(func() {
			for i := 0; goesOn(i) && !t.Failed(); i++ {
				done.change(t, s, fmt.Sprintf("%d.%d", p, i), i)
			}
		})
	}
	watched := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // what others see meanwhile
		defer close(watched)
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			for _, name := range []string{"log", "log2", "back"} {
				if text, err := os.ReadFile(filepath.Join(root, name)); err == nil {
					if _, whole := lastMark(string(text)); !whole {
						t.Errorf("%s is half-written: %.100q, %d bytes", name, text, len(text))
						return
					}
				}
			}
		}
	}()
	writers.Wait()
	cancel()
	<-watched
	if done.all < 20 {
		t.Errorf("only %d changes succeeded", done.all)
	}
	histories := versionsBelow(t, root)
	var kept []string
	for _, name := range []string{"log", "log2"} {
		for i, n := range slices.Sorted(maps.Keys(histories[name])) {
			if n != i+1 {
				t.Errorf("%s has no version %d", name, i+1)
				break
			}
			kept = append(kept, histories[name][n])
		}
	}
	if missing := without(done.moved, kept); len(missing) > 0 || len(kept) != len(done.moved) {
		t.Errorf("%d versions of the files that move, of %d changes; missing are %v", len(kept), len(done.moved), missing)
	}
	back := histories["back"]
	if missing := without(done.back, slices.Collect(maps.Values(back))); len(missing) > done.undos {
		t.Errorf("after %d undos %d versions are missing: %v", done.undos, len(missing), missing)
	}
	if last := slices.Max(append(slices.Collect(maps.Keys(back)), 0)); last != len(done.back) {
		t.Errorf("the last of %d versions has the number %d", len(done.back), last)
	}
}

// change makes the change with the number i.
func (m *changed) change(t *testing.T, s *mcp.ClientSession, mark string, i int) {
	edit := []map[string]string{{"oldText": "end\n", "newText": "+ " + mark + "\nend\n"}}
	from, to := "log", "log2"
	if i%16 > 7 {
		from, to = to, from
	}
	var tool string
	var args map[string]any
	marked := &m.moved
	switch i % 8 {
	case 0:
		tool, args = "write_file", map[string]any{"path": from, "content": textOf(mark)}
	case 1, 2:
		tool, args = "edit_file", map[string]any{"path": from, "edits": edit}
	case 3:
		tool, args, marked = "move_file", map[string]any{"source": from, "destination": to}, nil
	case 4:
		tool, args, marked = "write_file", map[string]any{"path": "back", "content": textOf(mark)}, &m.back
	case 5, 6:
		tool, args, marked = "edit_file", map[string]any{"path": "back", "edits": edit}, &m.back
	case 7:
		tool, args, marked = "undo_file", map[string]any{"path": "back"}, nil
	}
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Errorf("%s: %v", tool, err)
		return
	}
	if res.IsError { // a file may have moved away, or have nothing to undo
		text := res.Content[0].(*mcp.TextContent).Text
		if !strings.HasPrefix(text, "NotFound: ") && !strings.HasPrefix(text, "AlreadyExists: ") && !strings.Contains(text, "can be undone") {
			t.Errorf("%s %v: %s", tool, args["path"], text)
		}
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all++
	if marked != nil {
		*marked = append(*marked, mark)
	}
	if tool == "undo_file" {
		m.undos++
	}
}

// versionsBelow returns the last marks of all versions, by file and number, and fails the test for one that is not whole.
func versionsBelow(t *testing.T, root string) map[string]map[int]string {
	t.Helper()
	found := map[string]map[int]string{}
	names, err := filepath.Glob(filepath.Join(root, ".filesystem/*/[0-9]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		mark, whole := lastMark(string(text))
		n, err := strconv.Atoi(filepath.Base(name))
		if !whole || err != nil {
			t.Errorf("%s is half-written: %.100q, %v", name, text, err)
		}
		file := filepath.Base(filepath.Dir(name))
		if found[file] == nil {
			found[file] = map[int]string{}
		}
		found[file][n] = mark
	}
	return found
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
