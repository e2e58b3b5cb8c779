//go:build linux

package worker

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// FuzzArgv: a process gets the arguments that the grammar has written byte for byte, whatever stands in them.
func FuzzArgv(f *testing.F) {
	for _, row := range []string{
		"grep -c|use {scratch} dir", "tac -s{scratch}", "sort -k1", "awk {print \"{scratch}\"}", "jq .a{scratch}", "ls .mc{scratch}sh",
		"sed s/{scratch}/$TMPDIR/", "jq -n|--arg|a|{}%s\\|$1", "head -n1", "cut -c1|@b",
	} {
		name, args, _ := strings.Cut(row, " ")
		f.Add(name, args)
	}
	f.Fuzz(func(t *testing.T, name, joined string) {
		if !utf8.ValidString(joined) {
			return // arguments come from JSON
		}
		inv, err := programs.Parse(name, strings.Split(joined, "|"), programs.Given{Files: true})
		if err != nil {
			return
		}
		program, _ := programs.Find(name)
		text, err := json.Marshal(wire.Command{Name: name, Argv: inv.Argv})
		if err != nil {
			t.Fatal(err)
		}
		var c wire.Command
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		p := &process{tool: &tool{Program: program}, scratch: "/tmp/a scratch directory"}
		command := p.command(c, wire.Chain{})
		got := command.Argv
		if program.Bin == "" {
			text, err := json.Marshal(p.spec(c, wire.Chain{}))
			if err != nil {
				t.Fatal(err)
			}
			var spec appletSpec
			if err := json.Unmarshal(text, &spec); err != nil {
				t.Fatal(err)
			}
			got = append([]string{name}, spec.Args...)
		}
		if !slices.Equal(got, inv.Argv) {
			t.Errorf("%s %q: the process gets %q, want %q", name, joined, got, inv.Argv)
		}
		if want := program.Scratch; want != slices.Contains(command.Env, "TMPDIR="+p.scratch) {
			t.Errorf("%s: the environment is %q, want TMPDIR in it: %v", name, command.Env, want)
		}
	})
}
