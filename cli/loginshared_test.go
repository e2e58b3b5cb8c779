package cli

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// TestLoginShared: machines with nothing in common but a store have the same sign-ins. Two gateways run when somebody signs in on one
// machine, and the issuer refreshes for one of them.
func TestLoginShared(t *testing.T) {
	s := newAuthorizationServer(t)
	s.revokes = true
	shared, keys := filepath.Join(t.TempDir(), "shared"), filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("k1:"+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(browses, "1")
	var people []*person
	var calls []func() string
	for range 2 {
		p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
		p.env = append(p.env, "BROWSER="+os.Args[0], "MCSH_STORE="+shared, "MCSH_STORE_KEY_FILE="+keys, "MCSH_STORE_LOGINS=on")
		people, calls = append(people, p), append(calls, p.gateway())
	}
	check := func(want string) {
		t.Helper()
		for i, call := range calls {
			eventually(t, fmt.Sprintf("gateway %d says %q", i, want), func() (string, bool) {
				text := call()
				return text, strings.Contains(text, want)
			})
		}
	}
	check("run mcsh login box")
	people[0].run(0, "all gateways with this store and --store-logins use the sign-in", "login", "box")
	people[0].run(0, "the tokens are in the shared store "+shared+", sealed with its key file", "logins")
	check("hello")
	people[1].run(0, "box  -  read  the access token ends at", "logins")
	endToken(t, shared, keys)
	given := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.given
	}
	eventually(t, "a refresh", func() (string, bool) { return calls[0]() + calls[1](), given() > 1 })
	check("hello")
	if n := given(); n != 2 {
		t.Errorf("the issuer has given tokens %d times, and not to the sign-in and to one of two gateways", n)
	}
	people[1].run(0, "its issuer has revoked the tokens", "logout", "box")
	check("run mcsh login box")
	for _, p := range people {
		if _, err := os.Stat(filepath.Join(p.home, ".local", "state", "mcsh", "logins")); !os.IsNotExist(err) {
			t.Errorf("there are sign-ins on the machine: %v", err)
		}
	}
}

// endToken makes the access token of the only login in a shared store one that has ended.
func endToken(t *testing.T, shared, keyFile string) {
	t.Helper()
	keys, err := store.ReadKeys(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := store.OpenDirectory(shared)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	kept := logins.OpenShared(store.Seal(dir, keys), shared)
	defer kept.Close()
	list, err := kept.All()
	if err != nil || len(list) != 1 {
		t.Fatalf("there are %v, %v", list, err)
	}
	list[0].Expiry = time.Now().Add(-time.Hour)
	if err := kept.Put(t.Context(), list[0]); err != nil {
		t.Fatal(err)
	}
}
