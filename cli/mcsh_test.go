package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

func TestMain(m *testing.M) {
	if os.Getenv(browses) != "" {
		_, err := browse(os.Args[len(os.Args)-1])
		fmt.Fprintln(os.Stderr, err)
		return
	}
	testscript.Main(overlapping{m}, map[string]func(){
		"mcsh": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ())) },
	})
}

// overlapping are the tests of the package, which mostly wait for processes. A process of the binary that runs as mcsh does
// not come here: its arguments are no flags of tests.
type overlapping struct{ *testing.M }

func (o overlapping) Run() int {
	parttest.Overlap(6)
	return o.M.Run()
}

// TestScripts runs the program as people do. A script in testdata is a case; its first line says why it is there.
func TestScripts(t *testing.T) {
	t.Parallel() // it waits
	examples, err := filepath.Abs("../examples")
	if err != nil {
		t.Fatal(err)
	}
	programs := sync.OnceValues(scriptPrograms)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			dir, err := programs()
			if err != nil {
				return err
			}
			e.Setenv("PATH", dir+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("EXAMPLES", examples)
			e.Setenv("MCSH_SANDBOX", "local") // the cases must not depend on whether there is an engine
			e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
			e.Setenv(toolhiveVariable, toolhiveOff)  // whatever the machine runs
			e.Setenv("GORACE", "atexit_sleep_ms=10") // of hundreds of processes, a second each
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "engine" {
				return hasImage()
			}
			return name == "sandbox" && runtime.GOOS == "linux", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":   wantStatus,
			"jsonpath": wantJSON,
		},
		RequireUniqueNames: true,
	})
}

// hasImage reports whether there is a container engine with the project's image. Where parts are required, it is an
// error that there is none.
func hasImage() (bool, error) {
	image := docker.DefaultImage("")
	out, err := exec.Command("docker", "image", "inspect", image).CombinedOutput()
	if err != nil && parttest.Required() {
		return false, fmt.Errorf("no engine has the image %s, which .ci/run image makes: %w: %s", image, err, out)
	}
	return err == nil, nil
}

// scriptPrograms returns a directory with the sandbox worker and, by day, with mcsh as it ships. At night the scripts run the
// mcsh of the test binary, which has the race detector if the tests have it: each of several hundred processes then takes
// four times as long to start.
func scriptPrograms() (string, error) {
	path, err := exec.LookPath("mcsh") // that of the test binary
	if err != nil {
		return "", err
	}
	if parttest.Night() {
		return filepath.Dir(path), parttest.Build(filepath.Dir(path), "cmd/mcsh-worker")
	}
	dir := filepath.Join(filepath.Dir(path), "shipped")
	return dir, parttest.Build(dir, "cmd/mcsh", "cmd/mcsh-worker")
}

// wantStatus is "status N PROGRAM ARGS...": the program ends with status N.
func wantStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM [ARGS...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// wantJSON is "jsonpath PATH WANT": stdout is one JSON value, and what is at PATH (names and numbers with dots between
// them) is WANT as JSON, whatever its spaces.
func wantJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: jsonpath PATH WANT")
	}
	var value, want any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	ts.Check(json.Unmarshal([]byte(args[1]), &want))
	for _, name := range strings.Split(args[0], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				ts.Fatalf("%s: no element %q of %d", args[0], name, len(v))
			}
			value = v[i]
		default:
			ts.Fatalf("%s: nothing is below %v", args[0], value)
		}
	}
	if diff := cmp.Diff(want, value); diff != "" {
		ts.Fatalf("%s (-want +got):\n%s", args[0], diff)
	}
}
