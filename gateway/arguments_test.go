package gateway_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestArgumentsOfTheWrongKind: arguments that are no object are an error of the protocol, and nothing for the log.
func TestArgumentsOfTheWrongKind(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	g := gateway.New(gateway.Options{Upstream: upstream.NewPool(upstream.Options{}), Version: "test", Log: zap.New(core)})
	defer g.Close(t.Context())
	agent := connect(t, g, newClient())
	for _, arguments := range []any{[]int{1}, "x", 5, true} {
		_, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_pipeline", Arguments: arguments})
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams || !strings.Contains(wire.Message, "must be one JSON object, got ") {
			t.Errorf("%v: got %v", arguments, err)
		}
	}
	if n := logs.Len(); n != 0 {
		t.Errorf("%d lines in the log: %v", n, logs.All())
	}
}
