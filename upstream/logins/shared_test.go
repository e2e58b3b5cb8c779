package logins_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

func openShared(t testing.TB, objects store.Store) *logins.Store {
	t.Helper()
	s := logins.OpenShared(objects, "s3://bucket/prefix")
	t.Cleanup(func() { s.Close() })
	return s
}

// onPlaces runs a test for each place of logins. Its function opens the place again, as another process.
func onPlaces(t *testing.T, test func(t *testing.T, again func() *logins.Store)) {
	t.Run("file", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logins")
		test(t, func() *logins.Store { return open(t, dir, logins.Options{}) })
	})
	onStores(t, func(t *testing.T, objects store.Store) {
		test(t, func() *logins.Store { return openShared(t, objects) })
	})
}

// onStores runs a test for each store that gateways share.
func onStores(t *testing.T, test func(t *testing.T, objects store.Store)) {
	t.Run("directory", func(t *testing.T) { test(t, storetest.Directory(t)) })
	t.Run("S3", func(t *testing.T) {
		s3, err := store.OpenS3(t.Context(), storetest.S3(t))
		if err != nil {
			t.Fatal(err)
		}
		test(t, s3)
	})
}

// A gate is a store in whose way a test stands.
type gate struct {
	store.Store
	lists atomic.Int64
	down  atomic.Bool  // it fails
	hangs atomic.Bool  // it lists nothing
	empty atomic.Int64 // lists that leave out all

	put func(name string, write func() error) error // nil: it writes
}

var errDown = errors.New("the store is down")

func (g *gate) Put(ctx context.Context, name string, data []byte) error {
	write := func() error { return g.Store.Put(ctx, name, data) }
	switch {
	case g.down.Load():
		return errDown
	case g.put != nil:
		return g.put(name, write)
	}
	return write()
}

func (g *gate) Get(ctx context.Context, name string) ([]byte, error) {
	if g.down.Load() {
		return nil, errDown
	}
	return g.Store.Get(ctx, name)
}

func (g *gate) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	g.lists.Add(1)
	switch {
	case g.down.Load():
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, errDown) }
	case g.empty.Add(-1) >= 0:
		return func(func(store.Object, error) bool) {}
	case g.hangs.Load():
		return func(yield func(store.Object, error) bool) {
			<-ctx.Done()
			yield(store.Object{}, context.Cause(ctx))
		}
	}
	return g.Store.List(ctx, prefix)
}

// first makes f run at the first object that is written in a folder of logins.
func (g *gate) first(folder string, f func(write func() error) error) {
	var done atomic.Bool
	g.put = func(name string, write func() error) error {
		if strings.HasPrefix(name, "logins/"+folder) && done.CompareAndSwap(false, true) {
			return f(write)
		}
		return write()
	}
}

// objectsOf returns the names of all objects of logins.
func objectsOf(t *testing.T, s store.Store) (list []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), "logins/") {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o.Name)
	}
	return list
}

// tokens returns the access tokens that a store has, in the order of their servers.
func tokens(t *testing.T, s *logins.Store) string {
	t.Helper()
	list, err := s.All()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, l := range list {
		found = append(found, l.AccessToken)
	}
	return strings.Join(found, " ")
}

// asks counts the questions to an issuer whose answer is a fresh login.
type asks struct{ n atomic.Int64 }

func (a *asks) refresh(_ context.Context, l logins.Login) (logins.Login, error) {
	a.n.Add(1)
	l.AccessToken, l.RefreshToken = "fresh", "next"
	return l, nil
}

func (a *asks) check(t *testing.T, want int64) {
	t.Helper()
	if n := a.n.Load(); n != want {
		t.Errorf("the issuer was asked %d times, want %d", n, want)
	}
}

// TestListsThatMiss: a list of a directory leaves out a version that others delete while it is made, also where they have written the
// next one behind it. The sign-ins are there all the same; once they are really gone, nobody has signed in.
func TestListsThatMiss(t *testing.T) {
	objects := &gate{Store: storetest.Directory(t)}
	known := openShared(t, objects)
	put(t, known, login("a", "stale"))
	for name, s := range map[string]*logins.Store{"one that knows them": known, "a new one": openShared(t, objects)} {
		objects.empty.Store(2)
		var it asks
		if l, err := s.Refresh(t.Context(), login("a", "").Key, "access-none", it.refresh); err != nil || l.AccessToken == "" {
			t.Errorf("%s: %q, %v", name, l.AccessToken, err)
		}
	}
	for _, name := range objectsOf(t, objects.Store) {
		if err := objects.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	var it asks
	if _, err := known.Refresh(t.Context(), login("a", "").Key, "access-none", it.refresh); err == nil || !strings.Contains(err.Error(), "nobody has signed in") {
		t.Errorf("without objects: %v", err)
	}
}

// TestGateways: two gateways share what they change at the same time, ask the issuer once, and leave two versions and no claim.
func TestGateways(t *testing.T) {
	onPlaces(t, func(t *testing.T, again func() *logins.Store) {
		gateways := []*logins.Store{again(), again()}
		put(t, gateways[0], login("a", "stale"))
		var all sync.WaitGroup
		var it asks
		for i := range 20 {
			all.Go(func() {
				l, err := gateways[i%2].Refresh(t.Context(), login("a", "").Key, "access-stale", it.refresh)
				if err != nil || l.AccessToken != "fresh" {
					t.Errorf("refresh %d: %q, %v", i, l.AccessToken, err)
				}
			})
		}
		want := "fresh"
		for i := range 8 {
			all.Go(func() {
				if err := gateways[i%2].Put(t.Context(), login(fmt.Sprint("b", i), "x")); err != nil {
					t.Error(err)
				}
			})
			want += " access-x"
		}
		all.Wait()
		it.check(t, 1)
		for i, s := range gateways {
			if got := tokens(t, s); got != want {
				t.Errorf("gateway %d has %q, want %q", i, got, want)
			}
		}
		place, _, err := gateways[1].Place()
		if err != nil || place == "" {
			t.Errorf("the place is %q, %v", place, err)
		}
	})
}

// TestObjects: of many changes two versions and no claims stay, and no token is in a name.
func TestObjects(t *testing.T) {
	onStores(t, func(t *testing.T, objects store.Store) {
		s, other := openShared(t, objects), openShared(t, objects)
		var it asks
		for i := range 5 {
			put(t, s, login("one", fmt.Sprint("r", i)))
			if _, err := other.Refresh(t.Context(), login("one", "").Key, fmt.Sprint("access-r", i), it.refresh); err != nil {
				t.Fatal(err)
			}
		}
		it.check(t, 5)
		if list := objectsOf(t, objects); len(list) != 2 || list[1] != "logins/list/000000000015" {
			t.Errorf("there are %q", list)
		}
		if _, err := s.Delete(t.Context(), login("one", "").Key); err != nil {
			t.Fatal(err)
		}
		if got := tokens(t, other); got != "" {
			t.Errorf("after a sign-out there are %q", got)
		}
		if place, sealed, err := s.Place(); err != nil || !sealed || place != "the shared store s3://bucket/prefix, sealed with its key file" {
			t.Errorf("the place is %q, %v, %v", place, sealed, err)
		}
	})
}

// TestDeleteWaits: a sign-out waits for the refresh of another gateway, and returns the last tokens.
func TestDeleteWaits(t *testing.T) {
	onPlaces(t, func(t *testing.T, again func() *logins.Store) {
		s, other := again(), again()
		put(t, s, login("one", "a"))
		var it asks
		asked, goOn := make(chan struct{}), make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			_, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", func(ctx context.Context, l logins.Login) (logins.Login, error) {
				close(asked)
				<-goOn
				return it.refresh(ctx, l)
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-asked
		both.Go(func() {
			if gone, err := other.Delete(t.Context(), login("one", "").Key); err != nil || gone.RefreshToken != "next" {
				t.Errorf("deleted is %q, %v", gone.RefreshToken, err)
			}
		})
		close(goOn)
		both.Wait()
		if got := tokens(t, s); got != "" {
			t.Errorf("there are %q", got)
		}
	})
}

// inBubble runs a test with a login of two gateways, the first with a gate before its store, and the clock of a bubble.
func inBubble(t *testing.T, test func(t *testing.T, s, other *logins.Store, g *gate)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Store: storetest.Directory(t)}
		s, other := openShared(t, g), openShared(t, g.Store)
		put(t, other, login("one", "a"))
		test(t, s, other, g)
	})
}

// TestHolderDies: a gateway that dies with its claim keeps others from refreshing for two minutes.
func TestHolderDies(t *testing.T) {
	inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
		var it asks
		g.first("refresh/", func(write func() error) error {
			g.down.Store(true)
			return write()
		})
		if _, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", it.refresh); !errors.Is(err, errDown) {
			t.Errorf("the one that dies: %v", err)
		}
		begun := time.Now()
		if l, err := other.Refresh(t.Context(), login("one", "").Key, "access-a", it.refresh); err != nil || l.AccessToken != "fresh" {
			t.Errorf("the other one: %q, %v", l.AccessToken, err)
		}
		if took := time.Since(begun); took < 2*time.Minute || took > 2*time.Minute+2*time.Second {
			t.Errorf("it has waited for %s", took)
		}
		it.check(t, 1)
		if list := objectsOf(t, g.Store); len(list) != 2 {
			t.Errorf("left are %q", list)
		}
	})
}

// TestIssuerFails: when the question of one gateway fails, another one asks at once.
func TestIssuerFails(t *testing.T) {
	inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
		var it asks
		key, failure := login("one", "").Key, errors.New("the issuer is down")
		var both sync.WaitGroup
		for range 3 { // each claim follows the end of the one before
			both.Go(func() {
				_, err := s.Refresh(t.Context(), key, "access-a", func(context.Context, logins.Login) (logins.Login, error) {
					time.Sleep(30 * time.Second)
					return logins.Login{}, failure
				})
				if !errors.Is(err, failure) {
					t.Error(err)
				}
			})
			time.Sleep(10 * time.Second)
			begun := time.Now()
			if _, err := other.Refresh(t.Context(), key, "access-a", func(context.Context, logins.Login) (logins.Login, error) {
				return logins.Login{}, failure
			}); !errors.Is(err, failure) || time.Since(begun) > 22*time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
			both.Wait()
		}
		if list := objectsOf(t, g.Store); len(list) != 4 {
			t.Errorf("there are two versions, the last claim and its end, and %q", list)
		}
		if l, err := s.Refresh(t.Context(), key, "access-a", it.refresh); err != nil || l.AccessToken != "fresh" {
			t.Errorf("got %q, %v", l.AccessToken, err)
		}
		if list := objectsOf(t, g.Store); len(list) != 2 {
			t.Errorf("left are %q", list)
		}
	})
}

// TestClaimed: nobody is asked if the login changes just when it is claimed, or if the claim took so long that others may have it.
func TestClaimed(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(t *testing.T, other *logins.Store)
		want      string // the token; empty: an error
		err       string
	}{
		"signed in": {func(t *testing.T, other *logins.Store) { put(t, other, login("one", "again")) }, "access-again", ""},
		"signed out": {func(t *testing.T, other *logins.Store) {
			if _, err := other.Delete(t.Context(), login("one", "").Key); err != nil {
				t.Error(err)
			}
		}, "", "nobody has signed in"},
		"slow":         {func(*testing.T, *logins.Store) { time.Sleep(11 * time.Second) }, "", "the store has not answered for 10s"},
		"nearly so":    {func(*testing.T, *logins.Store) { time.Sleep(9 * time.Second) }, "fresh", ""},
		"other tokens": {func(t *testing.T, other *logins.Store) { put(t, other, refreshed("access-a", "b")) }, "access-a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
				var it asks
				g.first("refresh/", func(write func() error) error {
					test.meanwhile(t, other)
					return write()
				})
				l, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", it.refresh)
				if l.AccessToken != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %q, %v", l.AccessToken, err)
				}
				if test.want != "fresh" {
					it.check(t, 0)
				}
			})
		})
	}
}

func refreshed(access, refresh string) logins.Login {
	l := login("one", refresh)
	l.AccessToken = access
	return l
}

// TestLate: a claim that is older than 10 s asks nobody, and others go on at once.
func TestLate(t *testing.T) {
	inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
		var it asks
		g.first("list/", func(write func() error) error {
			err := write()
			time.Sleep(11 * time.Second)
			return err
		})
		if _, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", it.refresh); err == nil || !strings.Contains(err.Error(), "so slow") {
			t.Errorf("got %v", err)
		}
		it.check(t, 0)
		begun := time.Now()
		if _, err := other.Refresh(t.Context(), login("one", "").Key, "access-a", it.refresh); err != nil || time.Since(begun) > time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		it.check(t, 1)
	})
}

// TestLateClaim: a claim whose number others have used and deleted meanwhile counts for nothing while one of theirs does.
func TestLateClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
		var it asks
		key, failure, goOn := login("one", "").Key, errors.New("the issuer is down"), make(chan struct{})
		var both sync.WaitGroup
		g.first("refresh/", func(write func() error) error {
			for range 3 {
				if _, err := other.Refresh(t.Context(), key, "access-a", func(context.Context, logins.Login) (logins.Login, error) {
					return logins.Login{}, failure
				}); !errors.Is(err, failure) {
					t.Error(err)
				}
			}
			asked := make(chan struct{})
			both.Go(func() {
				if _, err := other.Refresh(t.Context(), key, "access-a", func(ctx context.Context, l logins.Login) (logins.Login, error) {
					close(asked)
					<-goOn
					return it.refresh(ctx, l)
				}); err != nil {
					t.Error(err)
				}
			})
			<-asked
			return write()
		})
		both.Go(func() {
			if l, err := s.Refresh(t.Context(), key, "access-a", it.refresh); err != nil || l.AccessToken != "fresh" {
				t.Errorf("got %q, %v", l.AccessToken, err)
			}
		})
		time.Sleep(10 * time.Second)
		it.check(t, 0)
		close(goOn)
		both.Wait()
		it.check(t, 1)
	})
}

// TestLostAnswers: a change whose answer is lost is found or made again, once. One that fails twice is an error.
func TestLostAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		fail  func(write func() error) error
		times int64
		want  string
	}{
		"written":           {func(write func() error) error { return errors.Join(write(), errDown) }, 1, "access-b"},
		"not written":       {func(func() error) error { return errDown }, 1, "access-b"},
		"not written twice": {func(func() error) error { return errDown }, 2, "access-a"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
				var failed atomic.Int64
				g.put = func(_ string, write func() error) error {
					if failed.Add(1) <= test.times {
						return test.fail(write)
					}
					return write()
				}
				if err := s.Put(t.Context(), login("one", "b")); errors.Is(err, errDown) != (test.want == "access-a") {
					t.Errorf("got %v", err)
				}
				if got := tokens(t, other); got != test.want {
					t.Errorf("there is %q, want %q", got, test.want)
				}
				if n := failed.Load(); n > 2 {
					t.Errorf("%d versions were written", n)
				}
			})
		})
	}
}

// TestLateWriter: others make changes while a gateway is about to write the version after the one that it has read, and delete both.
// Then its write succeeds and says nothing: it is made again.
func TestLateWriter(t *testing.T) {
	for _, changes := range []int{1, 2, 5, 50} {
		inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
			g.first("list/", func(write func() error) error {
				for i := range changes {
					put(t, other, login("two", fmt.Sprint(i)))
				}
				return write()
			})
			put(t, s, login("three", "x"))
			if got, want := tokens(t, other), fmt.Sprintf("access-a access-x access-%d", changes-1); got != want {
				t.Errorf("after %d changes there are %q, want %q", changes, got, want)
			}
		})
	}
}

// TestUnsavedClaim: a fresh login that cannot be written keeps its claim, so that no other gateway uses the old refresh token, and is
// written when the store works again.
func TestUnsavedClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
		var it asks
		var full atomic.Bool
		g.put = func(name string, write func() error) error {
			if full.Load() && strings.HasPrefix(name, "logins/list/") {
				return errDown
			}
			return write()
		}
		l, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", func(ctx context.Context, l logins.Login) (logins.Login, error) {
			full.Store(true)
			return it.refresh(ctx, l)
		})
		if err != nil || l.AccessToken != "fresh" {
			t.Fatalf("got %q, %v", l.AccessToken, err)
		}
		if list, err := s.Of("one", ""); err != nil || len(list) != 1 || list[0].AccessToken != "fresh" {
			t.Errorf("the process has %v, %v", list, err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			l, err := other.Refresh(t.Context(), login("one", "").Key, "access-a", it.refresh)
			if err != nil || l.AccessToken != "fresh" {
				t.Errorf("the other one: %q, %v", l.AccessToken, err)
			}
		})
		time.Sleep(100 * time.Second)
		full.Store(false)
		both.Wait()
		it.check(t, 1)
	})
}

// TestOutage: a list is read once a second. While the store does not answer it is used for 30 s after the first reader has noticed,
// and a refresh fails.
func TestOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
		of := func() string {
			list, err := s.Of("one", "")
			if err != nil {
				return err.Error()
			}
			return list[0].AccessToken
		}
		for range 100 {
			of()
			time.Sleep(10 * time.Millisecond)
		}
		if n := g.lists.Load(); n != 1 {
			t.Errorf("100 readings in a second have listed %d times", n)
		}
		put(t, other, login("one", "b"))
		if got := of(); got != "access-b" {
			t.Errorf("a second later there is %q", got)
		}
		g.down.Store(true)
		var it asks
		time.Sleep(time.Hour) // without readers
		for _, pause := range []time.Duration{0, 29 * time.Second} {
			time.Sleep(pause)
			if got := of(); got != "access-b" {
				t.Errorf("%v after the first reader there is %q", pause, got)
			}
		}
		if _, err := s.Refresh(t.Context(), login("one", "").Key, "access-b", it.refresh); !errors.Is(err, errDown) {
			t.Errorf("a refresh: %v", err)
		}
		it.check(t, 0)
		time.Sleep(time.Second)
		if got := of(); got != "the logins of the shared store: the store is down" {
			t.Errorf("30 s after the first reader there is %q", got)
		}
	})
}

// TestHangs: a store that hangs delays readers by a second while they have a list, and then by ten.
func TestHangs(t *testing.T) {
	inBubble(t, func(t *testing.T, s, _ *logins.Store, g *gate) {
		if _, err := s.Of("one", ""); err != nil {
			t.Fatal(err)
		}
		g.hangs.Store(true)
		for _, test := range []struct{ after, took time.Duration }{
			{time.Second / 2, 0}, {time.Second, time.Second}, {time.Minute, 10 * time.Second},
		} {
			time.Sleep(test.after)
			begun := time.Now()
			_, err := s.Of("one", "")
			if took := time.Since(begun); took != test.took || (err != nil) != (took > time.Second) {
				t.Errorf("after %s a reading took %s: %v", test.after, took, err)
			}
		}
	})
}

// TestFull: logins that do not fit into an object are refused, and those that are there stay.
func TestFull(t *testing.T) {
	s := openShared(t, storetest.Directory(t))
	large := func(server int) logins.Login {
		l := login(fmt.Sprintf("server%02d", server), "a")
		l.AccessToken, l.RefreshToken, l.Client.Secret = strings.Repeat("x", 64<<10), strings.Repeat("y", 64<<10), strings.Repeat("z", 64<<10)
		return l
	}
	for i := range 21 {
		put(t, s, large(i))
	}
	if err := s.Put(t.Context(), large(21)); err == nil || !strings.Contains(err.Error(), "do not fit into 4 MiB") {
		t.Errorf("one more: %v", err)
	}
	if list, err := s.All(); err != nil || len(list) != 21 {
		t.Errorf("after that there are %d, %v", len(list), err)
	}
}

// TestDamagedVersion: a damaged list is an error that names it, and stays. Without it there is the list before.
func TestDamagedVersion(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "no JSON": "{", "another version": `{"new":1}`, "no server": `{"changes":[],"logins":[{}]}`, "no list": `{"changes":[],"logins":{}}`,
		"long": strings.Repeat(" ", 4<<20) + `{"changes":[],"logins":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			objects, err := store.OpenDirectory(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer objects.Close()
			put(t, openShared(t, objects), login("one", "a"), login("one", "b"))
			newest := filepath.Join(dir, "logins", "list", "000000000002")
			if err := os.WriteFile(newest, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			s := openShared(t, objects)
			_, all := s.All()
			_, of := s.Of("one", "")
			_, gone := s.Delete(t.Context(), login("one", "").Key)
			for i, err := range []error{all, of, gone, s.Put(t.Context(), login("two", "c"))} {
				if err == nil || !strings.Contains(err.Error(), "logins/list/000000000002 was left as it is; removing it brings back the list before it") {
					t.Errorf("%d: %v", i, err)
				}
			}
			if after, err := os.ReadFile(newest); err != nil || string(after) != content {
				t.Errorf("it was changed, %v", err)
			}
			if err := os.Remove(newest); err != nil {
				t.Fatal(err)
			}
			if got := tokens(t, s); got != "access-a" {
				t.Errorf("without it there is %q", got)
			}
		})
	}
}

// TestFailedClaim: a claim that could not be written ends no claim that another gateway has written meanwhile.
func TestFailedClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, s, other *logins.Store, g *gate) {
		var it asks
		var all sync.WaitGroup
		slow := func(ctx context.Context, l logins.Login) (logins.Login, error) {
			time.Sleep(20 * time.Second)
			return it.refresh(ctx, l)
		}
		var once atomic.Bool
		g.put = func(name string, write func() error) error {
			if !strings.HasPrefix(name, "logins/refresh/") || once.Swap(true) {
				return write()
			}
			all.Go(func() {
				if _, err := other.Refresh(t.Context(), login("one", "").Key, "access-a", slow); err != nil {
					t.Errorf("the other gateway: %v", err)
				}
			})
			time.Sleep(3 * time.Second)
			return errDown // nothing is written
		}
		if _, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", slow); err == nil {
			t.Error("a claim that failed succeeded")
		}
		if _, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", slow); err != nil {
			t.Errorf("again: %v", err)
		}
		all.Wait()
		it.check(t, 1)
	})
}
