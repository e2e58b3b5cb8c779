package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxAtOnce   = 16  // questions of one result, or of a task at a time
	maxInputKey = 256 // bytes of the name of a question, as it is written
)

// An inputRequest is one question of the newer era, in the result of a call or in what the server says of a task.
type inputRequest struct {
	key    []byte // as it is written, without quotes
	method string
	params json.RawMessage
}

// readInputRequests reads questions, without those that have been answered, which it knows by their names.
func readInputRequests(raw json.RawMessage, answered map[string]bool) (list []inputRequest, err error) {
	if isNull(raw) {
		return nil, nil
	}
	seen := map[string]bool{}
	if !rpc.Members(raw, func(key, value []byte) {
		name := rpc.Name(key)
		if err != nil || answered[name] {
			return
		}
		q, wrong := readInputRequest(key, value)
		switch {
		case len(list) == maxAtOnce:
			err = fmt.Errorf("it asks more than %d things at once", maxAtOnce)
		case wrong != nil:
			err = wrong
		case seen[name]:
			err = errors.New("two questions have the same name")
		default:
			seen[name] = true
			list = append(list, q)
		}
	}) {
		return nil, errors.New("its inputRequests are not an object")
	}
	return list, err
}

func readInputRequest(key, value []byte) (q inputRequest, err error) {
	q.key = key
	var method []byte
	object := rpc.Members(value, func(name, value []byte) {
		switch string(name) {
		case "method":
			method = value
		case "params":
			q.params = value
		}
	})
	q.method = rpc.Text(method)
	switch {
	case len(key) > maxInputKey:
		return q, fmt.Errorf("the name of a question has %d bytes, more than %d", len(key), maxInputKey)
	case !json.Valid([]byte(`"` + string(key) + `"`)):
		return q, errors.New("the name of a question is not valid")
	case !object || q.method == "" || len(q.params) > rpc.MaxQuestion:
		return q, fmt.Errorf("a question has no method, or more than %d bytes", rpc.MaxQuestion)
	}
	return q, nil
}

// inputs asks everything at the same time, and returns the answers as an object.
func (a *asking) inputs(ctx context.Context, list []inputRequest) ([]byte, error) {
	answers := make([]json.RawMessage, len(list))
	g, ctx := errgroup.WithContext(ctx)
	for i, q := range list {
		g.Go(func() (err error) {
			answers[i], err = a.input(ctx, q)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	object := bytes.NewBufferString("{")
	for i, q := range list {
		object.WriteString(choose(i == 0, `"`, `,"`))
		object.Write(q.key)
		object.WriteString(`":`)
		object.Write(answers[i])
	}
	object.WriteByte('}')
	return object.Bytes(), nil
}

// input answers one question. A person who does not answer has cancelled it; for others there is no such answer.
func (a *asking) input(ctx context.Context, q inputRequest) (json.RawMessage, error) {
	if q.method == methodRoots && a.session.roots != nil {
		return a.session.roots, nil
	}
	answer, err := a.answer(ctx, q.method, bytes.Clone(q.params))
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case rpc.Decline(q.method) != nil:
		return rpc.Decline(q.method), nil
	}
	return nil, stages.Errorf(stages.ToolError, "answer what the tool asks, or use another tool", "the tool asks for input, and got no answer: %w", err)
}
