package results

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/questions"
)

// A taskHandle is what is kept of a task, so that another call can wait for it.
type taskHandle struct {
	ID     string `json:"id"`
	Inline bool   `json:"inline,omitempty"`
	Server string `json:"server,omitempty"` // its identity: an id may be all that one needs to read the result

	Declared *questions.Declared `json:"declared,omitempty"` // by the session that it was begun on
}

// Handle is what is kept of the task, on a server of that identity, begun on a session that has declared by.
func (t *Task) Handle(server string, by questions.Declared) string {
	return texts.JSON(taskHandle{t.ID, t.Inline, server, &by})
}

// DeclaredFor is what the session has declared that a task was begun on, nil if that is not known.
func DeclaredFor(handle string) *questions.Declared {
	var h taskHandle
	_ = json.Unmarshal([]byte(handle), &h) // TaskOf reports the error
	return h.Declared
}

// errOtherServer is the error of a task whose server has another address or command by now.
var errOtherServer = errors.New("the configuration of the server has changed since, and another server does not know the task")

// TaskOf is the task that a handle stands for.
func TaskOf(handle, server string) (*Task, error) {
	var h taskHandle
	err := json.Unmarshal([]byte(handle), &h)
	if err == nil {
		err = checkTaskID(h.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is kept of a task: %w", err)
	}
	if h.Server != server {
		return nil, errOtherServer
	}
	return &Task{ID: h.ID, Inline: h.Inline}, nil
}
