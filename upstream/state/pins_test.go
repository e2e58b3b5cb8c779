package state_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/state"
)

// trust trusts one more tool.
func trust(t *testing.T, d *state.Dir, tool string) *state.PinsFile {
	t.Helper()
	f, err := d.UpdatePins(t.Context(), key, func(p *state.Pins) bool {
		p.Trusted[tool] = state.Pin{Hash: tool}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return f
}

// TestPins: many processes change pins at once and lose nothing; each sees that others have changed them.
func TestPins(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	if p, f, err := d.Pins(key); err != nil || f != nil || !p.First || !d.SamePins(key, f) {
		t.Errorf("in an empty directory: %+v, %v, %v", p, f, err)
	}
	first := trust(t, d, "first")
	if !d.SamePins(key, first) || d.SamePins(key, nil) {
		t.Error("the pins that were written are not known")
	}
	var wg sync.WaitGroup
	for i := range 8 {
		other := open(t, dir)
		wg.Go(func() { trust(t, other, fmt.Sprint(i)) })
	}
	wg.Wait()
	if d.SamePins(key, first) {
		t.Error("changed pins count as unchanged")
	}
	if p, _, err := d.Pins(key); err != nil || p.First || len(p.Trusted) != 9 {
		t.Errorf("%+v, %v", p, err)
	}
	f, err := d.UpdatePins(t.Context(), key, func(*state.Pins) bool { return false })
	if err != nil || !d.SamePins(key, f) {
		t.Errorf("an update without a change: %v", err)
	}
}

// TestPinsStay: no other file drives pins out.
func TestPinsStay(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	trust(t, d, "a")
	names, old := files(t, dir), time.Now().Add(-1000*24*time.Hour)
	for _, name := range names {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1500 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("tools-%04d.json", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.SaveTools(key, state.Tools{}), d.SaveTools(key, state.Tools{})); err != nil {
		t.Fatal(err)
	}
	if p, _, err := open(t, dir).Pins(key); err != nil || len(p.Trusted) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}
