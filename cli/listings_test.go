package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/upstream"
)

// TestNoteStale: what was read long ago is said to be, in one line; what a server has just said is not.
func TestNoteStale(t *testing.T) {
	kept := func(age time.Duration) upstream.Listing {
		return upstream.Listing{Status: upstream.StatusSaved, Fetched: time.Now().Add(-age)}
	}
	for _, c := range []struct {
		listings []upstream.Listing
		want     string
	}{
		{[]upstream.Listing{kept(time.Minute), {Status: upstream.StatusReady}}, ""},
		{[]upstream.Listing{kept(time.Minute), kept(15 * time.Minute)}, "note: the tools of 1 server were read up to 15 minutes ago; --refresh asks again\n"},
		{[]upstream.Listing{kept(30 * time.Hour), kept(time.Hour)}, "note: the tools of 2 servers were read up to 30 hours ago; --refresh asks again\n"},
		{[]upstream.Listing{kept(100 * time.Hour)}, "note: the tools of 1 server were read up to 4 days ago; --refresh asks again\n"},
	} {
		var stderr strings.Builder
		(&program{stderr: plain{newStream(&stderr, nil)}}).noteStale(c.listings)
		if stderr.String() != c.want {
			t.Errorf("got %q, want %q", stderr.String(), c.want)
		}
	}
}
