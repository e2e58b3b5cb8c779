package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/internal/flock"
)

const (
	kindPins = "pins"
	lockPins = "pins.lock" // against other processes, for all servers

	maxPins  = 32 << 20 // bytes of a file of pins
	lockWait = 10 * time.Second
)

// Pins are the tools of a server that are trusted, by name, and those that wait to be.
type Pins struct {
	First bool `json:"-"` // there is no file yet: nobody has read a list with tools

	// Strict says that a gateway has held tools back: no other one may trust new tools by itself any more.
	Strict bool `json:"strict,omitempty"`

	Trusted map[string]Pin `json:"trusted"`
	Waiting map[string]Pin `json:"waiting,omitempty"` // new ones, and changed ones as they are now
}

// A Pin is a tool at one time.
type Pin struct {
	Hash       string          `json:"hash"`
	Definition json.RawMessage `json:"definition,omitempty"` // to show what has changed; absent: it is too long
}

// A PinsFile is a version of a file of pins; nil: there is none.
type PinsFile struct{ info fs.FileInfo }

// Pins reads the pins of a server. Those of a damaged file trust nothing.
func (d *Dir) Pins(k Key) (*Pins, *PinsFile, error) {
	p := &Pins{}
	info, err := d.load(kindPins, k, maxPins, p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Pins{First: true, Trusted: map[string]Pin{}, Waiting: map[string]Pin{}}, nil, nil
	case errors.Is(err, errDamaged):
		p = &Pins{} // and not what could be decoded
	case err != nil:
		return nil, nil, fmt.Errorf("reading pins: %w", err)
	}
	if p.Trusted == nil {
		p.Trusted = map[string]Pin{}
	}
	if p.Waiting == nil {
		p.Waiting = map[string]Pin{}
	}
	return p, &PinsFile{info}, nil
}

// SamePins reports whether the pins of a server are still those of a file.
func (d *Dir) SamePins(k Key, f *PinsFile) bool {
	info, err := d.root.Stat(fileName(kindPins, k))
	if err != nil || f == nil {
		return errors.Is(err, fs.ErrNotExist) && f == nil
	}
	return os.SameFile(info, f.info) && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.info.Size()
}

// UpdatePins changes the pins of a server; no other process changes them meanwhile. change reports whether they are to be
// written.
func (d *Dir) UpdatePins(ctx context.Context, k Key, change func(*Pins) bool) (*PinsFile, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, fmt.Errorf("another process has locked them for more than %v", lockWait))
	defer cancel()
	lock, err := d.root.OpenFile(lockPins, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking pins: %w", err)
	}
	defer lock.Close() // which unlocks it
	if err := flock.Wait(ctx, lock); err != nil {
		return nil, fmt.Errorf("locking pins: %w", err)
	}
	p, f, err := d.Pins(k)
	if err != nil || !change(p) {
		return f, err
	}
	if err := d.write(kindPins, k, maxPins, p); err != nil {
		return nil, err
	}
	info, err := d.root.Stat(fileName(kindPins, k))
	if err != nil {
		return nil, fmt.Errorf("reading pins: %w", err)
	}
	return &PinsFile{info}, nil
}
