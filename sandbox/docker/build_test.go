package docker_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/deploy"
	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
)

// engine connects to the engine of this machine, which must have the project's image.
func engine(t *testing.T) *docker.Engine {
	t.Helper()
	e, err := docker.Connect(t.Context(), docker.Options{Host: os.Getenv("DOCKER_HOST")})
	if err != nil {
		parttest.Missing(t, "it needs a container engine: %v", err)
	}
	t.Cleanup(func() { e.Close() })
	if _, err := e.ImageID(t.Context(), docker.DefaultImage("")); err != nil {
		parttest.Missing(t, "it needs the image that .ci/run image makes: %v", err)
	}
	return e
}

// TestBuild makes an image out of programs, without a network: the project's image is a base that has everything.
func TestBuild(t *testing.T) {
	e := engine(t)
	dir := t.TempDir()
	if err := parttest.Build(dir, "cmd/mcsh", "cmd/mcsh-worker"); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"bin/mcsh": filepath.Join(dir, "mcsh"), "bin/mcsh-worker": filepath.Join(dir, "mcsh-worker")}
	const tag = "mcsh/mcsh:test-build"
	recipe := docker.Recipe{Tag: tag, Base: docker.DefaultImage(""), Dockerfile: deploy.Dockerfile, Files: files}
	var said bytes.Buffer
	if err := e.Build(t.Context(), recipe, &said); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	t.Cleanup(func() {
		if out, err := exec.Command("docker", "image", "rm", tag).CombinedOutput(); err != nil {
			t.Errorf("removing the image: %v: %s", err, out)
		}
	})
	if !strings.Contains(said.String(), "Step 1/") || !strings.Contains(said.String(), "Successfully built") {
		t.Errorf("the progress lacks the first step or the end:\n%s", said.String())
	}
	s, err := e.Status(t.Context(), tag)
	if err != nil || s.ImageID == "" || s.Name == "" || s.Runtime == "" || s.Cgroup == "" || s.API == "" {
		t.Errorf("got %+v, %v, want an image, and what the engine is", s, err)
	}
	t.Logf("%+v", s)
}

// TestBuildFails: a base that nobody has, a program of another system and a broken step have different errors.
func TestBuildFails(t *testing.T) {
	e := engine(t)
	script := filepath.Join(t.TempDir(), "mcsh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "mcsh")
	if err := syscall.Mkfifo(pipe, 0o700); err != nil {
		t.Fatal(err)
	}
	base := docker.DefaultImage("")
	for _, test := range []struct {
		name   string
		recipe docker.Recipe
		says   string
	}{
		{"no base", docker.Recipe{Base: "mcsh/no-such-base:none", Dockerfile: deploy.Dockerfile}, "--base"},
		{"no program", docker.Recipe{Base: base, Dockerfile: deploy.Dockerfile, Files: map[string]string{"bin/mcsh": script}}, "no Linux program"},
		{"a pipe, which nobody writes to", docker.Recipe{Base: base, Dockerfile: deploy.Dockerfile, Files: map[string]string{"bin/mcsh": pipe}}, "it is a pipe"},
		{"missing program", docker.Recipe{Base: base, Dockerfile: deploy.Dockerfile, Files: map[string]string{"bin/mcsh": script + "-"}}, "no such file"},
		{"failing step", docker.Recipe{Base: base, Dockerfile: []byte("ARG BASE\nFROM ${BASE}\nRUN [\"/bin/false\"]\n")}, "non-zero code"},
		{"no recipe", docker.Recipe{Base: base, Dockerfile: []byte("nonsense\n")}, "NONSENSE"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.recipe.Tag = "mcsh/mcsh:test-fails"
			err := e.Build(t.Context(), test.recipe, new(bytes.Buffer))
			f, ok := errors.AsType[*docker.Fault](err)
			if !ok || f.Hint == "" || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want a fault that says %q, and a hint", err, test.says)
			}
			t.Log(err)
		})
	}
}

// TestPackages: the image has the package of every program.
func TestPackages(t *testing.T) {
	_, list, _ := strings.Cut(string(deploy.Dockerfile), "\nARG PACKAGES=\"")
	list, _, ok := strings.Cut(list, "\"\n")
	if !ok {
		t.Fatal("the Dockerfile has no line ARG PACKAGES")
	}
	for _, p := range programs.All() {
		if p.Package != "" && !strings.Contains(" "+list+" ", " "+p.Package+" ") {
			t.Errorf("the packages %q lack %s, which brings %s", list, p.Package, p.Name)
		}
	}
}

var runcs = map[string]bool{
	"runc 1.1.5+ds1":   true,
	"runc 1.0.0-rc93":  true,
	"runc 1.2.7":       true,
	"runc 1.2.8":       false,
	"runc 1.3.2":       true,
	"runc 1.3.3-0":     false,
	"runc 1.4.0-rc.2":  true,
	"runc 1.4.0-rc.3":  false,
	"runc 1.4.0":       false,
	"runc 1.3.3-rc.1":  true,
	"runc 1.10.1":      false,
	"runc 2.0.0":       false,
	"runc 0.9.9":       true,
	"crun 0.17":        false,
	"runc":             false,
	"":                 false,
	"runc 9999999.1.1": false,
}

func TestOldRunc(t *testing.T) {
	for version, want := range runcs {
		if got := docker.OldRunc(version); got != want {
			t.Errorf("%q: got %v, want %v", version, got, want)
		}
	}
}

func FuzzOldRunc(f *testing.F) {
	for version := range runcs {
		f.Add(version)
	}
	f.Fuzz(func(t *testing.T, version string) {
		if docker.OldRunc(version) && !strings.HasPrefix(version, "runc ") {
			t.Errorf("%q is not runc", version)
		}
	})
}
