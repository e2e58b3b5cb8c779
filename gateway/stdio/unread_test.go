//go:build !race

package stdio

import (
	"strings"
	"testing"
)

// TestStdioUnreadBytes: nor are its long calls, by their bytes. The race detector would look at each of the 64 MiB many times.
func TestStdioUnreadBytes(t *testing.T) {
	leaveUnread(t, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"x":"`+strings.Repeat("x", 1<<20)+`"}}}`)
}
