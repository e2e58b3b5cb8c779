package pace

import (
	"strings"
	"testing"
	"time"
)

// TestParseRate reads rates of configurations.
func TestParseRate(t *testing.T) {
	for text, want := range map[string]string{
		"10/s": "10/s", "600/m": "600/m", "1000/h": "1000/h", "1/h": "1/h", "10000/s": "10000/s", "007/s": "7/s",
		"": "is not a rate", "10": "is not a rate", "10/": "is not a rate", "/s": "is not a rate", "10/d": "is not a rate",
		"10/sec": "is not a rate", " 10/s": "is not a rate", "10 /s": "is not a rate", "1.5/s": "is not a rate", "-1/s": "is not a rate",
		"+1/s": "is not a rate", "1e3/s": "is not a rate", "10/s/s": "is not a rate", "10/S": "is not a rate", "\u0661/s": "is not a rate",
		"0/s": "want 1 to 10000", "10001/s": "want 1 to 10000", "99999999999999999999/s": "want 1 to 10000",
		strings.Repeat("9", 1<<20) + "/s": "want 1 to 10000",
	} {
		r, err := ParseRate(text)
		got := r.String()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && !strings.Contains(got, want) || len(got) > 300 {
			t.Errorf("%.40q: got %.300s, want %s", text, got, want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	f.Add("10/s")
	f.Add("1000000/h")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil {
			return
		}
		if again, err := ParseRate(r.String()); err != nil || again != r || r.N < 1 || r.Per < time.Second {
			t.Errorf("%q is %v, which reads as %v, %v", text, r, again, err)
		}
	})
}
