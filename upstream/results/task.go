package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxTaskID    = 4 << 10  // bytes: some servers write all that they need to know into it
	maxTaskWords = 64 << 10 // bytes of a status message that are read

	leastPoll = 100 * time.Millisecond // the least time between two requests for a task, even if the server asks for less
	firstPoll = time.Second            // where the server does not say; it doubles
	slowPoll  = 5 * time.Second        // up to this
	mostPoll  = time.Minute            // the most, even if the server asks for more
	firstTry  = 200 * time.Millisecond // before a request that has failed is made again; it doubles
)

// A Task is work that a server goes on with after it has answered a call. There are two forms: in that of 2025-11-25 its
// result has a request of its own, in that of 2026-07-28 the task comes with its result.
type Task struct {
	ID     string
	Inline bool // it is of the newer form

	Status   string
	Words    string        // about the status, in one line
	interval time.Duration // between two requests for it; 0: the server does not say

	Result, Failure, Requests json.RawMessage // of the newer form
}

// A Started is the answer of a tool with a task, which is not the result of the call.
type Started struct{ Task *Task }

// Error implements error.
func (Started) Error() string { return "the tool answered with a task" }

// started reads the task that a result of a call stands for.
func started(raw json.RawMessage, inline bool) error {
	t, err := ReadTask(raw)
	if err == nil {
		err = checkTaskID(t.ID)
	}
	if err != nil {
		return Fault("the tool answered with a task that is not valid: %w", err)
	}
	t.Inline = inline
	return Started{t}
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

// ReadTask reads a task. Members that are not as they should be count as absent, but for the id.
func ReadTask(raw json.RawMessage) (*Task, error) {
	t := new(Task)
	var err error
	if !rpc.Members(raw, func(name, value []byte) {
		switch string(name) {
		case "taskId":
			err = readTaskID(value, &t.ID)
		case "status":
			t.Status = rpc.Text(value[:min(len(value), maxTaskID)])
		case "statusMessage":
			if len(value) <= maxTaskWords {
				t.Words = rpc.ProgressMessage(rpc.Text(value))
			}
		case "pollInterval", "pollIntervalMs":
			t.interval = readInterval(value)
		case "result":
			t.Result = value
		case "error":
			t.Failure = value
		case "inputRequests":
			t.Requests = value
		}
	}) {
		return nil, fmt.Errorf("it is not an object but %s", texts.Cut(string(raw[:min(len(raw), maxErrorText)]), 80))
	}
	return t, err
}

// readTaskID reads an id.
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

// Over reports whether the task has ended.
func (t *Task) Over() bool {
	return t.Status == rpc.TaskCompleted || t.Status == rpc.TaskFailed || t.Status == rpc.TaskCancelled
}

// Pause is how long to wait before a task is asked for again, after n requests.
func (t *Task) Pause(n int) time.Duration {
	if t.interval > 0 {
		return t.interval
	}
	return min(firstPoll<<min(n, 10), slowPoll)
}

// Again is how long to wait before a request about the task is made again, of which so many have failed. The server may have asked
// to wait.
func (t *Task) Again(failed int, asked time.Duration) time.Duration {
	return max(t.interval, min(firstTry<<failed, slowPoll), min(asked, mostPoll))
}
