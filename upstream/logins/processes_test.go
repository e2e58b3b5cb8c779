package logins_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// child names what this process does for a test: "DIR ISSUER STEPS". It refreshes the login "one" for each access token that it
// reads, prints what the token is then, and kills itself before the step with that number.
const child = "MCSH_TEST_LOGINS"

func TestMain(m *testing.M) {
	task := os.Getenv(child)
	if task == "" {
		os.Exit(m.Run())
	}
	fields := strings.Fields(task)
	left, _ := strconv.Atoi(fields[2])
	logins.SetStep(func(string) {
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	s, err := logins.Open(fields[0], logins.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		l, err := s.Refresh(context.Background(), login("one", "").Key, in.Text(), asking(fields[1]))
		fmt.Println(l.AccessToken, err)
	}
}

// issuer is an authorization server whose refresh tokens count once. A token that comes again is an attack: then none counts.
type issuer struct {
	mu     sync.Mutex
	given  int  // refreshes; guarded by mu
	reused bool // guarded by mu
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.FormValue("refresh_token") != fmt.Sprint("r", i.given) {
		i.reused = true
	}
	if i.reused {
		http.Error(w, "invalid_grant", http.StatusBadRequest)
		return
	}
	i.given++
	fmt.Fprint(w, "r", i.given)
}

func (i *issuer) state() (given int, reused bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.given, i.reused
}

// asking refreshes at an issuer of the test.
func asking(address string) func(context.Context, logins.Login) (logins.Login, error) {
	return func(ctx context.Context, l logins.Login) (logins.Login, error) {
		response, err := http.PostForm(address, url.Values{"refresh_token": {l.RefreshToken}})
		if err != nil {
			return l, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return l, err
		}
		if response.StatusCode != http.StatusOK {
			return l, fmt.Errorf("%w: %s", logins.ErrEnded, strings.TrimSpace(string(body)))
		}
		l.AccessToken, l.RefreshToken = "access-"+string(body), string(body)
		return l, nil
	}
}

// A process is one that a test has started.
type process struct {
	in  io.WriteCloser
	out *bufio.Scanner
	cmd *exec.Cmd
}

func start(t *testing.T, dir, address string, steps int) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", child, dir, address, steps))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{in, bufio.NewScanner(out), cmd}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if !p.out.Scan() || p.out.Text() != "ready" {
		t.Fatalf("a process says %q", p.out.Text())
	}
	return p
}

// TestRace lets eight processes refresh one login, each knowing only the stale token. The issuer is asked once each time.
func TestRace(t *testing.T) {
	const processes, rounds = 8, 6
	dir, it := filepath.Join(t.TempDir(), "logins"), &issuer{}
	server := httptest.NewServer(it)
	defer server.Close()
	put(t, open(t, dir, logins.Options{}), login("one", "r0"))
	var all []*process
	for range processes {
		all = append(all, start(t, dir, server.URL, 0))
	}
	for round := range rounds {
		for _, p := range all {
			fmt.Fprintf(p.in, "access-r%d\n", round)
		}
		for i, p := range all {
			if want := fmt.Sprintf("access-r%d <nil>", round+1); !p.out.Scan() || p.out.Text() != want {
				t.Fatalf("round %d, process %d: got %q, want %q", round, i, p.out.Text(), want)
			}
		}
		if given, reused := it.state(); given != round+1 || reused {
			t.Fatalf("after round %d the issuer has given %d, a token came twice: %v", round, given, reused)
		}
	}
}

// TestCallers: many callers of one process wait for one refresh. One that ends does not end it.
func TestCallers(t *testing.T) {
	onPlaces(t, func(t *testing.T, again func() *logins.Store) {
		it := &issuer{}
		server := httptest.NewServer(it)
		defer server.Close()
		s := again()
		put(t, s, login("one", "r0"))
		asked, goOn := make(chan struct{}), make(chan struct{})
		slow := func(ctx context.Context, l logins.Login) (logins.Login, error) {
			close(asked)
			<-goOn
			if ctx.Err() != nil {
				t.Errorf("the refresh ended with its caller: %v", ctx.Err())
			}
			return asking(server.URL)(ctx, l)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := s.Refresh(ctx, login("one", "").Key, "access-r0", slow); !errors.Is(err, context.Canceled) {
				t.Errorf("a caller that ended: %v", err)
			}
		})
		<-asked
		cancel()
		callers.Wait()
		// Meanwhile readers and other logins are not delayed.
		put(t, s, login("two", "x"))
		if list, err := s.All(); err != nil || len(list) != 2 {
			t.Errorf("during a refresh: %v, %v", list, err)
		}
		two := func(_ context.Context, l logins.Login) (logins.Login, error) { l.AccessToken = "new"; return l, nil }
		if l, err := s.Refresh(t.Context(), login("two", "").Key, "access-x", two); err != nil || l.AccessToken != "new" {
			t.Errorf("another login during a refresh: %v, %v", l, err)
		}
		for range 50 {
			callers.Go(func() {
				if l, err := s.Refresh(t.Context(), login("one", "").Key, "access-r0", slow); err != nil || l.AccessToken != "access-r1" {
					t.Errorf("a caller got %q, %v", l.AccessToken, err)
				}
			})
		}
		close(goOn)
		callers.Wait()
		if given, reused := it.state(); given != 1 || reused {
			t.Errorf("the issuer has given %d, a token came twice: %v", given, reused)
		}
	})
}

// TestEndings: what counts after a refresh, when the issuer refuses it or somebody signs in or out meanwhile.
func TestEndings(t *testing.T) {
	onPlaces(t, func(t *testing.T, again func() *logins.Store) {
		refused := fmt.Errorf("%w: the issuer says no", logins.ErrEnded)
		for name, test := range map[string]struct {
			meanwhile func(t *testing.T, s *logins.Store)
			err       error
			want      string // the stored access token, "ended" or "none"
			wantErr   error
		}{
			"done":              {nil, nil, "fresh", nil},
			"failed":            {nil, syscall.ECONNREFUSED, "access-a", syscall.ECONNREFUSED},
			"refused":           {nil, refused, "ended", logins.ErrEnded},
			"signed in":         {func(t *testing.T, s *logins.Store) { put(t, s, login("one", "again")) }, nil, "access-again", nil},
			"signed in, refuse": {func(t *testing.T, s *logins.Store) { put(t, s, login("one", "again")) }, refused, "access-again", nil},
		} {
			t.Run(name, func(t *testing.T) {
				s := again()
				put(t, s, login("one", "a"))
				refresh := func(_ context.Context, l logins.Login) (logins.Login, error) {
					if test.meanwhile != nil {
						test.meanwhile(t, s)
					}
					l.AccessToken = "fresh"
					return l, test.err
				}
				got, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", refresh)
				if !errors.Is(err, test.wantErr) || err == nil && got.AccessToken != test.want {
					t.Errorf("got %q, %v; want %q, %v", got.AccessToken, err, test.want, test.wantErr)
				}
				list, err := s.All()
				if err != nil || len(list) != 1 {
					t.Fatalf("there are %v, %v", list, err)
				}
				state := list[0].AccessToken
				if !list[0].Ended.IsZero() && list[0].RefreshToken == "" && list[0].Account == "alice" {
					state = "ended"
				}
				if state != test.want {
					t.Errorf("stored is %q, want %q", state, test.want)
				}
			})
		}
	})
}

// TestEnded: an ended login is not refreshed again, and a login that is gone is not either.
func TestEnded(t *testing.T) {
	onPlaces(t, func(t *testing.T, again func() *logins.Store) {
		s := again()
		put(t, s, login("one", "a"))
		never := func(context.Context, logins.Login) (logins.Login, error) {
			t.Error("the issuer is asked")
			return logins.Login{}, nil
		}
		refuse := func(_ context.Context, l logins.Login) (logins.Login, error) { return l, logins.ErrEnded }
		if _, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", refuse); !errors.Is(err, logins.ErrEnded) {
			t.Errorf("refused: %v", err)
		}
		for _, stale := range []string{"access-a", ""} {
			if _, err := s.Refresh(t.Context(), login("one", "").Key, stale, never); !errors.Is(err, logins.ErrEnded) {
				t.Errorf("refused before: %v", err)
			}
		}
		if _, err := s.Refresh(t.Context(), login("two", "").Key, "x", never); !errors.Is(err, logins.ErrNone) {
			t.Errorf("of nobody: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Refresh(t.Context(), login("one", "").Key, "x", never); err == nil {
			t.Error("a closed store refreshes")
		}
	})
}

// TestUnsaved: a fresh login that cannot be written is used, and is written when that is possible again or when the store closes.
func TestUnsaved(t *testing.T) {
	for name, closed := range map[string]bool{"later": false, "at the end": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "logins")
			s := open(t, dir, logins.Options{})
			put(t, s, login("one", "a"))
			block := func(err error) { // a directory in the place of the lock makes each change fail
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			lock := filepath.Join(dir, "logins.lock")
			refresh := func(_ context.Context, l logins.Login) (logins.Login, error) {
				block(errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700)))
				l.AccessToken, l.RefreshToken = "fresh", "next"
				return l, nil
			}
			never := func(context.Context, logins.Login) (logins.Login, error) {
				return logins.Login{}, errors.New("the issuer is asked again")
			}
			for i, ask := range []func(context.Context, logins.Login) (logins.Login, error){refresh, never} {
				if l, err := s.Refresh(t.Context(), login("one", "").Key, "access-a", ask); err != nil || l.AccessToken != "fresh" {
					t.Fatalf("refresh %d: %q, %v", i, l.AccessToken, err)
				}
			}
			if _, err := s.Refresh(t.Context(), login("one", "").Key, "fresh", never); err == nil || strings.Contains(err.Error(), "asked") {
				t.Errorf("a refresh that cannot be written begins: %v", err)
			}
			if list, err := s.Of("one", ""); err != nil || len(list) != 1 || list[0].RefreshToken != "next" {
				t.Errorf("the process has %v, %v", list, err)
			}
			block(os.Remove(lock))
			if closed {
				block(s.Close())
			}
			other := open(t, dir, logins.Options{})
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				list, err := other.All()
				if err == nil && len(list) == 1 && list[0].RefreshToken == "next" {
					return
				}
				if closed || time.Now().After(end) {
					t.Fatalf("the file has %v, %v", list, err)
				}
			}
		})
	}
}

// TestCloseWaiting: the end of a store does not wait for another process that refreshes a login.
func TestCloseWaiting(t *testing.T) {
	onPlaces(t, func(t *testing.T, again func() *logins.Store) {
		a, b := again(), again()
		put(t, a, login("one", "a"))
		asked, goOn := make(chan struct{}), make(chan struct{})
		var both sync.WaitGroup
		both.Go(func() {
			_, err := a.Refresh(t.Context(), login("one", "").Key, "access-a", func(_ context.Context, l logins.Login) (logins.Login, error) {
				close(asked)
				<-goOn
				l.AccessToken = "fresh"
				return l, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-asked
		both.Go(func() {
			_, err := b.Refresh(t.Context(), login("one", "").Key, "access-a", nil)
			if err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("the refresh that waits: %v", err)
			}
		})
		if err := b.Close(); err != nil { // before or after that has begun
			t.Error(err)
		}
		close(goOn)
		both.Wait()
	})
}

// TestKilled kills a process at each step of a refresh. The file stays whole, the locks are free, and the login counts unless
// the process died between the issuer's answer and the rename.
func TestKilled(t *testing.T) {
	const lost = "lost"
	for i, want := range []string{
		// the file is written as it is
		"access-r1", // locked
		"access-r1", // written
		"access-r1", // renamed
		"access-r1", // asking
		lost,        // answered
		lost,        // locked
		lost,        // written
		"access-r2", // renamed: the refresh of this test is the second
	} {
		dir, it := filepath.Join(t.TempDir(), "logins"), &issuer{}
		server := httptest.NewServer(it)
		defer server.Close()
		s := open(t, dir, logins.Options{})
		put(t, s, login("one", "r0"), login("two", "x"))
		p := start(t, dir, server.URL, i+1)
		fmt.Fprintln(p.in, "access-r0")
		if p.out.Scan() {
			t.Fatalf("step %d: the process was not killed: %s", i+1, p.out.Text())
		}
		list, err := s.All()
		if err != nil || len(list) != 2 {
			t.Fatalf("step %d: there are %v, %v", i+1, list, err)
		}
		l, err := s.Refresh(t.Context(), list[0].Key, list[0].AccessToken, asking(server.URL))
		switch {
		case want == lost && !errors.Is(err, logins.ErrEnded), want != lost && (err != nil || l.AccessToken != want):
			t.Errorf("step %d: got %q, %v; want %q", i+1, l.AccessToken, err, want)
		}
		put(t, s, login("one", "new"))
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 3 { // the file and two locks
			t.Errorf("step %d: left are %v, %v", i+1, entries, err)
		}
	}
}
