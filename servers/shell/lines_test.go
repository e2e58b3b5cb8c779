package shell_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/servers/shell"
)

// A row is a hostile or a harmless line, and the patterns for it; without patterns those of usual.
type row struct{ Why, Allow, Deny, Line, Want string }

const usual = "echo,cat,ls,true,:,cd,printf,test,[,read,export,readonly,unset,set,exit,wait"

func rows(t testing.TB) (all []row) {
	t.Helper()
	data, err := os.ReadFile("testdata/lines.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		if r.Allow == "" && r.Deny == "" {
			all[i].Allow = usual
		}
	}
	return all
}

// A cage is a directory with a program canary on the PATH and in the directory, which leaves a trace.
type cage struct{ dir, trace string }

func newCage(t testing.TB) cage {
	t.Helper()
	c := cage{t.TempDir(), filepath.Join(t.TempDir(), "ran")}
	canary := fmt.Sprintf("#!/bin/sh\n: > '%s'\n", c.trace)
	write(t, c.dir, "canary", canary, 0o755)
	write(t, c.dir, "script", "canary\n", 0o644)
	write(t, c.dir, "in", "canary\n", 0o644)
	return c
}

// options are for a shell in the cage.
func (c cage) options(program string, r row) shell.Options {
	return shell.Options{
		WorkingDir: c.dir, Shell: program, Allow: split(r.Allow), Deny: split(r.Deny),
		Environ: map[string]string{"PATH": c.dir + ":" + os.Getenv("PATH"), "HOME": c.dir, "LANG": "C.UTF-8"},
	}
}

func checkLine(t *testing.T, path string, r row, refused bool) {
	t.Helper()
	c := newCage(t)
	got := open(t, c.options(path, r))(r.Line)
	if is := got.Output == denied; is != refused {
		t.Errorf("%s: %.200q: refused %v, want %v: %s%s", r.Why, r.Line, is, refused, got.Reason, got.Output)
	}
	if exists(c.trace) {
		t.Errorf("%s: %.200q ran the canary", r.Why, r.Line)
	}
}
