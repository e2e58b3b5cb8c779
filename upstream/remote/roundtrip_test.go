package remote

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for text, want := range map[string]time.Duration{
			"": 0, "0": 0, "5": 5 * time.Second, " 5 ": 5 * time.Second, "1.5": 1500 * time.Millisecond, "-5": 0, "-": 0, "x": 0,
			"3600": maxRetryAfter, "3601": maxRetryAfter, "99999999999999999999999": maxRetryAfter, // more than a Duration has
			"5m": 0, "1h2": 0, "5s": 0, "5, 6": 0, "1e3": 0, "0x5": 0, "NaN": 0, "Inf": 0, ".": 0, // no numbers of seconds
			time.Now().Add(time.Minute).UTC().Format(http.TimeFormat):    time.Minute,
			time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat):   time.Second, // their clock may be wrong
			time.Now().Add(24 * time.Hour).UTC().Format(http.TimeFormat): maxRetryAfter,
			"Mon, 99 Nov 2026 00:00:00 GMT":                              0,
		} {
			if got := retryAfter(text); got != want {
				t.Errorf("%q: got %v, want %v", text, got, want)
			}
		}
	})
}

// FuzzRetryAfter: whatever a server says, it is waited for a time that is bounded.
func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"5", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1e400", "9223372036854775808"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := retryAfter(text); got < 0 || got > maxRetryAfter {
			t.Errorf("%q: %v", text, got)
		}
	})
}
