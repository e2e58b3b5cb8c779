package rpc

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// codeRejected is the code with which the SDK wraps a transport's error about a single message.
const codeRejected = -32005

// AnswerIn is the error with which the server has answered, or nil.
func AnswerIn(err error) *jsonrpc.Error {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code != codeRejected {
		return wire
	}
	return nil
}

// IsAnswer reports whether a failure is the server's own answer.
func IsAnswer(err error) bool { return AnswerIn(err) != nil }
