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

// A Past is what is known of a file as it was before this gateway was written into it.
type Past struct {
	Made    bool     // there was no file: it may go with the entry
	Backups []Backup // the newest first
}

// A Backup is a file as it was.
type Backup struct {
	Path string
	Data []byte
}

// PastOf reads what [Keep] has kept of a file.
func PastOf(path string) (Past, error) {
	var past Past
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return past, nil
	}
	if err != nil {
		return past, err
	}
	var numbers []int
	for _, entry := range entries {
		rest, ok := strings.CutPrefix(entry.Name(), filepath.Base(path))
		if n := backupNumber(rest); ok && n > 0 {
			numbers = append(numbers, n)
		}
		past.Made = past.Made || ok && rest == madeSuffix
	}
	slices.Sort(numbers)
	for _, n := range slices.Backward(numbers) {
		backup := Backup{Path: backupPath(path, n)}
		if backup.Data, err = namedfile.Read(backup.Path, MaxFile); err != nil {
			return Past{}, fmt.Errorf("reading a backup of %s: %w", path, err)
		}
		past.Backups = append(past.Backups, backup)
	}
	return past, nil
}

// Keep keeps what is needed to undo an edit, before it is written: the file as it was, if more than an entry of ours is
// changed or nothing of it has been kept yet, or that there was none. It returns where the file is kept. No backup ever
// takes the place of another.
func Keep(path string, old []byte, edit Edit) (string, error) {
	past, err := PastOf(path)
	if err != nil {
		return "", err
	}
	if old == nil {
		err := create(path+madeSuffix, path, nil)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return "", err
	}
	if edit.Outcome == Added && past.Made { // another program has made this one
		if err := os.Remove(path + madeSuffix); err != nil {
			return "", err
		}
	}
	if !edit.Keep && (past.Made || len(past.Backups) > 0) {
		return "", nil
	}
	last := 0
	for _, backup := range past.Backups {
		if bytes.Equal(backup.Data, old) {
			return backup.Path, nil
		}
		last = max(last, backupNumber(strings.TrimPrefix(backup.Path, path)))
	}
	name := backupPath(path, last+1)
	if err := create(name, path, old); err != nil {
		return "", fmt.Errorf("making a backup of %s: %w", path, err)
	}
	return name, nil
}

// Forget removes what was kept of a file that the gateway is no longer in: the mark of one that was made, and backups that
// hold what is in the file again.
func Forget(path string, data []byte) {
	past, err := PastOf(path)
	if err != nil {
		return // what is left does no harm
	}
	if past.Made {
		_ = os.Remove(path + madeSuffix)
	}
	for _, backup := range past.Backups {
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

// backupNumber is that of a backup, of which the end of the name is given, or 0.
func backupNumber(rest string) int {
	rest, ok := strings.CutPrefix(rest, backupSuffix)
	if ok && rest == "" {
		return 1
	}
	n, err := strconv.Atoi(strings.TrimPrefix(rest, "-"))
	if !ok || err != nil || n < 2 || rest != "-"+strconv.Itoa(n) {
		return 0
	}
	return n
}

// create writes a file that is not there yet, for the owner of another alone.
func create(path, beside string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = asRoot(f, beside)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // the error says enough
	}
	return err
}
