package questions

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// maxAddress bounds an address that a server wants somebody to open, in bytes.
const maxAddress = 2 << 10

// elicitation is what the parameters of a question to a person must say.
type elicitation struct {
	Mode            string `json:"mode"`
	Message         string `json:"message"`
	URL             string `json:"url"`
	ElicitationID   string `json:"elicitationId"`
	RequestedSchema *struct {
		Type       string                `json:"type"`
		Properties map[string]formMember `json:"properties"`
	} `json:"requestedSchema"`
}

// A formMember is one question of a form. Forms are flat.
type formMember struct {
	Type string `json:"type"`
}

// formTypes are the types of the members of forms; an array holds what somebody chooses of a list.
var formTypes = map[string]bool{"string": true, "number": true, "integer": true, "boolean": true, "array": true}

// wrongQuestion is the error for a server that asks in a wrong way.
func wrongQuestion(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the question is not valid: " + why}
}

// Check refuses a question that is not valid, or of a kind that its caller has not declared.
func Check(d Declared, method string, params json.RawMessage) error {
	switch {
	case method != rpc.Elicitation && (method != rpc.Sampling || !d.Sampling):
		return errDeclined
	case len(params) > rpc.MaxQuestion:
		return wrongQuestion("it is too long")
	case len(params) == 0 || params[0] != '{' || !json.Valid(params):
		return wrongQuestion("its parameters are not a JSON object")
	case method == rpc.Sampling:
		return nil
	}
	var q elicitation
	if json.Unmarshal(params, &q) != nil {
		return wrongQuestion("its members have other types")
	}
	check, known := modes[q.mode()]
	if !known {
		return wrongQuestion("its mode is unknown")
	}
	return check(&q, d)
}

// mode is the mode of an elicitation. Older servers do not write it.
func (q *elicitation) mode() string {
	if q.Mode == "" {
		return "form"
	}
	return q.Mode
}

// modes check the elicitations of each mode.
var modes = map[string]func(*elicitation, Declared) error{
	"form": func(q *elicitation, d Declared) error {
		if !d.Form {
			return errDeclined
		}
		if q.RequestedSchema == nil || q.RequestedSchema.Type != "object" {
			return wrongQuestion("its requestedSchema is not of an object")
		}
		for _, member := range q.RequestedSchema.Properties {
			if !formTypes[member.Type] {
				return wrongQuestion("a member of its requestedSchema is no string, number, boolean or choice")
			}
		}
		return nil
	},
	"url": func(q *elicitation, d Declared) error {
		if !d.URL {
			return errDeclined
		}
		if plainAddress(q.URL) == "" {
			return wrongQuestion("its url is not an address of http or https")
		}
		return nil
	},
}

// plainAddress is an address that somebody may open in a browser, in characters that cannot look like others, and empty for
// anything else: an address without a host, with a name and password, or of another scheme.
func plainAddress(text string) string {
	if len(text) > maxAddress || strings.ContainsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || !isASCII(u.Host) {
		return ""
	}
	return u.String()
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c > unicode.MaxASCII })
}
