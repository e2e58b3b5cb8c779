//go:build linux

package e2e

import (
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// postgresURL starts a database for the test and returns how to connect to it.
func postgresURL(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		parttest.Missing(t, "PostgreSQL is not installed; .ci/run parts installs it")
	}
	bin := filepath.Dir(slices.Max(found))
	dir, err := os.MkdirTemp("", "mcsh-postgres-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := databaseUser(t, dir)
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "test", "--no-sync")
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	initdb.Dir = dir
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	address := listens(t, as, func(address string) *exec.Cmd {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-h", host, "-p", port, "-k", dir, "-F")
		cmd.Dir = dir
		return cmd
	})
	return "postgresql://test@" + strings.TrimPrefix(address, "http://") + "/postgres"
}

// databaseUser is whom the database runs as, which is not root, and who owns dir from now on.
func databaseUser(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		parttest.Missing(t, "root cannot run a database, and there is nobody else: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
