package results

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxAtOnce   = 16      // questions of one result
	maxState    = 1 << 20 // bytes of the state that goes back to the server
	maxInputKey = 256     // bytes of the name of a question, as it is written
)

// InputRequired is a result that asks something.
type InputRequired struct {
	Requests []InputRequest
	State    json.RawMessage // a JSON string, or nil
}

// An InputRequest is one question in a result.
type InputRequest struct {
	Key    []byte // as it is written, without quotes
	Method string
	Params json.RawMessage
}

// ReadInputRequired reads a result that asks something; nil: it asks nothing, or is not valid, which shows elsewhere.
func ReadInputRequired(raw json.RawMessage) (*InputRequired, error) {
	if !bytes.Contains(raw, []byte("input_required")) && !bytes.Contains(raw, []byte(`"inputRequests"`)) {
		return nil, nil
	}
	r, err := decodeResult(raw)
	if err != nil || r.ResultType != "input_required" && rpc.IsNull(r.InputRequests) {
		return nil, nil
	}
	in := &InputRequired{}
	if !rpc.IsNull(r.RequestState) {
		if in.State = r.RequestState; in.State[0] != '"' || len(in.State) > maxState {
			return nil, wrongInput("its requestState is no text of at most %d bytes", maxState)
		}
	}
	in.Requests, err = ReadInputRequests(r.InputRequests)
	return in, err
}

// ReadInputRequests reads the questions of a result or of a task.
func ReadInputRequests(raw json.RawMessage) (list []InputRequest, err error) {
	if rpc.IsNull(raw) {
		return nil, nil
	}
	seen := map[string]bool{}
	if !json.Valid(raw) || !rpc.Members(raw, func(key, value []byte) {
		q, wrong := readInputRequest(key, value)
		switch name := rpc.Name(key); {
		case err != nil:
		case len(list) == maxAtOnce:
			err = wrongInput("it asks more than %d things at once", maxAtOnce)
		case wrong != nil:
			err = wrong
		case seen[name]:
			err = wrongInput("two questions have the same name")
		default:
			seen[name] = true
			list = append(list, q)
		}
	}) {
		return nil, wrongInput("its inputRequests are not a valid object")
	}
	return list, err
}

func readInputRequest(key, value []byte) (q InputRequest, err error) {
	q.Key = key
	var method []byte
	object := rpc.Members(value, func(name, value []byte) {
		switch string(name) {
		case "method":
			method = value
		case "params":
			q.Params = value
		}
	})
	q.Method = rpc.Text(method)
	if !object || q.Method == "" || len(key) > maxInputKey || len(q.Params) > rpc.MaxQuestion {
		return q, wrongInput("a question has no method, or more than %d bytes", rpc.MaxQuestion)
	}
	return q, nil
}

// wrongInput is the error of a tool whose questions are not asked.
func wrongInput(format string, args ...any) error {
	return Fault("the tool asks for input in a wrong way: %w", fmt.Errorf(format, args...))
}
