package stages

import (
	"context"
	"encoding/json"
)

// An Asker asks the caller of a run on behalf of servers.
type Asker struct {
	Form, URL, Sampling bool // what the caller can answer

	// Ask waits for the caller's answer to a question: the result of its method. It may be called concurrently.
	Ask func(ctx context.Context, q Question) (json.RawMessage, error)

	// Still stops the clocks of the call and of its run until goOn is called: a person does something elsewhere. Nil: they go on.
	Still func() (goOn func())
}

// A Question is what a server asks in the middle of a call.
type Question struct {
	Server, Tool string
	Item         string          // of a for_each, empty outside
	Method       string          // elicitation/create or sampling/createMessage
	Params       json.RawMessage // as the server has written them
	Own          bool            // mcsh itself asks, on behalf of the server: its page may be on this machine
}
