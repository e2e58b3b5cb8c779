package remote

import (
	"testing"
	"time"
)

// TestRefusals: which answers say that no tool has seen a request, so that it may be sent again. All others do not.
func TestRefusals(t *testing.T) {
	refused := map[int]bool{401: true, 405: true, 406: true, 407: true, 411: true, 413: true, 415: true, 421: true, 426: true, 429: true, 431: true}
	for status := 300; status < 600; status++ {
		if got := (&statusError{status: status}).neverRan(); got != refused[status] {
			t.Errorf("%d: got %t, want %t", status, got, refused[status])
		}
	}
	if !(&statusError{status: 503, wait: time.Second}).neverRan() {
		t.Error("503 with a time to come back: a tool may have seen it")
	}
	if notReached(&redirectError{}) {
		t.Error("a redirect: the server has not got the request")
	}
}
