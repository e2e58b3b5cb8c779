package logins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/upstream/logins"
)

// inSession names the directory of the part of TestSecretService that runs in a session of its own.
const inSession = "MCSH_TEST_SESSION"

// TestSecretService keeps the key in the Secret Service of a session that ends with the test. A second store finds it there.
func TestSecretService(t *testing.T) {
	dir := os.Getenv(inSession)
	if dir != "" {
		for _, token := range []string{"a", "b"} {
			s := open(t, dir, logins.Options{Keyring: logins.System{}, KeyringWait: time.Minute})
			put(t, s, login("one", token))
			if list, err := s.All(); err != nil || len(list) != 1 || list[0].RefreshToken != token {
				t.Fatalf("there are %v, %v", list, err)
			}
			if place, sealed, err := s.Place(); err != nil || !sealed || !strings.Contains(place, "keyring") {
				t.Fatalf("the place is %q, %v, %v", place, sealed, err)
			}
		}
		checkFiles(t, dir, true)
		return
	}
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			parttest.Missing(t, "%v; the packages dbus and gnome-keyring have it", err)
		}
	}
	home := t.TempDir()
	// The password of the new keyring comes from standard input.
	cmd := exec.Command("dbus-run-session", "--", "sh", "-c",
		`printf secret | gnome-keyring-daemon --foreground --unlock --components=secrets >/dev/null 2>&1 &
		for i in $(seq 600); do # asking the service itself would start another one
			dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner string:org.freedesktop.secrets | grep -q true && break
			sleep 0.1
		done
		exec "$0" -test.run '^TestSecretService$' -test.v`, os.Args[0])
	cmd.Env = append(os.Environ(), inSession+"="+filepath.Join(home, "logins"), "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_DATA_HOME="+home,
		"DBUS_SESSION_BUS_ADDRESS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
