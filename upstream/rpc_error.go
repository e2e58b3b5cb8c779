package upstream

import (
	"errors"
	"strings"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// rpcHints says what to do about the protocol errors that mean the same with every server.
var rpcHints = map[int64]string{
	jsonrpc.CodeInvalidParams:  "compare the arguments with the tool's schema: get_tool_details shows it",
	jsonrpc.CodeMethodNotFound: "the server may have changed: list_all_tools shows what it offers now",
	-32042:                     "sign in to the service in a browser first; the server names the address",
}

// notBegun are the protocol errors with which a server says that the tool did not run.
var notBegun = map[int64]bool{
	jsonrpc.CodeParseError: true, jsonrpc.CodeInvalidRequest: true, jsonrpc.CodeMethodNotFound: true, jsonrpc.CodeInvalidParams: true,
	-32042: true, // somebody has to sign in first
}

// rpcError returns a protocol error as the failure of the tool. Servers use such errors for tools that failed, not
// only for requests that were wrong. It is nil if the failure is anything else.
func (u *unit) rpcError(l *link, failure *rpc.Failure) error {
	var wire *jsonrpc.Error
	if !errors.As(failure, &wire) || wire.Code == codeRejected {
		return nil
	}
	if wire.Code == jsonrpc.CodeInvalidParams || wire.Code == jsonrpc.CodeMethodNotFound {
		u.tools.invalidate() // the tool may be gone
	}
	words := strings.TrimSpace(wire.Message)
	if more := rpc.Words(wire.Data); more != "" && !strings.Contains(words, more) {
		words += ": " + more
	}
	e := toolError(scrubbed(l.peer, words))
	e.Hint = rpcHints[wire.Code]
	e.Answered = notBegun[wire.Code]
	return e
}
