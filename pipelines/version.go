package pipelines

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// MaxVersions is how many versions of one pipeline are kept. The oldest go first.
const MaxVersions = 100

// versionsDir is the directory of the versions, in that of the pipelines.
const versionsDir = ".versions"

// An Author is who has written a version.
type Author struct {
	Agent  bool   `json:"agent,omitempty"`  // else a person
	Caller string `json:"caller,omitempty"` // the identity of the agent's caller
}

// A Version is one content of a saved pipeline. Equal contents that follow each other are one version.
type Version struct {
	Number  int       `json:"version"`
	Hash    string    `json:"hash"` // of the text
	Saved   time.Time `json:"saved,omitzero"`
	Author  Author    `json:"author"`
	Adopted time.Time `json:"adopted,omitzero"` // by a person: since then all callers see it
	Text    string    `json:"file"`             // the whole file, with its comments
}

// VisibleTo reports whether a caller may know of the version: an agent's belongs to its caller until a person adopts it.
func (v Version) VisibleTo(caller string) bool {
	return !v.Private() || v.Author.Caller == caller && caller != ""
}

// Private reports whether only the caller of its author may know of the version.
func (v Version) Private() bool { return v.Author.Agent && v.Adopted.IsZero() }

// hashOf is the hash of a text.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// records are the versions of one pipeline on the disk.
type records struct{ dir string }

func recordsOf(dir, name string) records { return records{filepath.Join(dir, versionsDir, name)} }

func (r records) path(number int) string { return filepath.Join(r.dir, strconv.Itoa(number)+".json") }

// numbers returns the numbers of the versions that are kept, sorted.
func (r records) numbers() ([]int, error) {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []int
	for _, e := range entries {
		text, ok := strings.CutSuffix(e.Name(), ".json")
		if n, nerr := strconv.Atoi(text); ok && nerr == nil && n > 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, err
}

// read reads a version.
func (r records) read(number int) (Version, error) {
	data, err := namedfile.Read(r.path(number), maxRecord)
	if err != nil {
		return Version{}, err
	}
	var v Version
	if err := json.Unmarshal(data, &v); err != nil || v.Number != number || v.Hash != hashOf([]byte(v.Text)) {
		return Version{}, fmt.Errorf("%s is damaged; remove it if the file of the pipeline is right", r.path(number))
	}
	return v, nil
}

// maxRecord is more than the size of a record whose text is as long as a file may be: each of its bytes may have an escape.
const maxRecord = 2 << 20

// latest returns the newest version; the zero one where there is none.
func (r records) latest() (Version, error) {
	numbers, err := r.numbers()
	if err != nil || len(numbers) == 0 {
		return Version{}, err
	}
	return r.read(numbers[len(numbers)-1])
}

// all returns the versions that can be read, the newest first.
func (r records) all() ([]Version, error) {
	numbers, err := r.numbers()
	errs := []error{err}
	var list []Version
	for _, n := range numbers {
		v, err := r.read(n)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b Version) int { return cmp.Compare(b.Number, a.Number) })
	return list, errors.Join(errs...)
}

// write writes a version, and then removes the oldest ones beyond those that are kept.
func (r records) write(v Version) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	if err := replace(r.path(v.Number), append(data, '\n'), 0o600); err != nil {
		return err
	}
	numbers, _ := r.numbers() // what cannot be listed stays
	for _, old := range numbers[:max(0, len(numbers)-MaxVersions)] {
		_ = os.Remove(r.path(old)) // the next time
	}
	return nil
}

// next returns the version that a text is: the latest one if it has that text, else a new one that is not written yet. A text
// that was there before keeps its author: what an agent has written does not become a person's by coming back.
func (r records) next(text []byte) (v Version, isNew bool, err error) {
	hash := hashOf(text)
	if v, err = r.latest(); err != nil || v.Hash == hash {
		return v, false, err
	}
	next := Version{Number: v.Number + 1, Hash: hash, Saved: time.Now().UTC().Truncate(time.Second), Text: string(text)}
	list, err := r.all()
	if i := slices.IndexFunc(list, func(old Version) bool { return old.Hash == hash }); i >= 0 {
		next.Author, next.Adopted = list[i].Author, list[i].Adopted
	}
	return next, true, err
}
