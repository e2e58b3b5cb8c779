package gateway

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/runs"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

// writes are a store that says in which folders objects are written.
type writes struct {
	store.Store
	folders chan string
}

func (s writes) Put(ctx context.Context, name string, data []byte) error {
	err := s.Store.Put(ctx, name, data)
	select {
	case s.folders <- path.Dir(name):
	default:
	}
	return err
}

// TestAttemptUsesChain: while an attempt is under way, all runs are kept by which the next one finds the last of them.
func TestAttemptUsesChain(t *testing.T) {
	shared := writes{storetest.Directory(t), make(chan string, 1000)}
	s := runs.New(runs.Options{Dir: t.TempDir(), Shared: shared, TTL: 400 * time.Millisecond})
	defer s.Close()
	kept := s.Of("me")
	var chain []string
	for range 3 {
		id, end := kept.Begin()
		end()
		if err := kept.Publish(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if len(chain) > 0 {
			if holder, _, err := kept.Claim(t.Context(), chain[len(chain)-1], id); err != nil || holder != id {
				t.Fatal(holder, err)
			}
		}
		chain = append(chain, id)
	}
	got, err := takeOver(t.Context(), kept, chain[0])
	if err != nil || !slices.Equal(got, chain) {
		t.Fatalf("got %v, %v, want %v", got, err, chain)
	}
	for len(shared.folders) > 0 {
		<-shared.folders
	}
	g := &Gateway{}
	g.o.Kept = s
	defer g.using(t.Context(), kept, got)()
	late := time.After(10 * time.Second)
	for used := map[string]bool{}; len(used) < len(chain); {
		select {
		case folder := <-shared.folders:
			used[folder] = true
		case <-late:
			t.Fatalf("%d of %d runs are used", len(used), len(chain))
		}
	}
}

// TestPassing: an attempt waits for a store that cannot be used now, not for one whose objects will never be right.
func TestPassing(t *testing.T) {
	for err, want := range map[error]bool{
		errBusy: true,
		stages.StoreFailure(context.DeadlineExceeded):             true,
		stages.StoreFailure(fmt.Errorf("a: %w", runs.ErrVersion)): false,
		stages.StoreFailure(store.ErrDamaged):                     false,
		errLeft:                                                   false,
	} {
		if got := passing(err); got != want {
			t.Errorf("%v: got %v", err, got)
		}
	}
}
