package rpc

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	maxProgress        = 64 << 10 // bytes of the parameters of a notification that are read
	maxProgressMessage = 200      // characters of its message
	maxProgressNumber  = 1e15     // a larger number counts as this one: sums of them stay exact
)

// Progress is how far a request is, as its server says.
type Progress struct {
	Done, Total float64 // not below zero; Total is 0 if the server does not know it
	Message     string  // one line of printable characters, at most 200; may be empty
}

// ReportProgress passes the parameters of notifications/progress to Progress, if they are for this request.
func (r *Request) ReportProgress(params []byte) {
	if token, p, ok := readProgress(params); ok && r.Progress != nil && token == r.Token {
		r.Progress(p)
	}
}

// routeProgress passes a notification to its pending request.
func (c *Conn) routeProgress(params []byte) {
	token, p, ok := readProgress(params)
	if !ok {
		return
	}
	if r := c.withToken(token); r != nil {
		r.Progress(p)
	}
}

// withToken is the pending request with a token, or nil.
func (c *Conn) withToken(token int64) *Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.pending {
		if w.request.Progress != nil && w.request.Token == token {
			return w.request
		}
	}
	return nil
}

// readProgress reads the parameters of notifications/progress. Some servers return the token as a string.
func readProgress(params []byte) (token int64, p Progress, ok bool) {
	var n struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress float64         `json:"progress"`
		Total    float64         `json:"total"`
		Message  string          `json:"message"`
	}
	if len(params) > maxProgress || json.Unmarshal(params, &n) != nil {
		return 0, Progress{}, false
	}
	token, err := strconv.ParseInt(strings.Trim(string(n.Token), `"`), 10, 64)
	return token, Progress{progressNumber(n.Progress), progressNumber(n.Total), ProgressMessage(n.Message)}, err == nil
}

func progressNumber(n float64) float64 { return math.Max(0, math.Min(n, maxProgressNumber)) }

// ProgressMessage makes one short line of a server's text, without control characters.
func ProgressMessage(text string) string { return texts.Fit(OneLine(text), maxProgressMessage) }

// OneLine makes one line of a server's text, without control characters.
func OneLine(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) && c != utf8.RuneError {
			return c
		}
		return ' '
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
