//go:build linux

package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
)

// A room is a scratch directory and the jail that is built around it. It is for one process of one tool at a time, each of
// which finds it empty: to make and remove both takes half as long as a small command.
type room struct {
	tool *tool
	dir  string
	cell *jail.Cell
}

// spareRooms is how many wait for a process at most, of all tools.
const spareRooms = 4

// rooms are those that wait.
type rooms struct {
	mu    sync.Mutex
	spare []*room
}

// take returns a room of a tool, which is made in base if none waits.
func (r *rooms) take(t *tool, base scratch) (*room, error) {
	r.mu.Lock()
	for i, spare := range r.spare {
		if spare.tool == t {
			r.spare = append(r.spare[:i], r.spare[i+1:]...)
			r.mu.Unlock()
			return spare, nil
		}
	}
	r.mu.Unlock()
	dir, err := base.make()
	if err != nil {
		return nil, err
	}
	cell, _, err := t.cell(dir, "", nil, nil)
	if err != nil {
		_ = os.Remove(dir) // it is empty
		return nil, err
	}
	return &room{t, dir, cell}, nil
}

// leave clears a room whose process is dead. One that cannot be cleared, or is one too many, is given up.
func (r *rooms) leave(left *room) {
	clean := left.clear() == nil
	r.mu.Lock()
	clean = clean && len(r.spare) < spareRooms
	if clean {
		r.spare = append(r.spare, left)
	}
	r.mu.Unlock()
	if !clean {
		left.cell.Close()
		_ = os.RemoveAll(left.dir) // what stays is removed with the base directory
	}
}

// clear removes what is in the directory, and looks whether it is gone.
func (r *room) clear() error {
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(r.dir, e.Name())); err != nil {
			return err
		}
	}
	return scratch(r.dir).checkEmpty(nil)
}

// empty returns an error unless all of those that wait are empty and base has nothing else.
func (r *rooms) empty(base scratch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]bool{}
	for _, spare := range r.spare {
		known[filepath.Base(spare.dir)] = true
		if err := scratch(spare.dir).checkEmpty(nil); err != nil {
			return fmt.Errorf("a directory of %s: %w", spare.tool.Name, err)
		}
	}
	return base.checkEmpty(known)
}
