package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	maxOpenInputs = 16  // questions of a task at a time
	maxInputs     = 100 // of one task in all
	maxKeyOfInput = 256 // bytes of the name of a question
)

// An input is what a task of the newer form asks for.
type input struct {
	key    string // as it is written, without quotes
	method string
	params json.RawMessage
	answer json.RawMessage
}

// answer answers what the task asks for, all at the same time. In the older form the server makes requests of its own, while
// we ask for the result.
func (w *waiting) answer(ctx context.Context) (json.RawMessage, error) {
	if !w.task.inline {
		return w.fetch(ctx, inputLimit)
	}
	inputs, err := w.inputs()
	if err == nil && len(inputs) > 0 {
		err = w.respond(ctx, inputs)
	}
	if err != nil {
		return nil, err
	}
	return w.sleep(ctx)
}

// inputs are those that the task asks for now and that have not been answered.
func (w *waiting) inputs() (list []*input, err error) {
	rpc.Members(w.task.requests, func(name, value []byte) {
		in := &input{key: string(name)}
		if err != nil || w.asked[in.key] {
			return
		}
		var r struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		switch {
		case len(name) > maxKeyOfInput:
			err = abandon("%s asks for an input whose name has %d bytes, more than %d", w.label(), len(name), maxKeyOfInput)
		case len(list) == maxOpenInputs:
			err = abandon("%s asks for more than %d inputs at a time", w.label(), maxOpenInputs)
		case len(w.asked)+len(list) == maxInputs:
			err = abandon("%s asks for more than %d inputs", w.label(), maxInputs)
		case json.Unmarshal(value, &r) != nil || !json.Valid([]byte(`"`+in.key+`"`)):
			err = abandon("%s asks for an input that is not valid: %s", w.label(), texts.Cut(string(value[:min(len(value), maxErrorText)]), 80))
		}
		in.method, in.params = r.Method, r.Params
		list = append(list, in)
	})
	return list, err
}

// respond gets the answers to inputs and sends them. The time of the call stands still meanwhile.
func (w *waiting) respond(ctx context.Context, inputs []*input) error {
	w.clock.Stop()
	left := time.Until(w.until)
	errs := make([]error, len(inputs))
	var all sync.WaitGroup
	for i, in := range inputs {
		all.Go(func() { in.answer, errs[i] = w.answerTo(ctx, in) })
	}
	all.Wait()
	w.until = time.Now().Add(left)
	w.clock.Reset(left)
	answers := bytes.NewBufferString("{")
	for i, in := range inputs {
		if errs[i] != nil {
			return errs[i]
		}
		if i > 0 {
			answers.WriteByte(',')
		}
		answers.WriteString(`"` + in.key + `":`)
		answers.Write(in.answer)
		if w.asked == nil {
			w.asked = map[string]bool{}
		}
		w.asked[in.key] = true
	}
	answers.WriteByte('}')
	_, err := w.request(ctx, "tasks/update", requestLimit, nil, []byte(`,"inputResponses":`), answers.Bytes())
	return err
}

// refusals are the answers to inputs that nobody gives. Without one, the task cannot go on.
var refusals = map[string]string{"elicitation/create": `{"action":"cancel"}`}

// answerTo asks the caller for an input, or refuses it.
func (w *waiting) answerTo(ctx context.Context, in *input) (json.RawMessage, error) {
	why := "nobody can be asked"
	if w.call.Asker != nil && asks(w.call.Asker, in) {
		answer, err := w.call.Asker.Ask(ctx, stages.Question{
			Server: w.sc.server.Name, Tool: w.call.Name, Item: w.call.Item, Method: in.method, Params: in.params,
		})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil && json.Valid(answer):
			return answer, nil
		case err != nil:
			why = err.Error()
		}
	}
	if refusal := refusals[in.method]; refusal != "" {
		return json.RawMessage(refusal), nil
	}
	e := abandon("%s asks for %s in the middle of its work, and gets no answer: %s", w.label(), texts.Quote(texts.Cut(in.method, 80)), why)
	e.Hint = "use another tool"
	return nil, e
}

// asks reports whether the caller can answer an input.
func asks(a *stages.Asker, in *input) bool {
	var params struct {
		Mode string `json:"mode"`
	}
	_ = json.Unmarshal(in.params, &params) // without a mode it is a form
	switch {
	case in.method == "sampling/createMessage":
		return a.Sampling
	case in.method != "elicitation/create":
		return false
	case params.Mode == "url":
		return a.URL
	}
	return a.Form
}
