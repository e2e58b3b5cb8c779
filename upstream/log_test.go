package upstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestServerLog: what a server logs is passed on in one line, bounded, without secrets, and only so much a second.
func TestServerLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []LogLine
		p := NewPool(Options{Log: func(l LogLine) { got = append(got, l) }})
		defer p.Close()
		sc := newServerConn(&Server{Name: "s", Secrets: []string{"t0p-secret-word"}}, p)
		for _, params := range []string{
			`{"level":"warning","logger":"db","data":"slow\n\u001b[31m \u202equery"}`,
			`{"level":"error","data":{"key":"t0p-secret-word","n":1}}`,
			`{"level":"loud","data":"` + strings.Repeat("x", 3<<10) + `"}`,
			`{"level":"info","data":"` + strings.Repeat("x", maxLogRead) + `"}`,
			`[]`,
			`{"level":"info"}`,
		} {
			sc.noteLog([]byte(params))
		}
		if n := len(got); n != 4 || len(got[2].Text) > maxLogText+10 || got[2].Level != "info" {
			t.Fatalf("%d lines: %+v", n, got)
		}
		got[2].Text = ""
		want := []LogLine{
			{Server: "s", Level: "warning", Logger: "db", Text: "slow [31m query"},
			{Server: "s", Level: "error", Text: `{"key":"***","n":1}`},
			{Server: "s", Level: "info"},
			{Server: "s", Level: "info", Lost: 2},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got = nil
		for i := range 1000 {
			sc.noteLog(fmt.Appendf(nil, `{"level":"info","data":%d}`, i))
		}
		passed := len(got)
		time.Sleep(time.Second)
		sc.noteLog([]byte(`{"level":"info","data":"after"}`))
		if passed > 100 || len(got) != passed+1 || got[passed].Lost != int64(1000-passed) {
			t.Errorf("%d of 1,000 lines at once, then %+v", passed, got[len(got)-1])
		}
	})
}
