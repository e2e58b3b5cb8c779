//go:build !race

// The race detector would compile all of Temporal's server again.

package server_test

import (
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/engine/temporal"
	"github.com/mcsh-dev/mcsh/engine/temporal/dev/server"
)

// TestStart: two servers in one process know nothing of each other, and their addresses are free again when they have stopped.
func TestStart(t *testing.T) {
	options := server.Options{Listen: "127.0.0.1:0"}
	var servers []*server.Server
	var engines []*temporal.Engine
	for range 2 {
		s, err := server.Start(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		e, err := temporal.Dial(t.Context(), temporal.Options{Address: s.Address})
		if err != nil {
			t.Fatal(err)
		}
		servers, engines = append(servers, s), append(engines, e)
	}
	if err := engines[0].Start(t.Context(), "job", time.Minute); err != nil {
		t.Fatal(err)
	}
	if p, err := engines[0].Progress(t.Context(), "job"); err != nil || p.State != "waiting" {
		t.Errorf("got %+v, %v", p, err)
	}
	if p, err := engines[1].Progress(t.Context(), "job"); err == nil {
		t.Errorf("the other server has %+v", p)
	}
	for i, s := range servers {
		engines[i].Close()
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if _, err := temporal.Dial(t.Context(), temporal.Options{Address: s.Address}); err == nil {
			t.Errorf("%s still answers", s.Address)
		}
	}
	again, err := server.Start(t.Context(), server.Options{Listen: servers[0].Address})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Stop(); err != nil {
		t.Error(err)
	}
}
