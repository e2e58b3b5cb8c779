//go:build !race

package store_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/store/storetest"
)

// TestS3EndlessPage: a list whose page does not end takes neither all memory nor all time.
func TestS3EndlessPage(t *testing.T) {
	t.Parallel()
	s, current := withFaults(t, storetest.S3(t))
	endless := fault(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		row := []byte("<Contents><Key>" + strings.Repeat("k", 1<<20) + "</Key></Contents>")
		_, err := io.WriteString(w, "<ListBucketResult>")
		for err == nil {
			_, err = w.Write(row)
		}
		return true
	})
	current.Store(&endless)
	n := 0
	for o, err := range s.List(t.Context(), "") {
		if n++; err == nil || n > 1 {
			t.Fatalf("the list has %.20s", o.Name)
		}
	}
	if n == 0 {
		t.Error("the list is empty and has no error")
	}
}
