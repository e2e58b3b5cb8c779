package store_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// line is a line of a key file whose key is made of one letter.
func line(id string, letter byte) string {
	return id + ":" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{letter}, 32)) + "\n"
}

func keyFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func readKeys(t testing.TB, text string) store.Keys {
	t.Helper()
	keys, err := store.ReadKeys(keyFile(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestSealedDirectory(t *testing.T) {
	t.Parallel()
	keys := readKeys(t, line("one", 'a'))
	contract(t, func(t *testing.T) store.Store { return store.Seal(openDirectory(t, t.TempDir()), keys) })
}

func TestSealedS3(t *testing.T) {
	t.Parallel()
	server, keys, n := storetest.S3(t), readKeys(t, line("one", 'a')), 0
	contract(t, func(t *testing.T) store.Store {
		o := server
		n++
		o.Prefix = fmt.Sprintf("below/%d/", n)
		return store.Seal(openS3(t, o), keys)
	})
}

// TestChangedObjects: an object that is not as it was written cannot be read.
func TestChangedObjects(t *testing.T) {
	const headerSize, tagSize = 68, 16
	dir := t.TempDir()
	s := store.Seal(openDirectory(t, dir), readKeys(t, line("one", 'a')))
	data := text(100_000)
	mustPut(t, s, "a/object", data)
	mustPut(t, s, "a/other", data)
	mustPut(t, s, "a/empty", "")
	good, other, empty := file(t, dir, "a/object"), file(t, dir, "a/other"), file(t, dir, "a/empty")
	if len(good) != headerSize+len(data)+tagSize || bytes.Contains(good, []byte(data[:32])) || bytes.Equal(good[headerSize:], other[headerSize:]) {
		t.Fatal("the object is not encrypted with a key of its own")
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	type change struct {
		to   []byte
		want string
	}
	const changed = "somebody has changed it"
	changes := map[string]change{
		"another object":         {other, changed},
		"header of another":      {join(other[:headerSize], good[headerSize:]), changed},
		"data of another":        {join(good[:headerSize], other[headerSize:]), changed},
		"an empty object":        {empty, changed},
		"nothing":                {nil, changed},
		"half a header":          {good[:50], changed},
		"only the header":        {good[:headerSize], changed},
		"without the tag":        {good[:len(good)-tagSize], changed},
		"cut":                    {good[:len(good)-1], changed},
		"cut in the middle":      {good[:len(good)/2], changed},
		"one byte more":          {join(good, []byte{0}), changed},
		"twice":                  {join(good, good), changed},
		"too long":               {make([]byte, store.MaxObject+1<<10), "it has 8389632 bytes, more than 8388692"},
		"a newer version":        {flipped(good, 11, 3), "newer mcsh"},
		"another key id":         {flipped(good, 12, 1), `sealed with a key that this gateway does not have: add the key "nne" to the key file`},
		"what mcsh has not made": {[]byte(text(1000)), "it has no seal"},
	}
	for name, at := range map[string]int{"magic": 0, "key id behind its end": 30, "salt": 50, "data": headerSize, "last byte of data": len(good) - tagSize - 1, "tag": len(good) - 1} {
		changes["a flipped bit in "+name] = change{flipped(good, at, 1), ""}
	}
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			overwrite(t, dir, "a/object", c.to)
			got, err := get(t.Context(), s, "a/object")
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"a/object"`) {
				t.Errorf("read %d bytes, %v, want %q", len(got), err, c.want)
			}
			kept := name == "a newer version" || name == "another key id" || name == "a flipped bit in key id behind its end" // others may read them
			if errors.Is(err, store.ErrDamaged) == kept || errors.Is(err, store.ErrKey) != (kept && name != "a newer version") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	overwrite(t, dir, "a/empty", join(empty, []byte{0}))
	if got, err := get(t.Context(), s, "a/empty"); err == nil {
		t.Errorf("an extended empty object is %q", got)
	}
}

func flipped(data []byte, at int, bit byte) []byte {
	data = bytes.Clone(data)
	data[at] ^= bit
	return data
}

func file(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func overwrite(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	write(t, filepath.Join(dir, name), string(data))
}

// TestKeysOfOthers: a key file with another key under a known id is refused before it seals anything.
func TestKeysOfOthers(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	for _, c := range []struct{ keys, err string }{
		{line("2026-01", 'a'), ""},
		{line("2026-01", 'a'), ""},
		{line("2026-02", 'b') + line("2026-01", 'a'), ""},
		{line("2026-01", 'x'), `the key "2026-01" of the key file is not the one that sealed this store`},
		{line("2026-03", 'c') + line("2026-02", 'x'), `the key "2026-02" of the key file is not the one that sealed this store`},
	} {
		_, err := store.OpenSealed(t.Context(), d, readKeys(t, c.keys))
		if (err != nil) != (c.err != "") || !strings.Contains(fmt.Sprint(err), c.err) {
			t.Errorf("got %v, want %q", err, c.err)
		}
	}
}

// TestMovedObjects: an object is read under its own name only.
func TestMovedObjects(t *testing.T) {
	dir := t.TempDir()
	s := store.Seal(openDirectory(t, dir), readKeys(t, line("one", 'a')))
	for _, data := range []string{"", "short"} {
		mustPut(t, s, "alice/0", data)
		overwrite(t, dir, "bob", file(t, dir, "alice/0"))
		if got, err := get(t.Context(), s, "bob"); err == nil {
			t.Errorf("read %q under another name", got)
		}
		if err := s.Delete(t.Context(), "alice/0"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRotatedKeys(t *testing.T) {
	d := openDirectory(t, t.TempDir())
	old := store.Seal(d, readKeys(t, line("2026-01", 'a')))
	both := store.Seal(d, readKeys(t, "# the first seals\n\n"+line("2026-02", 'b')+line("2026-01", 'a')))
	fresh := store.Seal(d, readKeys(t, line("2026-02", 'b')))
	swapped := store.Seal(d, readKeys(t, line("2026-01", 'c')))
	mustPut(t, old, "old", "1")
	mustPut(t, both, "fresh", "2")
	for _, c := range []struct {
		store      store.Store
		name, want string
		err        string
	}{
		{both, "old", "1", ""},
		{both, "fresh", "2", ""},
		{fresh, "fresh", "2", ""},
		{fresh, "old", "", `sealed with a key that this gateway does not have: add the key "2026-01" to the key file`},
		{old, "fresh", "", `the key "2026-02"`},
		{swapped, "old", "", "somebody has changed it"},
	} {
		got, err := get(t.Context(), c.store, c.name)
		if got != c.want || fmt.Sprint(err) != "<nil>" != (c.err != "") || !strings.Contains(fmt.Sprint(err), c.err) {
			t.Errorf("%s: %q, %v, want %q, %q", c.name, got, err, c.want, c.err)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	secret := strings.TrimPrefix(strings.TrimSpace(line("", 's')), ":")
	for name, c := range map[string]struct{ text, want string }{
		"usual":         {"# comment\n\n one : " + secret + " \r\ntwo:" + strings.Repeat("A", 43) + "=\n", ""},
		"empty":         {"", "there is no key; each line is ID:KEY"},
		"only comments": {"# x\n", "there is no key"},
		"no id":         {secret, "line 1 is not"},
		"empty id":      {":" + secret, "line 1 is not"},
		"long id":       {strings.Repeat("i", 25) + ":" + secret, "line 1 is not"},
		"path as id":    {"a/b:" + secret, "line 1 is not"},
		"short key":     {line("one", 'a') + "two:" + secret[:40], "line 2 is not"},
		"more":          {"one:" + secret + secret, "line 1 is not"},
		"hexadecimal":   {"one:" + strings.Repeat("0f", 32), "line 1 is not"},
		"twice":         {line("one", 'a') + line("one", 'b'), "line 2 repeats the id one"},
	} {
		_, err := store.ReadKeys(keyFile(t, c.text))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), secret[:20]) {
			t.Errorf("%s: the error has the key: %v", name, err)
		}
	}
	open := keyFile(t, line("one", 'a'))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ReadKeys(open); err == nil || !strings.Contains(err.Error(), "everybody can use it (mode 0644)") {
		t.Errorf("a file for everybody: %v", err)
	}
	if _, err := store.ReadKeys(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	d := openDirectory(t, t.TempDir())
	if err := put(t.Context(), store.Seal(d, store.Keys{}), "a", "x"); err == nil {
		t.Error("an object is sealed without a key")
	}
}

// FuzzKeys: no text makes the parser fail in another way than with an error that hides the text.
func FuzzKeys(f *testing.F) {
	f.Add(line("one", 'a'))
	f.Add("# comment\none:x\n\x00:=\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := store.ParseKeys(text)
		if err != nil {
			return
		}
		s := store.Seal(openDirectory(t, t.TempDir()), keys)
		mustPut(t, s, "a", "data")
		if got, err := get(t.Context(), s, "a"); err != nil || got != "data" {
			t.Errorf("keys that were read do not open what they have sealed: %q, %v", got, err)
		}
	})
}

// oneObject is a store in which each name has the same object.
type oneObject struct {
	store.Store
	data []byte
}

func (o oneObject) Get(context.Context, string) ([]byte, error) { return bytes.Clone(o.data), nil }

// FuzzOpening: of what anybody puts into the place of a sealed object, nothing is read but the object.
func FuzzOpening(f *testing.F) {
	dir := f.TempDir()
	keys := readKeys(f, line("one", 'a'))
	s := store.Seal(openDirectory(f, dir), keys)
	objects := map[string]string{"empty": "", "short": text(10), "long": text(70_000)}
	for name, plain := range objects {
		if err := put(f.Context(), s, name, plain); err != nil {
			f.Fatal(err)
		}
		object, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(object, name)
	}
	f.Fuzz(func(t *testing.T, object []byte, name string) {
		got, err := get(t.Context(), store.Seal(oneObject{data: object}, keys), name)
		if want, there := objects[name]; err == nil && (!there || got != want) {
			t.Errorf("read %q", got)
		}
	})
}
