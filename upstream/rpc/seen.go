package rpc

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// AnswerMessage is the answer to a request as the protocol writes it, for somebody who looks at it. Of an error that did not come
// from the server it has only the text.
func AnswerMessage(id int64, result json.RawMessage, err error) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","id":`), strconv.FormatInt(id, 10)...)
	if err == nil {
		return append(append(append(b, `,"result":`...), result...), '}')
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return append(append(append(b, `,"error":`...), texts.JSON(wire)...), '}')
	}
	return append(append(append(b, `,"error":{"message":`...), texts.JSON(err.Error())...), "}}"...)
}

// Message is a request or notification of the server as the protocol writes it.
func (e *Envelope) Message() []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	for _, m := range []struct {
		name  string
		value []byte
	}{{"id", e.ID}, {"method", e.Method}, {"params", e.Params}} {
		if m.value != nil {
			b = append(append(append(append(b, `,"`...), m.name...), `":`...), m.value...)
		}
	}
	return append(b, '}')
}
