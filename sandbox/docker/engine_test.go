package docker_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// TestConnectRefusals: each fault of the engine has its own error, with what to do about it.
func TestConnectRefusals(t *testing.T) {
	serve := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return "tcp://" + strings.TrimPrefix(s.URL, "http://")
	}
	mute := filepath.Join(t.TempDir(), "mute.sock")
	l, err := net.Listen("unix", mute)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	silent := filepath.Join(t.TempDir(), "silent.sock")
	quiet, err := net.Listen("unix", silent) // what comes waits for ever to be accepted
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	const hangs = "hangs"
	for _, test := range []struct {
		name string
		host string
		kind error
	}{
		{hangs, "unix://" + silent, docker.ErrNoEngine},
		{"nobody there", "unix://" + filepath.Join(t.TempDir(), "none.sock"), docker.ErrNoEngine},
		{"closed port", "tcp://127.0.0.1:1", docker.ErrNoEngine},
		{"hangs up", "unix://" + mute, docker.ErrNoEngine},
		{"another server", serve(http.NotFound), docker.ErrNotEngine},
		{"a page", serve(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("welcome")) }), docker.ErrNotEngine},
		{"old", serve(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.40") }), docker.ErrOldEngine},
		{"no address", "nonsense", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			patience := time.Minute
			if test.name == hangs {
				patience = 3 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := docker.Connect(ctx, docker.Options{Host: test.host})
			var f *docker.Fault
			if !errors.As(err, &f) || f.Hint == "" || test.kind != nil && !errors.Is(err, test.kind) {
				t.Fatalf("got %v, want a fault of kind %v with a hint", err, test.kind)
			}
			t.Log(err)
		})
	}
}

func TestDefaultImage(t *testing.T) {
	for version, want := range map[string]string{
		"":                              "mcsh/mcsh:devel",
		"devel":                         "mcsh/mcsh:devel",
		"v1.2.3":                        "mcsh/mcsh:v1.2.3",
		"v0.0.0-2026-abc+dirty":         "mcsh/mcsh:v0.0.0-2026-abc-dirty",
		"../x y":                        "mcsh/mcsh:x-y",
		"v1" + strings.Repeat("é", 200): "mcsh/mcsh:v1" + strings.Repeat("-", 126),
	} {
		if got := docker.DefaultImage(version); got != want {
			t.Errorf("%q: got %q, want %q", version, got, want)
		}
	}
}
