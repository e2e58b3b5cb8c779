package store_test

import (
	"fmt"
	"testing"

	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/store/storetest"
)

func openS3(t testing.TB, o store.S3Options) *store.S3 {
	t.Helper()
	s, err := store.OpenS3(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestS3Prefix: objects are in the folder of the prefix, with and without a slash at its end.
func TestS3Prefix(t *testing.T) {
	t.Parallel()
	server := storetest.S3(t)
	all := openS3(t, server)
	for i, prefix := range []string{"mcsh/prod", "mcsh/prod/"} {
		o := server
		o.Prefix = prefix
		name := fmt.Sprint("runs/", i)
		mustPut(t, openS3(t, o), name, "x")
		if got, err := get(t.Context(), all, "mcsh/prod/"+name); got != "x" {
			t.Errorf("prefix %s: got %q, %v", prefix, got, err)
		}
	}
}

func TestS3(t *testing.T) {
	t.Parallel()
	server := storetest.S3(t)
	n := 0
	contract(t, func(t *testing.T) store.Store {
		o := server
		n++
		o.Prefix = fmt.Sprintf("below/%d/", n)
		return openS3(t, o)
	})
}
