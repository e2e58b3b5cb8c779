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
