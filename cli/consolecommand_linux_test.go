package cli

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/ui"
)

// TestConsoleOfNone: of a gateway without a console people read how to have one, and no JSON.
func TestConsoleOfNone(t *testing.T) {
	t.Parallel() // it waits
	c := newControlTest(t)
	c.serve("--no-console")
	f := &consoleFront{base: "/ROOM/", session: "session"}
	f.find = func(context.Context) (map[string]*control.Client, error) { return control.Find(c.state) }
	var err error
	if f.chooser, err = ui.NewChooser(f.base, f.choices); err != nil {
		t.Fatal(err)
	}
	found, err := control.Find(c.state)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	for id := range found {
		for _, page := range []string{"", "runs/q_none"} {
			r, w := httptest.NewRequest("GET", "/ROOM/g/"+id+"/"+page, nil), httptest.NewRecorder()
			r.Header.Set("Cookie", "mcsh-console=session")
			f.ServeHTTP(w, r)
			if body := w.Body.String(); w.Code != 404 || !strings.Contains(body, "<html") || !strings.Contains(body, "it was started with --no-console or $MCSH_CONSOLE=off. Start it again without that.") {
				t.Errorf("/%s: %d %s", page, w.Code, body)
			}
		}
	}
}
