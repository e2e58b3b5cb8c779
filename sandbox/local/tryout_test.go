//go:build linux

package local_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
)

// TestChecksAgree: of all arguments that the grammars accept, those that are refused when they are tried out fail with
// data as well: nothing is refused for being run on nothing.
func TestChecksAgree(t *testing.T) {
	text, err := os.ReadFile("../programs/testdata/accepted.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []stages.Command
	var named []struct{ Command string }
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &named); err != nil {
		t.Fatal(err)
	}
	p, err := sandbox.New(t.Context(), sandbox.Options{Driver: local.New(local.Options{Worker: []string{workerFile}})})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Open(t.Context(), "somebody")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tries := p.Plan("somebody", "", "")
	defer tries.Close()
	var group errgroup.Group
	for i, c := range rows {
		c.Name, c.Timeout = named[i].Command, time.Minute
		group.Go(func() error {
			_, refused := tries.Check(t.Context(), c)
			if refused == nil {
				return nil
			}
			f, err := s.Prepare([]stages.Command{c}, nil)
			if err != nil {
				return nil // it is not installed here, or reads named inputs
			}
			var out bytes.Buffer
			if err := f(t.Context(), strings.NewReader("1 2\n3 4\n"), &out); err == nil {
				t.Errorf("%s %q: tried out it was refused, %v, and it gives %q", c.Name, c.Args, refused, out.String())
			} else {
				t.Logf("%s %q fails: %v", c.Name, c.Args, refused)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
