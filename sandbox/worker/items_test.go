//go:build linux

package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// TestForItems: a program runs on one item after another until one of them starves, writes too much or takes long.
func TestForItems(t *testing.T) { synctest.Test(t, testForItems) } // the time is that of the items alone

func testForItems(t *testing.T) {
	echo := func(_ context.Context, files programs.IO) int {
		in, _ := io.ReadAll(files.In)
		switch string(in) {
		case "fail":
			fmt.Fprint(files.Err, "no")
			return 3
		case "starve":
			fmt.Fprint(files.Err, "out of memory")
			return 3
		case "shout":
			fmt.Fprint(files.Err, "no")
		case "large":
			_, _ = files.Out.Write(make([]byte, wire.MaxAnswer+1)) // it does not look at the error
		case "long":
			time.Sleep(2 * itemsTime)
		}
		fmt.Fprintf(files.Out, "(%s)", in)
		return 0
	}
	most := strings.Repeat("x", wire.MaxAnswer-2)
	for _, test := range []struct {
		items, want []string
		status      int
	}{
		{nil, nil, 0},
		{[]string{"a", "", "b"}, []string{"(a)", "()", "(b)"}, 0},
		{[]string{"a", "fail", "b"}, []string{"(a)", "3 no", "(b)"}, 0},
		{[]string{"shout", "b"}, []string{"(shout)", "(b)"}, 0},
		{[]string{"a", "starve", "b"}, []string{"(a)"}, jailStatus},
		{[]string{"a", "large", "b"}, []string{"(a)"}, jailStatus},
		{[]string{"long", "b"}, []string{"(long)"}, 0},
		{[]string{most, "b"}, []string{"(" + most + ")", "(b)"}, 0},
	} {
		var in, want []byte
		for _, item := range test.items {
			in = wire.AppendItem(in, []byte(item))
		}
		for _, out := range test.want {
			if out == "3 no" {
				want = wire.AppendAnswer(want, 3, []byte("no"))
			} else {
				want = wire.AppendAnswer(want, 0, []byte(out))
			}
		}
		var out bytes.Buffer
		status := forItems(echo)(t.Context(), programs.IO{In: bytes.NewReader(in), Out: &out, Err: io.Discard})
		if status != test.status || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%.40q: got status %d and %.80q, want %d and %.80q", test.items, status, out.Bytes(), test.status, want)
		}
	}
	if status := forItems(echo)(t.Context(), programs.IO{In: strings.NewReader("\x00\x00\x00\x05ab"), Out: io.Discard, Err: io.Discard}); status == 0 {
		t.Error("an item that is cut off: no failure")
	}
}
