package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

const (
	backupSuffix = ".before-mcsh" // of the first backup; others have a number behind it
	madeSuffix   = ".made-by-mcsh"
)

// An Original is the state of a file before this gateway was written into it.
type Original struct {
	Made    bool     // there was no file: it may be removed with the entry
	Backups []Backup // the newest first
}

// A Backup is a file as it was.
type Backup struct {
	Path string
	Data []byte

	number int // of the path
}

// OriginalOf reads what [SaveOriginal] has saved for a file.
func OriginalOf(path string) (Original, error) {
	var original Original
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return original, nil
	}
	if err != nil {
		return original, err
	}
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), filepath.Base(path))
		original.Made = original.Made || ok && rest == madeSuffix
		n := backupNumber(rest)
		if !ok || n == 0 {
			continue
		}
		backup := Backup{Path: backupPath(path, n), number: n}
		if backup.Data, err = namedfile.Read(backup.Path, MaxFile); err != nil {
			return Original{}, fmt.Errorf("reading a backup of %s: %w", path, err)
		}
		original.Backups = append(original.Backups, backup)
	}
	slices.SortFunc(original.Backups, func(a, b Backup) int { return b.number - a.number })
	return original, nil
}

// SaveOriginal saves what an undo needs, before an edit is written: a backup of the file, if the edit changes more than
// an entry of ours or there is no backup yet, or a mark that there was no file. It returns the path of the backup. A
// backup never replaces another one.
func SaveOriginal(path string, old []byte, edit Edit) (string, error) {
	original, err := OriginalOf(path)
	if err != nil {
		return "", err
	}
	if old == nil {
		if err := create(path+madeSuffix, path, nil); !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		return "", nil
	}
	if edit.Outcome == Added && original.Made { // another program has made this one
		if err := os.Remove(path + madeSuffix); err != nil {
			return "", err
		}
	}
	if !edit.NeedsBackup && (original.Made || len(original.Backups) > 0) {
		return "", nil
	}
	last := 0
	for _, backup := range original.Backups {
		if bytes.Equal(backup.Data, old) {
			return backup.Path, nil
		}
		last = max(last, backup.number)
	}
	name := backupPath(path, last+1)
	if err := create(name, path, old); err != nil {
		return "", fmt.Errorf("making a backup of %s: %w", path, err)
	}
	return name, nil
}

// RemoveBackups removes what was saved for a file from which the gateway was removed: the mark, and backups that equal
// the file.
func RemoveBackups(path string, data []byte) {
	original, err := OriginalOf(path)
	if err != nil {
		return // leftover backups do no harm
	}
	if original.Made {
		_ = os.Remove(path + madeSuffix)
	}
	for _, backup := range original.Backups {
		if data != nil && bytes.Equal(backup.Data, data) {
			_ = os.Remove(backup.Path)
		}
	}
}

func backupPath(path string, n int) string {
	if n == 1 {
		return path + backupSuffix
	}
	return path + backupSuffix + "-" + strconv.Itoa(n)
}

// backupNumber is the number of a backup, given the end of its name, or 0.
func backupNumber(rest string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(rest, backupSuffix+"-"))
	if rest == backupSuffix {
		n = 1
	}
	if n < 1 || backupPath("", n) != rest {
		return 0
	}
	return n
}

// create writes a new file that only the owner of another file may read.
func create(path, beside string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = inheritOwner(f, beside)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // the error says enough
	}
	return err
}

// Outcomes for the gateway's entry, besides [Added], [Replaced] and [Same].
const (
	Removed  = "removed"
	Restored = "removed, and the server that it replaced is back"
	Missing  = "not there"
)

// Remove removes the entry of the gateway, and objects and files that were made for it. Other changes since then stay. A
// server that the entry replaced comes back if nothing else has changed since.
func (c Client) Remove(path string, data []byte, original Original, g Gateway) (Edit, error) {
	was, there, err := c.find(path, data, g.Name)
	switch {
	case err != nil:
		return Edit{}, err
	case !there:
		return Edit{Outcome: Missing, Data: data}, nil
	case !c.ours(was, g):
		return Edit{}, fmt.Errorf("%s: %w: %q is another server there", path, ErrTaken, g.Name)
	}
	for _, backup := range original.Backups {
		if edit, ok := c.restore(path, data, backup.Data, g); ok {
			return edit, nil
		}
	}
	empty := original.Made
	if len(original.Backups) > 0 && !empty {
		_, hadServers, _ := c.servers(path, original.Backups[0].Data) // an unreadable file counts as having had them
		empty = !hadServers
	}
	edited, err := c.editor(path).drop(data, c.keys[0], g.Name, empty)
	if err == nil {
		err = c.check(path, data, edited, g.Name, func(servers map[string]any) { delete(servers, g.Name) })
	}
	switch {
	case err != nil:
		return Edit{}, err
	case original.Made && c.isEmpty(path, edited):
		edited = nil
	case edited == nil: // the file stays, but is empty
		edited = []byte{}
	}
	return Edit{Outcome: Removed, Data: edited}, nil
}

// restore returns a backup from before the entry was written, if only the entry has changed since.
func (c Client) restore(path string, data, backup []byte, g Gateway) (Edit, bool) {
	was, there, err := c.find(path, backup, g.Name)
	if err != nil || there && c.ours(was, g) || !c.editor(path).adds(data, backup, c.keys[0], g.Name) {
		return Edit{}, false
	}
	edit, change := Edit{Outcome: Removed, Data: backup}, func(servers map[string]any) { delete(servers, g.Name) }
	if there {
		edit.Outcome, change = Restored, func(servers map[string]any) { servers[g.Name] = was }
	}
	return edit, c.check(path, data, backup, g.Name, change) == nil
}
