// Package storetest opens stores for tests: a directory, and a real S3 server, versitygw. It knows nothing of what is kept there.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/store"
)

// Directory opens a store in a directory. Both end with the test.
func Directory(t testing.TB) *store.Directory {
	t.Helper()
	d, err := store.OpenDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Keys are keys of some ids. Each id has one key.
func Keys(t testing.TB, ids ...string) store.Keys {
	t.Helper()
	var lines strings.Builder
	for _, id := range ids {
		sum := sha256.Sum256([]byte(id))
		fmt.Fprintf(&lines, "%s:%s\n", id, base64.StdEncoding.EncodeToString(sum[:]))
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := store.ReadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

const bucket = "bucket"

// S3 starts a server with an empty bucket. Both end with the test.
func S3(t testing.TB) store.S3Options {
	t.Helper()
	dir, err := os.MkdirTemp("", "s3") // shorter than that of the test, for the path of the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	if err := os.MkdirAll(filepath.Join(data, bucket), 0o700); err != nil {
		t.Fatal(err)
	}
	o := store.S3Options{Bucket: bucket, AccessKey: "key", SecretKey: "secret-of-the-test"}
	cmd := exec.Command(parttest.GoProgram(t, "versitygw"),
		"--port", socket, "--access", o.AccessKey, "--secret", o.SecretKey, "--keep-alive", "--quiet", "posix", data)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("versitygw has ended: %v: %s", err, said.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("versitygw does not listen")
		}
	}
	o.Endpoint = proxy(t, socket)
	return o
}

// proxy gives a socket an address: no two tests can take the same port, as they could if the server were told one.
func proxy(t testing.TB, socket string) string {
	target := &url.URL{Scheme: "http", Host: "s3"}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // which is signed
		},
		ErrorLog: log.New(io.Discard, "", 0), // of clients that leave, as tests do
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
			MaxIdleConnsPerHost: 64,
			DisableCompression:  true,
		},
	})
	t.Cleanup(server.Close)
	return server.URL
}
