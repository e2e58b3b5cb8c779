package toolhive_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve serves HTTP until the end of the test, and returns the address of an MCP endpoint.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/mcp"
}
