package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway/forms"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

const methodElicit = "elicitation/create"

// Bounds of one question and its answer, in bytes.
const (
	mostQuestion = 64 << 10
	mostWords    = 4 << 10 // a server's words for people
	mostURL      = 2 << 10
	mostAnswer   = 64 << 10
)

// An inquiry is a server's question in the form in which a client is asked.
type inquiry struct {
	request mcp.InputRequest
	form    *forms.Form                                           // for a person; nil: the question has none
	read    func(answer json.RawMessage) (json.RawMessage, error) // checks the client's answer
}

// questions are the kinds of questions, and whether somebody can answer them.
var questions = map[string]struct {
	can  func(*stages.Asker) bool
	make func(stages.Question) (inquiry, error)
}{
	methodElicit + " form": {func(a *stages.Asker) bool { return a.Form }, formQuestion},
	methodElicit + " url":  {func(a *stages.Asker) bool { return a.URL }, urlQuestion},
	methodSample + " ":     {func(a *stages.Asker) bool { return a.Sampling }, sampleQuestion},
}

// newInquiry reads a server's question. The error is for the server.
func newInquiry(q stages.Question, client *stages.Asker) (inquiry, error) {
	var params struct {
		Mode string `json:"mode"`
	}
	if len(q.Params) > mostQuestion {
		return inquiry{}, fmt.Errorf("the question has %d bytes, more than %d", len(q.Params), mostQuestion)
	}
	if err := json.Unmarshal(q.Params, &params); err != nil {
		return inquiry{}, errors.New("the parameters of the question are not a JSON object")
	}
	if params.Mode == "" && q.Method == methodElicit {
		params.Mode = "form"
	}
	kind := questions[q.Method+" "+params.Mode]
	switch {
	case kind.make == nil:
		return inquiry{}, fmt.Errorf("there are no questions of the method %.100q and the mode %.100q", q.Method, params.Mode)
	case !kind.can(client):
		return inquiry{}, fmt.Errorf("the client takes no questions of the method %s and the mode %q", q.Method, params.Mode)
	}
	return kind.make(q)
}

// askedBy says which call of which server asks, and fences the server's own words.
func askedBy(q stages.Question, what, own string) string {
	text := fmt.Sprintf("The server %s %s in a call of its tool %s", texts.Quote(shown(q.Server)), what, texts.Quote(shown(q.Tool)))
	if q.Item != "" {
		text += " (" + texts.Plain(texts.Cut(q.Item, mostKept), false) + ")"
	}
	if own == "" {
		return text + "."
	}
	return text + ". These are its own words:\n" + strings.TrimRight(Fenced(texts.Plain(texts.Cut(own, mostWords), true)), "\n")
}

// cleaned is a text of a server that a client may show on a line.
func cleaned(text string) string { return texts.Plain(texts.Cut(text, mostWords), false) }

// formQuestion is a form for a person.
func formQuestion(q stages.Question) (inquiry, error) {
	var params struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
	}
	if err := json.Unmarshal(q.Params, &params); err != nil {
		return inquiry{}, errors.New("message is not a string")
	}
	form, err := forms.Read(params.Schema, cleaned)
	if err != nil {
		return inquiry{}, err
	}
	return inquiry{
		&mcp.ElicitParams{Mode: "form", Message: askedBy(q, "asks for input", params.Message), RequestedSchema: form.Schema}, form,
		func(answer json.RawMessage) (json.RawMessage, error) { return readElicited(answer, form) },
	}, nil
}

// urlQuestion asks a person to open a page.
func urlQuestion(q stages.Question) (inquiry, error) {
	var params struct {
		Message string `json:"message"`
		URL     string `json:"url"`
		ID      string `json:"elicitationId"`
	}
	if err := json.Unmarshal(q.Params, &params); err != nil {
		return inquiry{}, errors.New("message, url and elicitationId are strings")
	}
	host, err := hostOf(params.URL, q.Own)
	if err != nil {
		return inquiry{}, err
	}
	if len(params.ID) > mostKept || cleaned(params.ID) != params.ID {
		return inquiry{}, errors.New("the elicitationId is too long, or has control characters")
	}
	message := askedBy(q, "asks you to open a page of "+host, params.Message)
	return inquiry{
		&mcp.ElicitParams{Mode: "url", Message: message, URL: params.URL, ElicitationID: params.ID}, nil,
		func(answer json.RawMessage) (json.RawMessage, error) { return readElicited(answer, nil) },
	}, nil
}

// hostOf returns the host of a page that a person may be asked to open. A page of our own may be on this machine.
func hostOf(address string, own bool) (string, error) {
	u, err := url.Parse(address)
	visible := !strings.ContainsFunc(address, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`\"<>^{|}`+"`", c) })
	switch {
	case len(address) > mostURL:
		return "", fmt.Errorf("the URL has %d bytes, more than %d", len(address), mostURL)
	case err != nil || !visible:
		return "", errors.New("the URL is not one of visible ASCII characters")
	case own && u.Scheme == "http" && isLoopback(u.Host):
	case u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return "", errors.New("the URL does not begin with https:// and a host")
	case u.User != nil:
		return "", errors.New("the URL has a user's name before its host")
	}
	return u.Host, nil
}

// actions are what a person can do with a question. Only the last one has answers.
var actions = map[string]bool{"decline": false, "cancel": false, "accept": true}

// elicited is the result of a question to a person.
type elicited struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// cancelled is the result of a question that nobody has answered.
var cancelled = json.RawMessage(`{"action":"cancel"}`)

// readElicited checks a person's answer to a form, or to a question without one.
func readElicited(answer json.RawMessage, form *forms.Form) (json.RawMessage, error) {
	var result elicited
	err := json.Unmarshal(answer, &result)
	accepted, known := actions[result.Action]
	if err != nil || !known {
		return nil, errors.New("the action of the answer is neither accept nor decline nor cancel")
	}
	if !accepted || form == nil {
		return json.Marshal(elicited{Action: result.Action})
	}
	if result.Content, err = form.Check(result.Content); err != nil {
		return nil, err
	}
	return json.Marshal(result)
}
