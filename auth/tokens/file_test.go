package tokens

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/auth"
)

// A followed is a file with what was said of it.
type followed struct {
	*File
	t       *testing.T
	path    string
	notices []string
	ended   []string
}

// follow opens a file and follows it, in a bubble of time.
func follow(t *testing.T, entries ...Entry) *followed {
	t.Helper()
	f := &followed{t: t, path: filepath.Join(t.TempDir(), "tokens")}
	f.write(entries...)
	var err error
	f.File, err = Open(f.path, Options{
		Notify: func(text string) { f.notices = append(f.notices, text) },
		Ended:  func(id string) { f.ended = append(f.ended, id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Follow(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

// write puts a file in place as a whole.
func (f *followed) write(entries ...Entry) {
	data := []byte(header)
	for _, e := range entries {
		data = Add(data, e)
	}
	f.put(string(data), 0o600)
}

func (f *followed) put(text string, mode os.FileMode) {
	f.t.Helper()
	draft := f.path + ".draft"
	if err := errors.Join(os.WriteFile(draft, []byte(text), mode), os.Chmod(draft, mode), os.Rename(draft, f.path)); err != nil {
		f.t.Fatal(err)
	}
}

// says checks whose a token is: nobody's, if empty.
func (f *followed) says(token, want string) {
	f.t.Helper()
	identity, err := f.Verify(f.t.Context(), token)
	if identity.Name != want || (err == nil) != (want != "") {
		f.t.Errorf("got %+v, %v, want %q", identity, err, want)
	}
}

func made(t *testing.T, name string, expires time.Time) (string, Entry) {
	t.Helper()
	token, e, err := New(name, expires)
	if err != nil {
		t.Fatal(err)
	}
	return token, e
}

// TestFollow: what goes from the file is refused with the next call, and its caller ends; what comes is taken.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alices, alice := made(t, "alice", time.Time{})
		bobs, bob := made(t, "bob", time.Time{})
		f := follow(t, alice)
		f.says(alices, "alice")
		f.says(bobs, "")
		f.write(alice, bob)
		f.says(bobs, "bob")
		f.write(bob)
		f.says(alices, "")
		synctest.Wait()
		if !slices.Equal(f.ended, []string{"token alice"}) {
			t.Errorf("ended are %q", f.ended)
		}
		f.write()
		time.Sleep(2 * pause) // where nobody calls
		synctest.Wait()
		if !slices.Equal(f.ended, []string{"token alice", "token bob"}) || len(f.notices) > 0 {
			t.Errorf("ended are %q, notices %q", f.ended, f.notices)
		}
	})
}

// TestBriefly: a token that one reading brings and the next one has lost ends too, if no report came between them.
func TestBriefly(t *testing.T) {
	_, alice := made(t, "alice", time.Time{})
	bobs, bob := made(t, "bob", time.Time{})
	f := &followed{t: t, path: filepath.Join(t.TempDir(), "tokens")}
	f.write(alice)
	var err error
	if f.File, err = Open(f.path, Options{}); err != nil {
		t.Fatal(err)
	}
	f.write(alice, bob)
	f.says(bobs, "bob")
	f.write(alice)
	f.says(bobs, "")
	for _, want := range [][]string{{"token bob"}, nil} {
		if got := f.endings(time.Now()); !slices.Equal(got, want) {
			t.Errorf("ended are %q, want %q", got, want)
		}
	}
}

// TestBroken: a file that is wrong, gone or writable for others leaves the one before in use, which is said once.
func TestBroken(t *testing.T) {
	for _, test := range []struct {
		name, want string
		do         func(f *followed)
	}{
		{"a wrong line", "line 1: it has 1 words", func(f *followed) { f.put("alice\n", 0o600) }},
		{"nothing in it", "it is empty", func(f *followed) { f.put("", 0o600) }},
		{"gone", "no such file", func(f *followed) { os.Remove(f.path) }},
		{"a directory", "is a directory", func(f *followed) { os.Remove(f.path); os.Mkdir(f.path, 0o700) }},
		{"a pipe", "it is a pipe and no regular file", func(f *followed) { os.Remove(f.path); syscall.Mkfifo(f.path, 0o600) }},
		{"others may write it", "others may write it (mode 0620)", func(f *followed) { f.put(header, 0o620) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				token, alice := made(t, "alice", time.Time{})
				f := follow(t, alice)
				test.do(f)
				f.says(token, "alice")
				time.Sleep(5 * pause)
				synctest.Wait()
				if len(f.notices) != 1 || !strings.Contains(f.notices[0], test.want) || !strings.Contains(f.notices[0], "before are in use") || len(f.ended) > 0 {
					t.Errorf("notices %q, ended %q", f.notices, f.ended)
				}
				os.RemoveAll(f.path)
				f.write()
				f.says(token, "")
				time.Sleep(2 * pause)
				synctest.Wait()
				if last := f.notices[len(f.notices)-1]; !strings.Contains(last, "right again") || !slices.Equal(f.ended, []string{"token alice"}) {
					t.Errorf("notices %q, ended %q", last, f.ended)
				}
			})
		})
	}
}

// TestExpires: a token ends at its time, and with it the access of its caller.
func TestExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, alice := made(t, "alice", time.Now().Add(time.Hour))
		other, later := made(t, "bob", time.Time{})
		f := follow(t, alice, later)
		time.Sleep(time.Hour - pause)
		f.says(token, "alice")
		time.Sleep(3 * pause)
		synctest.Wait()
		_, err := f.Verify(t.Context(), token)
		refusal, ok := errors.AsType[*auth.Refusal](err)
		if !ok || refusal.Status != 401 || !strings.Contains(refusal.Text, "the token of alice ran out at ") {
			t.Errorf("got %v", err)
		}
		f.says(other, "bob")
		if !slices.Equal(f.ended, []string{"token alice"}) {
			t.Errorf("ended are %q", f.ended)
		}
		later.Expires = time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		f.write(alice, later)
		f.says(other, "bob")
		synctest.Wait()
		if len(f.ended) != 1 {
			t.Errorf("an end that has not come has ended %q", f.ended)
		}
	})
}

// TestExpiredAndRemoved: who takes away a token that has just run out does not leave its caller in.
func TestExpiredAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, alice := made(t, "alice", time.Now().Add(time.Hour))
		_, bob := made(t, "bob", time.Time{})
		time.Sleep(pause / 2)
		f := follow(t, alice, bob)
		time.Sleep(time.Until(alice.Expires) + pause/10) // before the next look at the file
		f.write(bob)
		f.says("anything", "")
		time.Sleep(3 * pause)
		synctest.Wait()
		if !slices.Equal(f.ended, []string{"token alice"}) {
			t.Errorf("ended are %q", f.ended)
		}
	})
}

// TestOpen: a first file must be right; that others may read it is said.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(Hint(err), "mcsh token new") {
		t.Errorf("of no file: %v", err)
	}
	_, e := made(t, "alice", time.Time{})
	var notices []string
	for mode, want := range map[os.FileMode]string{0o600: "", 0o640: "", 0o644: "everybody on this machine may read it", 0o666: "others may write it", 0o660: "others may write it"} {
		if err := errors.Join(os.WriteFile(path, Add(nil, e), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		notices = nil
		_, err := Open(path, Options{Notify: func(text string) { notices = append(notices, text) }})
		said := strings.Join(notices, "")
		if err != nil {
			said = err.Error()
		}
		if (want == "") != (said == "") || !strings.Contains(said, want) || (err != nil) != (mode&0o022 != 0) {
			t.Errorf("mode %o: notices %q, %v", mode, notices, err)
		}
	}
}

// TestGroups: a caller has the groups of the latest reading, and what it began with others ends, even when the groups of others
// limit it. A file that has had groups limits all callers, even when no line has groups any more.
func TestGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, alice := made(t, "alice", time.Time{})
		_, bob := made(t, "bob", time.Time{})
		f := follow(t, alice, bob)
		for _, test := range []struct {
			groups  string
			want    []string
			all     bool
			limited bool // callers without groups
			ended   int
		}{
			{"", nil, false, false, 0},
			{"dev,ops", []string{"dev", "ops"}, false, true, 2},
			{"dev,ops", []string{"dev", "ops"}, false, true, 0},
			{"*", nil, true, true, 1},
			{"", nil, false, true, 1},
		} {
			f.ended = nil
			alice.Groups = test.groups
			f.write(alice, bob)
			identity, err := f.Verify(t.Context(), token)
			if err != nil || !slices.Equal(identity.Groups, test.want) || identity.All != test.all || f.Grouped() != test.limited {
				t.Errorf("%q: got %+v, %v, limited %v", test.groups, identity, err, f.Grouped())
			}
			time.Sleep(2 * pause)
			synctest.Wait()
			if len(f.ended) != test.ended {
				t.Errorf("%q: ended are %q, want %d", test.groups, f.ended, test.ended)
			}
		}
	})
}
