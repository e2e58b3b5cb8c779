// Package state keeps on disk what gateways know about servers, so that the next process need not ask: lists of tools,
// resources and prompts, the shapes of results, and pins: the tools that are trusted. It never keeps a value of a result, nor a
// field name that might be one. Several gateways may use one directory at the same time. A file that cannot be read counts as
// missing; only pins that cannot be read count as pins that trust nothing. Gateways of several machines can share shapes in a store
// ([Shared]), and nothing else: each asks its servers for their lists itself.
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
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/preview/shape"
)

const (
	maxTools  = 24 << 20 // bytes of a file of tools
	maxShapes = 16 << 20 // bytes of a file of shapes

	maxFiles = 1000      // of all servers together
	maxBytes = 256 << 20 // of all files together; those of pins count by themselves

	kept     = 90 * 24 * time.Hour // without a write, before a file is removed
	leftover = time.Hour           // the age at which a temporary file is removed

	entriesAtOnce = 256 // that are read from the directory
)

// kindsOfFiles begin the names of our files.
var kindsOfFiles = []string{"tools", "shapes", "offers", kindPins}

// A Dir is a directory of state. Its methods may be called concurrently. If it holds too many files or bytes, the ones
// written longest ago are removed.
type Dir struct {
	root     *os.Root
	sweeping sync.Mutex // held while files are removed
}

// A Key names a server over restarts.
type Key struct {
	Server   string // its name
	Identity string // of the server behind the name; empty if not known
}

// Open makes the directory if it is missing, readable for its owner only, and removes files that have not been used for
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

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }

// sweep removes our files that are too old, and the oldest if there are too many.
func (d *Dir) sweep(now time.Time) error {
	d.sweeping.Lock()
	defer d.sweeping.Unlock()
	files, err := d.files()
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	pins := func(f fs.FileInfo) bool { return strings.HasPrefix(f.Name(), kindPins+"-") }
	others := slices.DeleteFunc(slices.Clone(files), pins)
	files = slices.DeleteFunc(files, func(f fs.FileInfo) bool { return !pins(f) })
	// Pins are no cache: without them a server is trusted anew. They are never too old, and no other file drives them out.
	return errors.Join(d.evict(others, now, kept), d.evict(files, now, math.MaxInt64))
}

// evict removes files of a list, the newest first, that are older than most or too many.
func (d *Dir) evict(files []fs.FileInfo, now time.Time, most time.Duration) error {
	count, size := 0, int64(0)
	for _, f := range files {
		age := now.Sub(f.ModTime())
		count, size = count+1, size+f.Size()
		if age <= most && count <= maxFiles && size <= maxBytes && (age <= leftover || !strings.HasSuffix(f.Name(), ".tmp")) {
			continue
		}
		count, size = count-1, size-f.Size()
		if err := d.root.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// files lists our files in the directory.
func (d *Dir) files() (files []fs.FileInfo, err error) {
	dir, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if !slices.ContainsFunc(kindsOfFiles, func(kind string) bool { return strings.HasPrefix(e.Name(), kind+"-") }) {
				continue // not ours
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() { // it may be gone by now
				files = append(files, info)
			}
		}
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// envelope is the content of every file.
type envelope struct {
	Version int    `json:"version"`
	Key     string `json:"key"` // against files that were copied or renamed
	Data    any    `json:"data"`
}

// versionOf is the version of a kind of files. Files of other versions are not read: shapes of version 1 took text for
// values.
func versionOf(kind string) int {
	if kind == "shapes" {
		return 2
	}
	return 1
}

func (k Key) hash() string {
	sum := sha256.Sum256([]byte(k.Server + "\x00" + k.Identity))
	return hex.EncodeToString(sum[:16])
}

// read decodes a file, and reports whether it could.
func (d *Dir) read(kind string, k Key, limit int64, into any) bool {
	_, err := d.load(kind, k, limit, into)
	return err == nil
}

// load decodes a file. The error is [fs.ErrNotExist] if there is none, and wraps errDamaged if it is not one of ours.
func (d *Dir) load(kind string, k Key, limit int64, into any) (fs.FileInfo, error) {
	f, err := d.root.OpenFile(fileName(kind, k), os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return info, errDamaged
	}
	b, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return info, err
	}
	e := envelope{Data: into} // which is decoded into, because it is a pointer
	if json.Unmarshal(b, &e) != nil || e.Version != versionOf(kind) || e.Key != k.hash() {
		return info, errDamaged
	}
	return info, nil
}

var errDamaged = errors.New("the file is damaged")

func fileName(kind string, k Key) string { return kind + "-" + k.hash() + ".json" }

// write replaces a file: a reader sees the old one or the new one.
func (d *Dir) write(kind string, k Key, limit int64, data any) error {
	b, err := json.Marshal(envelope{versionOf(kind), k.hash(), data})
	if err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	if int64(len(b)) > limit {
		return fmt.Errorf("writing state: %d bytes of %s are more than %d", len(b), kind, limit)
	}
	name := fileName(kind, k)
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
		err = errors.Join(err, d.root.Remove(temporary))
	} else {
		err = d.sweep(time.Now())
	}
	if err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	return nil
}

// Tools is the tool list of a server as it was last fetched.
type Tools struct {
	Fetched time.Time         `json:"fetched"`
	List    []json.RawMessage `json:"list"`
	Cut     string            `json:"cut,omitempty"` // why the list is incomplete, or empty
}

// Tools reads a tool list, and reports whether there is one.
func (d *Dir) Tools(k Key) (Tools, bool) {
	var t Tools
	if !d.read("tools", k, maxTools, &t) {
		return Tools{}, false
	}
	return t, true
}

// SaveTools replaces a tool list.
func (d *Dir) SaveTools(k Key, t Tools) error { return d.write("tools", k, maxTools, t) }

// Offers are what a server offers beside tools, as it was last fetched.
type Offers struct {
	Fetched      time.Time           `json:"fetched"`
	Instructions string              `json:"instructions,omitempty"`
	Lists        [][]json.RawMessage `json:"lists"`
	Cut          string              `json:"cut,omitempty"` // why a list is incomplete, or empty
}

// Offers reads what a server offers beside tools, and reports whether that is known.
func (d *Dir) Offers(k Key) (Offers, bool) {
	var o Offers
	if !d.read("offers", k, maxTools, &o) {
		return Offers{}, false
	}
	return o, true
}

// SaveOffers replaces what a server offers beside tools.
func (d *Dir) SaveOffers(k Key, o Offers) error { return d.write("offers", k, maxTools, o) }

// Shapes are the shapes of the results of a server's tools, by the tool's name.
type Shapes map[string]ToolShape

// ToolShape is the shape of a tool's results, and the schema that the tool had when it was learned.
type ToolShape struct {
	Schema string        `json:"schema"` // a hash
	Result *shape.Result `json:"result"`
}

// Shapes reads the shapes of a server's tools. It may be empty.
func (d *Dir) Shapes(k Key) Shapes {
	s := Shapes{}
	if !d.read("shapes", k, maxShapes, &s) {
		return Shapes{}
	}
	maps.DeleteFunc(s, func(_ string, l ToolShape) bool { return !l.Result.Known() })
	return s
}

// SaveShapes merges the shapes that a gateway has learned with those that others have written meanwhile; for a tool with
// another schema there, the given shape counts. keep reports whether a tool that others wrote still exists; known
// reports which words may be names of fields (see [shape.Result.Writable]).
func (d *Dir) SaveShapes(k Key, s Shapes, keep func(tool, schema string) bool, known func(tool string) func(word string) bool) error {
	return d.write("shapes", k, maxShapes, s.merged(d.Shapes(k), keep, known))
}

// merged returns shapes together with those that others have written.
func (s Shapes) merged(others Shapes, keep func(tool, schema string) bool, known func(tool string) func(word string) bool) Shapes {
	all := Shapes{}
	for name, l := range others {
		if _, ours := s[name]; !ours && keep(name, l.Schema) {
			all[name] = ToolShape{l.Schema, l.Result.Writable(known(name))}
		} else if ours && l.Schema == s[name].Schema {
			all[name] = l
		}
	}
	for name, l := range s {
		result := l.Result
		if other, ok := all[name]; ok {
			result = shape.MergeResults(other.Result, result)
			result.Calls = max(other.Result.Calls, l.Result.Calls)
		}
		all[name] = ToolShape{l.Schema, result.Writable(known(name))}
	}
	return all
}
