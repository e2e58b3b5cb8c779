package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ErrEnded is the error of a question whose request has ended: nobody waits for the answer.
var ErrEnded = errors.New("the request has ended")

// MaxQuestion bounds what a server asks, in bytes of the parameters of one question.
const MaxQuestion = 64 << 10

// MaxQuestions is how many questions of one request are asked. A server that asks on gets refusals.
const MaxQuestions = 32

// A Question is what a server asks in the middle of a request.
type Question struct {
	Method string
	Params json.RawMessage

	// Unnamed says that the question named no request: it belongs to the only one in whose middle the server can have asked.
	Unnamed bool
}

// relatedTask is the id of the task that a question names, or empty.
func relatedTask(params []byte) string {
	var p struct {
		Meta struct {
			Task struct {
				ID string `json:"taskId"`
			} `json:"io.modelcontextprotocol/related-task"`
		} `json:"_meta"`
	}
	if len(params) > MaxQuestion || !bytes.Contains(params, []byte("related-task")) || json.Unmarshal(params, &p) != nil {
		return ""
	}
	return p.Meta.Task.ID
}

// asker is the request or task in whose middle a server asks, nil if that is not certain. came is the request on whose stream the
// question came, if it came on one. named says that the question leaves no doubt, though nobody may wait for the answer.
func (r *Replies) asker(params []byte, came *Request) (of *Request, named bool) {
	id := relatedTask(params)
	if id != "" {
		of = r.InFlight.ofTask(id)
	}
	switch {
	case of != nil:
		return of, true
	case came != nil:
		return came.asker(), true
	case id != "":
		return nil, true
	}
	return r.InFlight.only(), false
}

// The methods of questions.
const (
	Elicitation = "elicitation/create"
	Sampling    = "sampling/createMessage"
)

// Cancelled elicitation and rejected sampling, as the specification has them.
const (
	cancelled = `{"action":"cancel"}`
	rejected  = `{"code":-1,"message":"the request was not answered"}`
)

// IsQuestion reports whether a method asks the caller of a request.
func IsQuestion(method string) bool { return method == Elicitation || method == Sampling }

// Decline is the result of a question that nobody answers, nil where only an error says so.
func Decline(method string) json.RawMessage {
	if method == Elicitation {
		return json.RawMessage(cancelled)
	}
	return nil
}

// declined is the answer to a question that nobody answers.
func declined(method string) string {
	if result := Decline(method); result != nil {
		return `"result":` + string(result)
	}
	return `"error":` + rejected
}

// admit counts a question, and reports whether the request may have it.
func (r *Request) admit() bool { return r.questions.Add(1) <= MaxQuestions }
