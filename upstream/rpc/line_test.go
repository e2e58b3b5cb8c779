package rpc_test

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// TestLineSendsOne sends messages whose arguments come from data that somebody has indented: each is one line, and means
// the same. A server that reads lines would answer nothing else.
func TestLineSendsOne(t *testing.T) {
	for msg, want := range map[string]string{
		`{"id":1}`: `{"id":1}`,
		"{\"params\": {\n  \"labels\": [\r\n    {\"name\": \"a\\r\\nb ü\"}\r  ]\n}}": `{"params": {   "labels": [      {"name": "a\r\nb ü"}   ] }}`,
	} {
		sent := []byte(msg)
		var out bytes.Buffer
		if err := rpc.NewLine(strings.NewReader(""), &out, rpc.LineOptions{}).Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want+"\n" {
			t.Errorf("got %q, want %q and the end of the line", got, want)
		}
		if string(sent) != msg {
			t.Errorf("the caller's message became %q", sent)
		}
	}
}

// TestLineGivesMemoryBack: a line holds no memory once it is too long, and not for longer than a message may take: a server
// that stops within one loses the connection, at once or after many single bytes.
func TestLineGivesMemoryBack(t *testing.T) {
	for name, tt := range map[string]struct {
		max   int
		drips time.Duration // between bytes behind the beginning; 0: there are none
		ends  time.Duration // when the connection has ended; 0: it does not
	}{
		"too long": {max: 2 << 20},
		"stops":    {max: 8 << 20, ends: 31 * time.Second},
		"drips":    {max: 8 << 20, drips: 20 * time.Second, ends: 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, server := io.Pipe()
				share := memory.New(64<<20).Share("results", 64<<20)
				line := rpc.NewLine(in, io.Discard, rpc.LineOptions{Close: in.Close})
				line.Prepare(share, tt.max)
				ended := make(chan error, 1)
				go func() {
					_, err := line.Next()
					ended <- err
				}()
				_, _ = server.Write(bytes.Repeat([]byte("x"), 3<<20))
				synctest.Wait()
				if used := share.Used(); (used == 0) != (tt.ends == 0) {
					t.Errorf("%d bytes count", used)
				}
				if tt.drips > 0 {
					go func() {
						for _, err := server.Write([]byte("x")); err == nil; _, err = server.Write([]byte("x")) {
							time.Sleep(tt.drips)
						}
					}()
				}
				select {
				case err := <-ended:
					if tt.ends == 0 || err == nil {
						t.Errorf("the connection has ended: %v", err)
					}
				case <-time.After(cmp.Or(tt.ends, 10*time.Minute)):
					if tt.ends > 0 {
						t.Errorf("after %v the connection is still there", tt.ends)
					}
				}
				_ = line.Close()
				time.Sleep(tt.drips) // on the clock of the test, until the server has seen it
				synctest.Wait()
				if used := share.Used(); used != 0 {
					t.Errorf("at the end %d bytes count", used)
				}
			})
		})
	}
}
