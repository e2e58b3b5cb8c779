//go:build !race

package pipelines_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/costtest"
	"github.com/mcsh-dev/mcsh/pipelines"
)

// TestCosts: hostile files and values cost little.
func TestCosts(t *testing.T) {
	many := strings.Repeat(`{"$param": "x"},`, 12_000)
	wide := func(plan string) func() error {
		d, err := pipelines.Parse("f.json", []byte(file(said, params(`{"x": {}}`), plan)))
		if err != nil {
			t.Fatal(err)
		}
		return func() error {
			values, err := d.Values(t.Context(), json.RawMessage(`{"x": "`+strings.Repeat("x", costtest.Input)+`"}`))
			if err == nil {
				_, err = d.Fill(values)
			}
			return err
		}
	}
	for name, work := range map[string]func() error{
		"nested":   func() error { return parse(strings.Repeat("[", pipelines.MaxFile)) },
		"objects":  func() error { return parse(strings.Repeat(`{"a":`, pipelines.MaxFile/5)) },
		"mistakes": func() error { return parse(file(said, `"pipeline": [{"type": "x", "a": [`+many+`0]}]`)) },
		"schema": func() error {
			return parse(file(said, plan, `"parameters": {"properties": {`+strings.Repeat(`"a": {},`, 20_000)+`"b": {}}}`))
		},
		"values":   wide(args(`{"a": [` + many + `0]}`)),
		"operands": wide(`"pipeline": [{"type": "command", "command": "grep", "args": [` + many + `"a"]}]`),
		"programs": wide(`"pipeline": [` + strings.Repeat(`{"type": "command", "command": "jq", "args": ["$params"]},`, 3000) + `{"type": "preview"}]`),
		"draft": func() error {
			_, errs := pipelines.Draft{Description: "d", Pipeline: json.RawMessage(strings.Repeat("[", pipelines.MaxFile-1))}.Text()
			return errs[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			costtest.Run(t, func() {
				if err := work(); err == nil {
					t.Error("no mistake was found")
				} else if len(err.Error()) > 20_000 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			})
		})
	}
}

// TestBounds: there are so many pipelines, versions and private ones, and no more.
func TestBounds(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := pipelines.NewStore(dir)
	for i := range pipelines.MaxVersions + 5 {
		if _, err := s.Save(ctx, "a", saying(fmt.Sprint(i)), i, person); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.Versions(ctx, "a"); err != nil || len(list) != pipelines.MaxVersions || list[0].Number != pipelines.MaxVersions+5 {
		t.Errorf("there are %d versions, %v", len(list), err)
	}
	for i := range pipelines.MaxPrivate {
		if _, err := s.Save(ctx, fmt.Sprintf("p%d", i), saying("p"), 0, ann); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Save(ctx, "more", saying("p"), 0, ann); !errors.Is(err, pipelines.ErrFull) {
		t.Errorf("one more of an agent: %v", err)
	}
	if _, err := s.Save(ctx, "more", saying("p"), 0, bob); err != nil {
		t.Errorf("one of another agent: %v", err)
	}
	for i := range pipelines.MaxPipelines {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("z%03d.json", i)), saying("z"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Reload(ctx); err == nil || !strings.Contains(err.Error(), "more than 500 saved pipelines") {
		t.Errorf("too many files: %v", err)
	}
	if list, _ := s.List(ctx); len(list) != pipelines.MaxPipelines {
		t.Errorf("%d count", len(list))
	}
	if _, err := s.Save(ctx, "zz", saying("z"), 0, person); !errors.Is(err, pipelines.ErrFull) {
		t.Errorf("one more: %v", err)
	}
}
