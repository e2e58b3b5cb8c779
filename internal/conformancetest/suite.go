// Package conformancetest runs the official conformance suite of the protocol, which is an npm package, against a server or
// a client of ours.
package conformancetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// suite is the npm package.
const suite = "@modelcontextprotocol/conformance"

// patience bounds one run of the suite, which takes a few seconds where the machine is quick.
const patience = 10 * time.Minute

// A Run is what the suite does: all that a revision of the protocol requires.
type Run struct {
	Revision string // such as "2026-07-28"

	// Baseline is a file of the suite's own that names the checks which are expected to fail. One that does not fail
	// is a failure too.
	Baseline string

	// Also are scenarios that the suite runs without scoring them, such as those that were written after the revision.
	Also []string
}

// Server checks the server at url.
func (r Run) Server(t testing.TB, url string) {
	t.Helper()
	r.run(t, nil, func(scenario string) { ServerScenario(t, r.Revision, scenario, url) }, "server", "--url", url)
}

// hurried are the checks for which the suite waits less than a second, too little on a busy machine.
var hurried = []string{"sep-2575-server-sends-subscription-ack", "sep-2575-server-tags-subscription-id"}

// Client checks a client: a command that gets the address of a server as its last argument, and the name of the
// scenario in the environment, as MCP_CONFORMANCE_SCENARIO.
func (r Run) Client(t testing.TB, command string, env ...string) {
	t.Helper()
	r.run(t, env, nil, "client", "--command", command)
}

// run runs the suite. A scenario in which only hurried checks have failed runs once more, by again; nil: it does not.
func (r Run) run(t testing.TB, env []string, again func(scenario string), args ...string) {
	t.Helper()
	args = append(args, "--requirements", r.Revision)
	if r.Baseline != "" {
		checkBaseline(t, r.Baseline)
		args = append(args, "--expected-failures", r.Baseline)
	}
	began := time.Now()
	said, results, err := suiteRun(t, env, args)
	_, summary, ok := bytes.Cut(said, []byte("SUMMARY ==="))
	if !ok {
		t.Fatalf("the suite has no summary: %v\n%s", err, said)
	}
	bad := slices.DeleteFunc(results.unexpected(string(summary)), func(c check) bool { return !c.failed() })
	switch {
	case err == nil:
	case again != nil && len(bad) > 0 && !slices.ContainsFunc(bad, func(c check) bool { return !slices.Contains(hurried, c.ID) }):
		t.Logf("the suite has not waited long enough:\n%s", failures(bad))
		again(bad[0].scenario)
	default:
		t.Errorf("the suite: %v\n%s\n%s", err, summary, failures(bad))
	}
	for _, scenario := range r.Also {
		if bad := failures(results.of(scenario)); bad != "" || len(results.of(scenario)) == 0 {
			t.Errorf("the scenario %s, of %d checks:\n%s", scenario, len(results.of(scenario)), bad)
		}
	}
	t.Logf("%s: %d checks in %.1f s", r.Revision, len(results), time.Since(began).Seconds())
}

// ClientScenario checks a client in one scenario of a revision, which may be older than those with requirements.
func ClientScenario(t testing.TB, revision, scenario, command string, env ...string) {
	t.Helper()
	said, results, err := suiteRun(t, env, []string{"client", "--command", command, "--scenario", scenario, "--spec-version", revision})
	if bad := failures(results); err != nil || bad != "" || len(results) == 0 {
		t.Errorf("the scenario %s, of %d checks: %v\n%s\n%s", scenario, len(results), err, bad, said)
	}
}

// ServerScenario checks the server at url in one scenario of a revision, or of an extension. It wants the checks of except, and no others, to fail.
func ServerScenario(t testing.TB, revision, scenario, url string, except ...string) {
	t.Helper()
	said, results, err := suiteRun(t, nil, []string{"server", "--url", url, "--scenario", scenario, "--spec-version", revision, "--force"})
	if len(results) == 0 {
		t.Errorf("the scenario %s has no checks: %v\n%s", scenario, err, said)
	}
	for _, one := range results {
		bad := failures(checks{one})
		if want := slices.Contains(except, one.ID); want != (bad != "") {
			t.Errorf("the scenario %s: %s %s, expected to fail: %v\n%s", scenario, one.ID, one.Status, want, bad)
		}
	}
}

// suiteRun runs the suite, and returns its output and results.
func suiteRun(t testing.TB, env, args []string) (said []byte, results checks, err error) {
	t.Helper()
	modules, out := parttest.Packages(t, suite), t.TempDir()
	args = append([]string{filepath.Join(modules, suite, "dist", "index.js")}, args...)
	args = append(args, "--output-dir", out, "--timeout", fmt.Sprint(patience.Milliseconds()/2))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, parttest.Node(t), args...)
	cmd.Env = append(os.Environ(), env...)
	said, err = cmd.CombinedOutput()
	return said, read(t, out), err
}

// entry is a line of a baseline.
var entry = regexp.MustCompile(`(?m)^ *- (.*)$`)

// checkBaseline wants single checks: a whole scenario hides those that fail later, too.
func checkBaseline(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range entry.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(found[1], ":") {
			t.Errorf("%s: %s is a whole scenario: name its checks as scenario:check", file, found[1])
		}
	}
}

// A check is a line of the results of a scenario.
type check struct {
	scenario string
	ID       string `json:"id"`
	Status   string `json:"status"`
	Message  string `json:"errorMessage"`
}

// failed reports whether a check has failed or nearly did.
func (c check) failed() bool { return c.Status == "FAILURE" || c.Status == "WARNING" }

// checks are the results of a run.
type checks []check

func (c checks) of(scenario string) checks {
	var found checks
	for _, one := range c {
		if one.scenario == scenario {
			found = append(found, one)
		}
	}
	return found
}

// unexpected leaves out what the summary says to be expected, or not to count.
func (c checks) unexpected(summary string) checks {
	_, others, _ := strings.Cut(summary, "Not scored")
	_, named, baseline := strings.Cut(summary, "Unexpected failures (")
	return slices.DeleteFunc(slices.Clone(c), func(one check) bool {
		return strings.Contains(others, " "+one.scenario+" (") || baseline && !strings.Contains(named, " "+one.scenario)
	})
}

// stamp is the time at the end of the name of a folder.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[^/]*$`)

// read reads what the suite has written: a folder for each scenario, whose name ends in the time.
func read(t testing.TB, dir string) checks {
	t.Helper()
	var all checks
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var some checks
		if err := json.Unmarshal(text, &some); err != nil {
			return err
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		name = stamp.ReplaceAllString(name, "")
		for _, one := range some {
			one.scenario = strings.TrimPrefix(name, "server-")
			all = append(all, one)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// failures are the checks that failed or nearly did, a line each.
func failures(results checks) string {
	var text strings.Builder
	for _, c := range results {
		if c.failed() {
			text.WriteString("- " + c.scenario + ":" + c.ID + " # " + c.Message + "\n")
		}
	}
	return text.String()
}
