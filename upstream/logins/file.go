package logins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options say how a store seals its file.
type Options struct {
	KeyFile string  // with a key of 32 bytes; empty: none
	Keyring Keyring // nil: none

	KeyringWait time.Duration // for one answer of the keyring; 0: 2 s
}

// Open opens the store of a directory. A change makes the directory and the file in it if they are missing. A directory or file
// that cannot be used is an error of the first method that needs it.
func Open(dir string, o Options) (*Store, error) {
	if o.KeyFile != "" {
		if _, err := readKeyFile(o.KeyFile); err != nil {
			return nil, err
		}
	}
	return newStore(&file{path: filepath.Join(dir, "logins"), keys: &keys{file: o.KeyFile, ring: guarded(o.Keyring, o.KeyringWait)}}, turnWait), nil
}

// file keeps logins in a file, which the processes of a machine share.
type file struct {
	path string
	keys *keys

	reading sync.Mutex // held while the file is read
	last    snapshot   // guarded by reading
}

// A snapshot is the file as it was read.
type snapshot struct {
	file   *os.File // which is kept open, so that its inode names no other file; nil: there is none
	info   fs.FileInfo
	header header
	logins []Login
}

// forget makes the next reader read the file. The caller holds reading.
func (f *file) forget() error {
	handle := f.last.file
	f.last = snapshot{}
	if handle == nil {
		return nil
	}
	return handle.Close()
}

// close implements [place].
func (f *file) close() error {
	f.reading.Lock()
	defer f.reading.Unlock()
	return f.forget()
}

// where implements [place].
func (f *file) where(ctx context.Context) (text string, sealed bool, err error) {
	now, err := f.snapshot(ctx)
	if err != nil || now.header.kind == "" {
		return "", false, err
	}
	return map[string]string{
		inKeyring: f.path + ", sealed with a key in the keyring",
		inKeyFile: f.path + ", sealed with the key file",
		plain:     f.path + ", not sealed: only its permissions protect it",
	}[now.header.kind], now.header.kind != plain, nil
}

// usable implements [place]. It neither makes the directory nor reads the file.
func (f *file) usable() error {
	if err := checkDir(filepath.Dir(f.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the directory of logins: %w", err)
	}
	return nil
}

// read implements [place].
func (f *file) read(ctx context.Context, _ bool) ([]Login, error) {
	now, err := f.snapshot(ctx)
	return now.logins, err
}

// snapshot returns the content of the file, which it reads if it has changed.
func (f *file) snapshot(ctx context.Context) (snapshot, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if err := f.usable(); err != nil {
		return snapshot{}, err
	}
	there, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return snapshot{}, f.forget()
	case err != nil:
		return snapshot{}, f.broken(err)
	case f.last.file != nil && os.SameFile(there, f.last.info) && there.ModTime().Equal(f.last.info.ModTime()) && there.Size() == f.last.info.Size():
		return f.last, nil
	}
	now, err := f.load(ctx)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) { // somebody removed it just now
			return snapshot{}, f.forget()
		}
		return snapshot{}, f.broken(err)
	}
	if err := f.forget(); err != nil {
		return snapshot{}, errors.Join(err, now.file.Close())
	}
	f.last = now
	return now, nil
}

// load reads the file.
func (f *file) load(ctx context.Context) (now snapshot, err error) {
	handle, err := openOwn(f.path, os.O_RDONLY)
	if err != nil {
		return now, err
	}
	defer func() {
		if err != nil {
			handle.Close()
		}
	}()
	info, err := handle.Stat()
	if err != nil {
		return now, err
	}
	data, err := readFile(handle)
	if err != nil {
		return now, err
	}
	h, rest, err := parseHeader(data)
	if err != nil {
		return now, err
	}
	key, err := f.keys.of(ctx, h)
	if err != nil {
		return now, err
	}
	list, err := h.open(key, rest)
	return snapshot{handle, info, h, list}, err
}

// broken is the error of a file that cannot be used. It stays as it is.
func (f *file) broken(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("the file of logins: %w", err)
	}
	return fmt.Errorf("the file of logins %s was left as it is: %w", f.path, err)
}

// change implements [place], in one process at a time.
func (f *file) change(ctx context.Context, edit func([]Login) ([]Login, error)) error {
	if err := f.usable(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeWait, errors.New("another process is changing the logins"))
	defer cancel()
	unlock, err := lockFile(ctx, f.path+".lock")
	if err != nil {
		return fmt.Errorf("waiting to change the logins: %w", err)
	}
	defer unlock()
	step("locked")
	now, err := f.snapshot(ctx)
	if err != nil {
		return err
	}
	list, err := edit(now.logins)
	if err != nil {
		return err
	}
	var was *header
	if now.header.kind != "" {
		was = &now.header
	}
	h, key, err := f.keys.choose(ctx, was, len(now.logins) == 0, len(list) > 0)
	if err != nil {
		return f.broken(err)
	}
	data, err := seal(h, key, list)
	if err != nil {
		return err
	}
	if err := replaceFile(f.path, data); err != nil {
		return fmt.Errorf("writing the logins: %w", err)
	}
	return nil
}

// lockOf names the file that is locked while a login is refreshed.
func (f *file) lockOf(k Key) string {
	sum := sha256.Sum256([]byte(k.text()))
	return filepath.Join(filepath.Dir(f.path), "refresh-"+hex.EncodeToString(sum[:16])+".lock")
}

// lock implements [place]. It is that of all logins with the key.
func (f *file) lock(ctx context.Context, l Login, _ func(context.Context) error) (turn, error) {
	path := f.lockOf(l.Key)
	unlock, err := lockFile(ctx, path)
	if err != nil {
		return turn{}, fmt.Errorf("waiting for others that refresh the login of %s: %w", l.Server, err)
	}
	return turn{end: func(how outcome) {
		if how == deleted {
			_ = os.Remove(path) // those who wait for it notice; an empty file that stays does no harm
		}
		unlock()
	}}, nil
}
