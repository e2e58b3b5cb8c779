//go:build linux

package local_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// contextFile is the recipe of an image that runs this test binary.
const contextFile = `ARG BASE
FROM ${BASE}
COPY local.test mcsh-worker probe /test/
ENV ` + builtVariable + `=/test MCSH_TEST_SECRET=canary-7f3a91-secret
WORKDIR /test
ENTRYPOINT ["/test/local.test"]
`

// inside are the tests that must hold in a container.
const inside = "^(TestContract|TestEndings|TestWithoutLandlock)$"

// kernel are the suites of TestContract whose results the rights of a container may change, and writes those whose results a
// read-only file system may change.
var (
	kernel = strings.Fields(`report chains cancel limits inputs_in_the_jail lost_worker attacks_without_the_guard
		files_without_the_guard probe`)
	writes = strings.Fields(`budgets_of_a_run inputs inputs_that_end_early one_process_for_some_items some_items_under_way
		whose_worker not_started pool`)
)

// TestInContainers runs the contract again, by day only what a container may change, where a gateway often lives: in a
// container without capabilities and without the socket of an engine, once as ToolHive starts it with docker and once as it
// does with Kubernetes. The kernel's part of the jail must not need anything that such a container lacks. How much data there
// is, is not its matter: what is large is small here.
func TestInContainers(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the contract twice")
	}
	t.Parallel()
	image := testImage(t)
	for _, test := range []struct {
		name  string
		byDay []string // the suites of TestContract; at night: all
		flags []string
	}{
		{"root without capabilities", kernel, []string{"--user=0:0", "--cap-drop=ALL", "--security-opt=label:disable"}},
		{"read-only", slices.Concat(kernel, writes), []string{
			"--user=1000:1000", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--tmpfs=/tmp:mode=1777",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", "--rm", "--env", parttest.NightVariable}, test.flags...)
			tests := inside
			if !parttest.Night() {
				tests = "^TestContract$/^(" + strings.Join(test.byDay, "|") + ")$|^(TestEndings|TestWithoutLandlock)$"
			}
			args = append(args, image, "-test.short", "-test.v", "-test.run", tests, "-test.timeout", "15m")
			out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "--- SKIP") {
					t.Errorf("in the container: %s", line)
				}
			}
			for _, suite := range test.byDay {
				if !bytes.Contains(out, []byte("--- PASS: TestContract/"+suite+" ")) {
					t.Errorf("in the container: no suite %s has passed", suite)
				}
			}
			if err != nil || !bytes.Contains(out, []byte("--- PASS: TestContract ")) {
				t.Errorf("docker %q: %v\n%s\n%s", args, err, failures(out), tail(out, 2<<10))
			}
		})
	}
}

// testImage makes an image of this test binary, on the project's image, and returns its id.
func testImage(t *testing.T) string {
	t.Helper()
	base := docker.DefaultImage("")
	if out, err := exec.Command("docker", "image", "inspect", base).CombinedOutput(); err != nil {
		parttest.Missing(t, "no engine has the image %s, which .ci/run image makes: %v: %s", base, err, tail(out, 300))
	}
	dir := t.TempDir()
	build := exec.Command("go", "test", "-c", "-trimpath", "-vet=off", "-o", filepath.Join(dir, "local.test"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tests: %v: %s", err, out)
	}
	for name, file := range map[string]string{"mcsh-worker": workerFile, "probe": probeFile} {
		if err := os.Link(file, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(contextFile), 0o644); err != nil {
		t.Fatal(err)
	}
	id := filepath.Join(t.TempDir(), "id")
	out, err := exec.Command("docker", "build", "--build-arg", "BASE="+base, "--iidfile", id, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("building the image: %v: %s", err, out)
	}
	text, err := os.ReadFile(id)
	if err != nil {
		t.Fatal(err)
	}
	image := strings.TrimSpace(string(text))
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "image", "rm", "--force", image).CombinedOutput(); err != nil {
			t.Errorf("removing the image: %v: %s", err, out)
		}
	})
	return image
}

// failures returns the lines of a test's output that say what failed and why.
func failures(out []byte) string {
	var said strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- FAIL") || strings.Contains(line, ".go:") {
			said.WriteString(line)
		}
	}
	return said.String()
}

func tail(text []byte, n int) []byte { return text[max(0, len(text)-n):] }
