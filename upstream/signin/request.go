package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// maxWords bounds the words of a server that an error repeats, in bytes.
const maxWords = 300

// errAbsent is wrapped by the error of a document that is not there.
var errAbsent = errors.New("there is no such document")

// getJSON reads a document. An answer that is no JSON by its type is the page of a server that answers everything with one.
func getJSON(ctx context.Context, c *http.Client, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the address of a document is malformed")
	}
	req.Header.Set("Accept", "application/json")
	status, media, body, err := do(c, req)
	switch {
	case err != nil:
		return err
	case status/100 == 4 && status != http.StatusTooManyRequests:
		return fmt.Errorf("%s: %w: %d %s", shown(req.URL), errAbsent, status, http.StatusText(status))
	case status != http.StatusOK:
		return fmt.Errorf("%s: %d %s", shown(req.URL), status, http.StatusText(status))
	case media != "application/json" && !strings.HasSuffix(media, "+json"):
		return fmt.Errorf("%s: %w: it is of type %.60q, not JSON", shown(req.URL), errAbsent, media)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: the document is not as the specification says", shown(req.URL))
	}
	return nil
}

// shown is an address in a message: without its query.
func shown(u *url.URL) string { return texts.Cut(origin(u)+u.EscapedPath(), maxWords) }

// do sends a request and reads the answer whole. Its error does not show the address, which may hold secrets.
func do(c *http.Client, req *http.Request) (status int, media string, body []byte, err error) {
	resp, err := c.Do(req)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		body, err = io.ReadAll(resp.Body)
	}
	if err != nil {
		return 0, "", nil, withoutAddress(req.URL, err)
	}
	media, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type")) // a malformed one is none
	return resp.StatusCode, media, body, nil
}

// withoutAddress replaces the address in an error of the HTTP client by its origin.
func withoutAddress(u *url.URL, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		err = fmt.Errorf("no whole answer in time: %w", err)
	}
	return fmt.Errorf("%s: %w", origin(u), err)
}

// A Refusal is an error that an authorization server has answered with.
type Refusal struct {
	Code  string // such as access_denied
	Words string // of the server, for people
}

// Error implements error.
func (r *Refusal) Error() string {
	text := "the authorization server refuses: " + r.Code
	if r.Words != "" {
		text += ": " + r.Words
	}
	return text
}

// refusalOf makes a refusal. The words of the server do not repeat the secrets.
func refusalOf(code, words string, secrets ...string) *Refusal {
	return &Refusal{Code: plain(code, 60, secrets), Words: plain(words, maxWords, secrets)}
}

// plain returns text of a server for a message: one line, cut, without secrets.
func plain(text string, most int, secrets []string) string {
	var words []string
	for _, secret := range secrets {
		if len(secret) >= 4 {
			words = append(words, secret)
		}
	}
	text = rpc.NewHider(words).Hide(texts.Cut(text, 4*most))
	fields := strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 })
	return texts.Cut(strings.Join(fields, " "), most)
}

// refusalIn finds the refusal in an answer.
func refusalIn(u *url.URL, status int, body []byte, secrets ...string) error {
	var said struct {
		Code  string `json:"error"`
		Words string `json:"error_description"`
	}
	if err := json.Unmarshal(body, &said); err != nil || said.Code == "" {
		return fmt.Errorf("%s: %d %s", origin(u), status, http.StatusText(status))
	}
	return refusalOf(said.Code, said.Words, secrets...)
}
