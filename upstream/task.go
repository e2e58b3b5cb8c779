package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxTaskID    = 4 << 10  // bytes: some servers write all that they need to know into it
	maxTaskWords = 64 << 10 // bytes of a status message that are read

	leastPoll = 100 * time.Millisecond // between two requests for a task, whatever the server says
	firstPoll = time.Second            // where the server does not say; it doubles
	slowPoll  = 5 * time.Second        // up to this
	mostPoll  = time.Minute            // whatever the server says
)

// A task is work that a server goes on with after it has answered a call. There are two forms: in that of 2025-11-25 its
// result has a request of its own, in that of 2026-07-28 the task comes with its result.
type task struct {
	id     string
	inline bool // it is of the newer form

	status   string
	words    string        // about the status, in one line
	interval time.Duration // between two requests for it; 0: the server does not say

	result, failure, requests json.RawMessage // of the newer form
}

// An answeredTask is the answer of a tool with a task, which is not the result of the call.
type answeredTask struct{ task *task }

// Error implements error.
func (answeredTask) Error() string { return "the tool answered with a task" }

// startedTask reads the task that a result of a call stands for.
func startedTask(raw json.RawMessage, inline bool) error {
	t, err := readTask(raw)
	if err == nil {
		err = checkTaskID(t.id)
	}
	if err != nil {
		return stages.Errorf(stages.ToolError, "report it to the makers of the server", "the tool answered with a task that is not valid: %w", err)
	}
	t.inline = inline
	return answeredTask{t}
}

// checkTaskID refuses an id that cannot be kept or sent: in HTTP it is a header as well.
func checkTaskID(id string) error {
	switch {
	case id == "":
		return errors.New("it has no id")
	case len(id) > maxTaskID:
		return fmt.Errorf("its id has %d bytes, more than %d", len(id), maxTaskID)
	case strings.ContainsFunc(id, unicode.IsControl) || strings.TrimSpace(id) != id:
		return errors.New("its id has control characters, or blanks around it")
	}
	return nil
}

// readTask reads a task. Members that are not as they should be count as absent, but for the id.
func readTask(raw json.RawMessage) (*task, error) {
	t := new(task)
	var err error
	if !rpc.Members(raw, func(name, value []byte) {
		switch string(name) {
		case "taskId":
			err = readTaskID(value, &t.id)
		case "status":
			t.status = rpc.Text(value[:min(len(value), maxTaskID)])
		case "statusMessage":
			if len(value) <= maxTaskWords {
				t.words = rpc.ProgressMessage(rpc.Text(value))
			}
		case "pollInterval", "pollIntervalMs":
			t.interval = readInterval(value)
		case "result":
			t.result = value
		case "error":
			t.failure = value
		case "inputRequests":
			t.requests = value
		}
	}) {
		return nil, fmt.Errorf("it is not an object but %s", texts.Cut(string(raw[:min(len(raw), maxErrorText)]), 80))
	}
	return t, err
}

func readTaskID(value []byte, id *string) error {
	if len(value) > 6*maxTaskID+2 { // so long can it be in escapes
		return fmt.Errorf("its id takes %d bytes", len(value))
	}
	if json.Unmarshal(value, id) != nil {
		return fmt.Errorf("its id is %s", texts.Cut(string(value), 80))
	}
	return nil
}

// readInterval reads a number of milliseconds, and keeps it within our bounds. Anything but a positive number says nothing.
func readInterval(value []byte) time.Duration {
	ms, err := strconv.ParseFloat(string(value), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || !(ms > 0) {
		return 0
	}
	return time.Duration(max(float64(leastPoll), min(ms*float64(time.Millisecond), float64(mostPoll))))
}

// over reports whether the task has ended.
func (t *task) over() bool {
	return t.status == "completed" || t.status == "failed" || t.status == "cancelled"
}

// pause is how long to wait before a task is asked for again, after n requests.
func (t *task) pause(n int) time.Duration {
	if t.interval > 0 {
		return t.interval
	}
	return min(firstPoll<<min(n, 10), slowPoll)
}

// A taskHandle is what is kept of a task, so that another call can wait for it.
type taskHandle struct {
	ID     string `json:"id"`
	Inline bool   `json:"inline,omitempty"`
	Server string `json:"server,omitempty"` // its identity: an id may be all that one needs to read the result

	Declared *declared `json:"declared,omitempty"` // by the session that it was begun on
}

func (t *task) handle(server string, by declared) string {
	text, err := json.Marshal(taskHandle{t.id, t.inline, server, &by})
	if err != nil {
		panic("upstream: internal error: " + err.Error()) // text can always be encoded
	}
	return string(text)
}

// declaredFor is what the session has declared that a task was begun on, nil if that is not known.
func declaredFor(handle string) *declared {
	var h taskHandle
	_ = json.Unmarshal([]byte(handle), &h) // taskOf reports the error
	return h.Declared
}

// errOtherServer is the error of a task whose server has another address or command by now.
var errOtherServer = errors.New("the configuration of the server has changed since, and another server does not know the task")

// taskOf is the task that a handle stands for.
func taskOf(handle, server string) (*task, error) {
	var h taskHandle
	if err := json.Unmarshal([]byte(handle), &h); err != nil {
		return nil, fmt.Errorf("reading what is kept of a task: %w", err)
	}
	if err := checkTaskID(h.ID); err != nil {
		return nil, fmt.Errorf("reading what is kept of a task: %w", err)
	}
	if h.Server != server {
		return nil, errOtherServer
	}
	return &task{id: h.ID, inline: h.Inline}, nil
}
