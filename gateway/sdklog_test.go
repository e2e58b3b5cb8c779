package gateway

import (
	"maps"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestClientMistakes: what a client does out of order is a line for who looks for it, and none for who does not.
func TestClientMistakes(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`
	for _, test := range []struct {
		name   string
		again  string // what comes in a session that has begun
		logged string
	}{
		{"initialize", hello, "duplicate initialize request"},
		{"initialized", initialized, "duplicate initialized notification"},
	} {
		t.Run(test.name, func(t *testing.T) {
			core, logs := observer.New(zap.DebugLevel)
			g := New(Options{Log: zap.New(core), Version: "test"})
			t.Cleanup(func() { g.Close(t.Context()) })
			b := &bothWays{Gateway: g}
			b.session = b.initialize(t, "2025-11-25")
			header := maps.Clone(plain)
			header["Mcp-Session-Id"] = b.session
			for _, body := range []string{initialized, test.again} {
				b.serveMCP(httptest.NewRecorder(), post{header: header, body: body}.request(t.Context()))
			}
			var found []observer.LoggedEntry
			for end := time.Now().Add(time.Minute); len(found) == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("it is not logged: %+v", logs.All())
				}
				found = logs.FilterMessage(test.logged).All()
			}
			if e := found[0]; len(found) != 1 || e.Level != zap.DebugLevel || e.Stack != "" || len(e.Context) > 0 {
				t.Errorf("logged %+v", found)
			}
		})
	}
}
