package questions

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// maxAnswer bounds an answer to a question, in bytes.
const maxAnswer = 1 << 20

var (
	errDeclined = errors.New("the caller of the tool does not answer it")
	errAnswer   = errors.New("the answer is not valid")
)

// actions are those with which an elicitation ends.
var actions = map[string]bool{"accept": true, "decline": true, "cancel": true}

// CheckAnswer returns an answer on one line, if it can be one.
func CheckAnswer(method string, result json.RawMessage) (json.RawMessage, error) {
	var line bytes.Buffer
	if len(result) > maxAnswer || json.Compact(&line, result) != nil || line.Len() == 0 || line.Bytes()[0] != '{' {
		return nil, errAnswer
	}
	if method == rpc.Elicitation && !actions[ActionOf(line.Bytes())] {
		return nil, errAnswer
	}
	return line.Bytes(), nil
}

// ActionOf returns what somebody has done with an elicitation, or "" if the answer does not say it.
func ActionOf(answer json.RawMessage) string {
	var said struct {
		Action string `json:"action"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return ""
	}
	return said.Action
}
