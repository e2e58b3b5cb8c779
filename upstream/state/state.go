// Package state keeps on disk what gateways know of servers, so that the next one need not ask: the tool lists that
// servers published, and the shapes of results. It never holds a value of a result, nor a name of a field that might be
// one. Several gateways may use one directory at the same time. A file that cannot be read is as good as none.
package state

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	version = 1

	maxTools  = 24 << 20 // bytes of a file of tools
	maxShapes = 16 << 20 // bytes of a file of shapes

	kept     = 90 * 24 * time.Hour // how long a file is kept that nobody writes
	leftover = time.Hour           // the age of a temporary file that nobody will finish
)

// A Dir is a directory of state. Its methods may be called concurrently.
type Dir struct{ root *os.Root }

// A Key names a server over restarts.
type Key struct {
	Server   string // its name
	Identity string // what is reached by that name; empty where that is not known
}

// Open makes the directory, where it is not there, readable for its owner only, and removes what has not been used for
// long.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	d := &Dir{root: root}
	if err := d.sweep(time.Now()); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the state directory: %w", err), root.Close())
	}
	return d, nil
}

// Close gives the directory up.
func (d *Dir) Close() error { return d.root.Close() }

// sweep removes files of ours that are too old.
func (d *Dir) sweep(now time.Time) error {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(e.Name(), "tools-") && !strings.HasPrefix(e.Name(), "shapes-") {
			continue // somebody else's, or gone by now
		}
		age := now.Sub(info.ModTime())
		if age > kept || strings.HasSuffix(e.Name(), ".tmp") && age > leftover {
			if err := d.root.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// envelope is what every file holds.
type envelope struct {
	Version int             `json:"version"`
	Key     string          `json:"key"` // against files that were copied or renamed
	Data    json.RawMessage `json:"data"`
}

func (k Key) hash() string {
	sum := sha256.Sum256([]byte(k.Server + "\x00" + k.Identity))
	return hex.EncodeToString(sum[:16])
}

// read fills into from a file, and reports whether it could.
func (d *Dir) read(kind string, k Key, limit int64, into any) bool {
	f, err := d.root.Open(kind + "-" + k.hash() + ".json")
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return false
	}
	b, err := io.ReadAll(io.LimitReader(f, limit))
	var e envelope
	return err == nil && json.Unmarshal(b, &e) == nil && e.Version == version && e.Key == k.hash() && json.Unmarshal(e.Data, into) == nil
}

// write replaces a file: whoever reads meanwhile sees the old one or the new one.
func (d *Dir) write(kind string, k Key, limit int64, data any) (err error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	b, err := json.Marshal(envelope{version, k.hash(), raw})
	if err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	if int64(len(b)) > limit {
		return fmt.Errorf("writing state: %d bytes of %s are more than %d", len(b), kind, limit)
	}
	name := kind + "-" + k.hash() + ".json"
	temporary := kind + "-" + rand.Text() + ".tmp"
	f, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.root.Rename(temporary, name)
	}
	if err != nil {
		return fmt.Errorf("writing state: %w", errors.Join(err, d.root.Remove(temporary)))
	}
	return nil
}
