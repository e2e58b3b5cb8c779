package uitest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// Variables of this process: the directory for the binary of mcsh, and whether a browser was started.
const (
	directoryVariable = "MCSH_UITEST_DIRECTORY"
	browserVariable   = "MCSH_UITEST_BROWSER"
)

// Main runs the tests of a package, ends their browser, and removes the binary of mcsh that they have built. It returns the exit status.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "mcsh-uitest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "making a directory for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv(directoryVariable, dir)
	status := m.Run()
	if os.Getenv(browserVariable) != "" {
		all, _ := browser() // it has started
		all.end()
	}
	return status
}

// build builds mcsh and returns its path.
var build = sync.OnceValues(func() (string, error) {
	dir := os.Getenv(directoryVariable)
	return filepath.Join(dir, "mcsh"), parttest.Build(dir, "cmd/mcsh")
})

// Binary returns the path of mcsh, which is built for the first test that asks.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A Gateway is a process that serves the demo server and the console until the test ends.
type Gateway struct {
	URL     string // of the console, with a slash at its end
	MCP     string // of the endpoint
	State   string // its state directory
	Command *exec.Cmd
}

var listens = regexp.MustCompile(`listens on (http://\S+)/mcp`)

// Serve starts a gateway, whose console also works in a container, with the demo server alone, or with what arguments of "mcsh serve" say besides.
func Serve(t testing.TB, args ...string) *Gateway {
	t.Helper()
	return ServeAt(t, "127.0.0.1:0", t.TempDir(), args...)
}

// ServeAt starts a gateway at an address with a state directory.
func ServeAt(t testing.TB, address, state string, args ...string) *Gateway {
	t.Helper()
	g := &Gateway{State: state, Command: exec.Command(Binary(t), append([]string{"serve", "--listen", address, "--sandbox", "local", "--console"}, args...)...)}
	g.Command.Dir = t.TempDir()
	g.Command.Env = append(os.Environ(), "MCSH_STATE="+g.State, "HOME="+g.Command.Dir, "MCSH_CONFIG=")
	said, err := g.Command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.End)
	address, rest := "", make(chan string, 1)
	found := make(chan string, 1)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(said); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if m := listens.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		rest <- all.String()
	}()
	select {
	case address = <-found:
	case text := <-rest:
		t.Fatalf("the gateway has ended:\n%s", text)
	case <-time.After(patience):
		t.Fatalf("the gateway has not listened within %v", patience)
	}
	g.URL, g.MCP = address+"/", address+"/mcp"
	return g
}

// End ends the gateway and waits for its end.
func (g *Gateway) End() {
	if g.Command.ProcessState == nil {
		_ = g.Command.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = g.Command.Wait()                          // its status says nothing to a test
	}
}

// Token makes a token of a caller in a file of tokens, with arguments of "mcsh token new" besides.
func Token(t testing.TB, file, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(Binary(t), append([]string{"token", "new", name, "--file", file}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
