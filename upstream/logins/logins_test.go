package logins_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// ring is a keyring in memory.
type ring struct {
	mu      sync.Mutex
	secrets map[string]string // guarded by mu; nil: the keyring fails
}

func newRing() *ring { return &ring{secrets: map[string]string{}} }

func (r *ring) Get(name string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secrets == nil {
		return "", errors.New("the keyring is broken")
	}
	return r.secrets[name], nil
}

func (r *ring) Set(name, secret string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secrets == nil {
		return errors.New("the keyring is broken")
	}
	r.secrets[name] = secret
	return nil
}

func (r *ring) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.secrets)
}

func open(t *testing.T, dir string, o logins.Options) *logins.Store {
	t.Helper()
	s, err := logins.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func login(server, token string) logins.Login {
	return logins.Login{
		Key: logins.Key{Server: server, Resource: "https://" + server + ".example/mcp", Issuer: "https://issuer.example"}, Account: "alice",
		Scopes: []string{"read"}, Made: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), AccessToken: "access-" + token, RefreshToken: token,
		Client: logins.Client{ID: "client"}, TokenEndpoint: "https://issuer.example/token",
	}
}

func put(t *testing.T, s *logins.Store, list ...logins.Login) {
	t.Helper()
	for _, l := range list {
		if err := s.Put(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

func keyFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const rawKey = "0123456789abcdef0123456789ABCDEF"

// TestStore keeps, replaces, lists and deletes logins with each kind of seal. A second store of the directory sees each change.
func TestStore(t *testing.T) {
	shared := newRing()
	for name, test := range map[string]struct {
		o      logins.Options
		sealed bool
		place  string
	}{
		"keyring":        {logins.Options{Keyring: shared}, true, "key in the keyring"},
		"key file":       {logins.Options{KeyFile: keyFile(t, rawKey), Keyring: shared}, true, "key file"},
		"base64":         {logins.Options{KeyFile: keyFile(t, base64.StdEncoding.EncodeToString([]byte(rawKey))+"\n")}, true, "key file"},
		"no keyring":     {logins.Options{}, false, "not sealed"},
		"broken keyring": {logins.Options{Keyring: &ring{}}, false, "not sealed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state", "logins")
			a, b := open(t, dir, test.o), open(t, dir, test.o)
			if list, err := b.All(); err != nil || len(list) != 0 {
				t.Fatalf("without a file there are %v, %v", list, err)
			}
			other := login("one", "x")
			other.Issuer = "https://other.example"
			put(t, a, login("two", "b"), login("one", "a"), other)
			check := func(want ...logins.Login) {
				t.Helper()
				if got, err := b.All(); err != nil || cmp.Diff(want, got) != "" {
					t.Fatalf("%v\n%s", err, cmp.Diff(want, got))
				}
			}
			check(login("one", "a"), other, login("two", "b"))
			for resource, n := range map[string]int{"https://one.example/mcp": 2, "": 2, "https://two.example/mcp": 0} {
				if got, err := b.Of("one", resource); err != nil || len(got) != n {
					t.Errorf("of one server with the resource %q there are %v, %v", resource, got, err)
				}
			}
			put(t, a, login("one", "c"))
			check(login("one", "c"), other, login("two", "b"))
			if gone, err := a.Delete(t.Context(), other.Key); err != nil || cmp.Diff(other, gone) != "" {
				t.Errorf("deleted: %v, %v", gone, err)
			}
			if _, err := b.Delete(t.Context(), other.Key); !errors.Is(err, logins.ErrNone) {
				t.Errorf("deleted twice: %v", err)
			}
			check(login("one", "c"), login("two", "b"))
			place, sealed, err := b.Place()
			if err != nil || sealed != test.sealed || !strings.Contains(place, test.place) {
				t.Errorf("the place is %q, sealed %v, %v", place, sealed, err)
			}
			checkFiles(t, dir, test.sealed)
		})
	}
}

// checkFiles checks that files are private, and hold tokens only where they are not sealed.
func checkFiles(t *testing.T, dir string, sealed bool) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "logins"))
	if err != nil || bytes.Contains(data, []byte("access-c")) == sealed {
		t.Errorf("sealed %v, and the file is %q, %v", sealed, data, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %v, %v", info.Mode(), err)
	}
}

// TestMove: a file without a seal gets that of a key file with the next change, and one of a keyring when nothing is in it.
func TestMove(t *testing.T) {
	dir, k := filepath.Join(t.TempDir(), "logins"), newRing()
	put(t, open(t, dir, logins.Options{}), login("one", "a"))
	s := open(t, dir, logins.Options{Keyring: k})
	put(t, s, login("one", "b"))
	if _, sealed, err := s.Place(); sealed || err != nil {
		t.Errorf("a file that others read without the keyring is sealed with it, %v", err)
	}
	if _, err := s.Delete(t.Context(), login("one", "b").Key); err != nil {
		t.Fatal(err)
	}
	put(t, s, login("one", "c"))
	if _, sealed, err := s.Place(); !sealed || err != nil {
		t.Errorf("the first login after all were gone is not sealed, %v", err)
	}
	o := logins.Options{Keyring: k, KeyFile: keyFile(t, rawKey)}
	put(t, open(t, dir, o), login("two", "d"))
	if _, err := s.All(); err == nil || !strings.Contains(err.Error(), "--token-key-file") {
		t.Errorf("without the key file: %v", err)
	}
	if list, err := open(t, dir, logins.Options{KeyFile: o.KeyFile}).All(); err != nil || len(list) != 2 {
		t.Errorf("with the key file alone: %v, %v", list, err)
	}
}

// TestUnusable: a file or directory that cannot be trusted or read is an error that says what to do, and stays as it is.
func TestUnusable(t *testing.T) {
	swap := func(old, new string) func(string) error {
		return func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(data, []byte(old)) {
				return errors.Join(err, errors.New("nothing to change"))
			}
			return os.WriteFile(path, bytes.Replace(data, []byte(old), []byte(new), 1), 0o600)
		}
	}
	last := func(path string) error {
		data, err := os.ReadFile(path)
		data[len(data)-1] ^= 1
		return errors.Join(err, os.WriteFile(path, data, 0o600))
	}
	again := func(make func(path string) error) func(string) error {
		return func(path string) error { return errors.Join(os.Remove(path), make(path)) }
	}
	text := func(content string) func(string) error {
		return again(func(path string) error { return os.WriteFile(path, []byte(content), 0o600) })
	}
	for name, test := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"a bit":               {last, "damaged or changed"},
		"another kind":        {swap(" key-file ", " keyring "), "its key is no longer in the keyring"},
		"no seal":             {swap(" key-file ", " plain "), "its logins cannot be read"},
		"another entry":       {swap(" - ", " x "), "damaged or changed"},
		"another version":     {swap("mcsh-logins-1", "mcsh-logins-2"), "another version of this program"},
		"another fingerprint": {swap(" - ", " - 0"), "another key"},
		"half a line":         {text("mcsh-logins-1 key-file - abc"), "damaged"},
		"half":                {func(path string) error { return os.Truncate(path, 80) }, "damaged or changed"},
		"nothing after":       {func(path string) error { return os.Truncate(path, 42) }, "damaged"},
		"empty":               {text(""), "damaged"},
		"another file":        {text("{}\n"), "not a file of logins"},
		"no order":            {text("mcsh-logins-1 plain - -\n[" + `{"server":"a","resource":"b","issuer":"c","accessToken":"d"},{"server":"a","resource":"b","issuer":"c","accessToken":"d"}]`), "not in order"},
		"a login of another":  {text(`mcsh-logins-1 plain - -` + "\n" + `[{"new":1}]`), "another version"},
		"no server":           {text(`mcsh-logins-1 plain - -` + "\n" + `[{}]`), "has no server"},
		"more":                {text(`mcsh-logins-1 plain - -` + "\n" + `[] []`), "something follows"},
		"5 MiB":               {func(path string) error { return os.Truncate(path, 5<<20) }, "larger than 4 MiB"},
		"readable":            {func(path string) error { return os.Chmod(path, 0o640) }, "chmod go="},
		"open directory":      {func(path string) error { return os.Chmod(filepath.Dir(path), 0o755) }, "chmod go="},
		"a link":              {func(path string) error { return errors.Join(os.Rename(path, path+".x"), os.Symlink("logins.x", path)) }, "is a link"},
		"a pipe":              {again(func(path string) error { return syscall.Mkfifo(path, 0o600) }), "not a regular file"},
		"a directory":         {again(func(path string) error { return os.Mkdir(path, 0o700) }), "not a regular file"},
		"another user":        {func(path string) error { return os.Chown(path, 12345, -1) }, "belongs to another user"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another user" && os.Getuid() != 0 {
				t.Skip("only root can give a file to another user")
			}
			dir := filepath.Join(t.TempDir(), "logins")
			path, o := filepath.Join(dir, "logins"), logins.Options{KeyFile: keyFile(t, rawKey), Keyring: newRing()}
			put(t, open(t, dir, o), login("one", "a"))
			if err := test.spoil(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(pathIfFile(path))
			s, err := logins.Open(dir, o)
			if err == nil {
				defer s.Close()
				if _, err = s.All(); err == nil {
					t.Fatal("it is read")
				}
				if put := s.Put(t.Context(), login("two", "b")); put == nil || put.Error() != err.Error() {
					t.Errorf("a change: %v", put)
				}
				if _, err := s.Of("one", ""); err == nil {
					t.Error("it is read")
				}
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "access-a") {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), "remove") && !strings.Contains(err.Error(), "chmod") {
				t.Errorf("%v names no remedy", err)
			}
			if after, _ := os.ReadFile(pathIfFile(path)); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// pathIfFile returns nothing for what a read would hang on.
func pathIfFile(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// TestNoDirectory: a directory that cannot be used is an error of the methods, and not of Open.
func TestNoDirectory(t *testing.T) {
	file := keyFile(t, rawKey)
	shared := filepath.Join(t.TempDir(), "logins")
	if err := errors.Join(os.Mkdir(shared, 0o700), os.Chmod(shared, 0o770)); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{filepath.Join(file, "mcsh", "logins"): "not a directory", shared: "chmod go="} {
		s := open(t, dir, logins.Options{})
		_, of := s.Of("one", "")
		_, _, place := s.Place()
		for name, err := range map[string]error{"Of": of, "Place": place, "Put": s.Put(t.Context(), login("one", "a")), "Writable": s.Writable(t.Context()), "Usable": s.Usable()} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// TestLostKey: without its key a file is neither read nor replaced.
func TestLostKey(t *testing.T) {
	dir, k := filepath.Join(t.TempDir(), "logins"), newRing()
	put(t, open(t, dir, logins.Options{Keyring: k}), login("one", "a"))
	before, err := os.ReadFile(filepath.Join(dir, "logins"))
	if err != nil {
		t.Fatal(err)
	}
	k.lose()
	for name, test := range map[string]struct {
		o    logins.Options
		want string
	}{
		"lost":     {logins.Options{Keyring: k}, "its key is no longer in the keyring: restore the keyring, or remove the file and sign in again"},
		"broken":   {logins.Options{Keyring: &ring{}}, "unlock the keyring"},
		"none":     {logins.Options{}, "there is no keyring"},
		"key file": {logins.Options{Keyring: k, KeyFile: keyFile(t, rawKey)}, "its key is no longer in the keyring"},
	} {
		s := open(t, dir, test.o)
		if err := s.Put(t.Context(), login("one", "b")); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
		if after, err := os.ReadFile(filepath.Join(dir, "logins")); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the file was changed, %v", name, err)
		}
	}
}

// TestEmpty: a file without logins needs no key, and the next login is sealed again.
func TestEmpty(t *testing.T) {
	dir, k := filepath.Join(t.TempDir(), "logins"), newRing()
	for _, o := range []logins.Options{{Keyring: k}, {KeyFile: keyFile(t, rawKey)}} {
		s := open(t, dir, o)
		put(t, s, login("one", "a"))
		if _, sealed, err := s.Place(); err != nil || !sealed {
			t.Errorf("it is not sealed, %v", err)
		}
		if _, err := s.Delete(t.Context(), login("one", "a").Key); err != nil {
			t.Fatal(err)
		}
		k.lose()
		if list, err := open(t, dir, logins.Options{}).All(); err != nil || len(list) > 0 {
			t.Errorf("without the key: %v, %v", list, err)
		}
	}
}

// TestKeyFiles: a key file that is none is an error at the start.
func TestKeyFiles(t *testing.T) {
	for name, test := range map[string]struct {
		path string
		mode os.FileMode
		want string
	}{
		"missing":  {filepath.Join(t.TempDir(), "none"), 0, "head -c 32 /dev/urandom"},
		"short":    {keyFile(t, rawKey[1:]), 0o600, "neither 32 bytes nor"},
		"long":     {keyFile(t, rawKey+"x"), 0o600, "neither 32 bytes nor"},
		"readable": {keyFile(t, rawKey), 0o604, "everybody can use it"},
		"group":    {keyFile(t, rawKey), 0o640, ""},
	} {
		if test.mode != 0 {
			if err := os.Chmod(test.path, test.mode); err != nil {
				t.Fatal(err)
			}
		}
		s, err := logins.Open(filepath.Join(t.TempDir(), "logins"), logins.Options{KeyFile: test.path})
		if err == nil {
			s.Close()
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// TestBounds: a login that is too large or incomplete is refused, and so are too many.
func TestBounds(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "logins"), logins.Options{})
	for want, change := range map[string]func(*logins.Login){
		"the access token of a login has more than 64 KiB": func(l *logins.Login) { l.AccessToken = strings.Repeat("x", 64<<10+1) },
		"the account of a login has more than 8 KiB":       func(l *logins.Login) { l.Account = strings.Repeat("x", 8<<10+1) },
		"a login has 201 scopes":                           func(l *logins.Login) { l.Scopes = make([]string, 201) },
		"a scope of a login has more than 256 bytes":       func(l *logins.Login) { l.Scopes = []string{strings.Repeat("x", 257)} },
		"a login has no issuer":                            func(l *logins.Login) { l.Issuer = "" },
		"a login has no access token":                      func(l *logins.Login) { l.AccessToken = "" },
	} {
		l := login("one", "a")
		change(&l)
		if err := s.Put(t.Context(), l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	most := login("one", "a")
	most.Scopes = slices.Repeat([]string{strings.Repeat("x", 256)}, 200)
	put(t, s, most)
	// 21 of these logins fit.
	large := func(server string) logins.Login {
		l := login(server, "a")
		l.AccessToken, l.RefreshToken, l.Client.Secret = strings.Repeat("x", 64<<10), strings.Repeat("y", 64<<10), strings.Repeat("z", 64<<10)
		return l
	}
	var list []logins.Login
	for i := range 21 {
		list = append(list, large(fmt.Sprintf("server%02d", i)))
	}
	file, err := logins.WriteContent("plain", nil, list)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "logins")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "logins"), file, 0o600)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, logins.Options{})
	if err := s.Put(t.Context(), large("one")); err == nil || !strings.Contains(err.Error(), "do not fit into 4 MiB") {
		t.Errorf("one more large login: %v", err)
	}
	if list, err := s.All(); err != nil || len(list) != 21 {
		t.Errorf("after that there are %d, %v", len(list), err)
	}
}

// hanging is a keyring that does not answer until the end of the test, and counts the questions.
type hanging struct {
	end chan struct{}

	mu    sync.Mutex
	asked int // guarded by mu
}

func (h *hanging) Get(string) (string, error) { return "", h.hang() }

func (h *hanging) Set(string, string) error { return h.hang() }

func (h *hanging) hang() error {
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	<-h.end
	return nil
}

// TestKeyringHangs: a keyring has 2 s for its answer, and is asked once at a time. The clock is that of the bubble.
func TestKeyringHangs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logins")
	k := newRing()
	put(t, open(t, dir, logins.Options{Keyring: k}), login("one", "a"))
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{end: make(chan struct{})}
		defer close(h.end)
		s, err := logins.Open(dir, logins.Options{Keyring: h})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i, want := range []time.Duration{2 * time.Second, 0, 0} {
			begun := time.Now()
			if _, err := s.All(); err == nil || !strings.Contains(err.Error(), "no answer within 2s") {
				t.Errorf("call %d: %v", i, err)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("call %d took %s, want %s", i, took, want)
			}
		}
		time.Sleep(time.Minute) // then it is asked again, but for the call that still hangs
		if _, err := s.All(); err == nil || !strings.Contains(err.Error(), "no answer within 2s") {
			t.Errorf("a minute later: %v", err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.asked != 1 {
			t.Errorf("the keyring was asked %d times at once", h.asked)
		}
	})
}

// FuzzFile: no file makes the reader panic, and what is read is read again when it is written.
func FuzzFile(f *testing.F) {
	for _, kind := range []string{"plain", "key-file"} {
		key := []byte(rawKey)
		if kind == "plain" {
			key = nil
		}
		file, err := logins.WriteContent(kind, key, []logins.Login{login("one", "a"), login("two", "b")})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
		f.Add(file[:len(file)-1])
	}
	f.Add([]byte("mcsh-logins-1 plain - -\n[]"))
	f.Add([]byte("mcsh-logins-1 plain - -\nnull"))
	f.Add([]byte("mcsh-logins-1 keyring x\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		list, err := logins.ReadContent(file, []byte(rawKey))
		if err != nil {
			return
		}
		again, err := logins.WriteContent("plain", nil, list)
		if err != nil {
			return // its year has five digits, for one
		}
		if back, err := logins.ReadContent(again, nil); err != nil || len(back) != len(list) {
			t.Fatalf("%q is written as %q: %v", file, again, err)
		}
	})
}
