package sockets

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:A1B2 01 00000000:00000000 00:00000000 00000000  1001        0 31338 1 0000000000000000 20 4 30 10 -1
   2: 0000000000000000FFFF00000100007F:1F91 0000000000000000FFFF00000100007F:A1B3 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 20 4 30 10 -1
   3: 00000000000000000000000001000000:1F92 00000000000000000000000001000000:A1B4 01 00000000:00000000 00:00000000 00000000    7        0 1 1 0
`

func TestParse(t *testing.T) {
	at := netip.MustParseAddrPort
	want := []Socket{
		{at("127.0.0.1:8080"), at("0.0.0.0:0"), Listening, 1000, "31337"},
		{at("127.0.0.1:8080"), at("127.0.0.1:41394"), Connected, 1001, "31338"},
		{at("127.0.0.1:8081"), at("127.0.0.1:41395"), Connected, 0, "1"},
		{at("[::1]:8082"), at("[::1]:41396"), Connected, 7, "1"},
	}
	if diff := cmp.Diff(want, parse(table), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzParse: every table can be read, and each socket in it is one that stands there.
func FuzzParse(f *testing.F) {
	f.Add(table)
	f.Fuzz(func(t *testing.T, table string) {
		for _, s := range parse(table) {
			near, far := fmt.Sprintf("%x", s.Local.Port()), fmt.Sprintf("%x", s.Remote.Port())
			for _, part := range []string{near, far, string(s.State), strconv.Itoa(s.User), s.Inode} {
				if !strings.Contains(strings.ToLower(table), strings.ToLower(part)) || !s.Local.IsValid() || !s.Remote.IsValid() {
					t.Errorf("got %+v of %q", s, table)
				}
			}
		}
	})
}
