package signin

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// maxChallenge bounds a header that is parsed, in bytes: the parser's time grows with the square.
const maxChallenge = 8 << 10

// A Challenge is what a server demands when it refuses a request.
type Challenge struct {
	Metadata string   // address of the metadata of the resource; empty: not named
	Scopes   []string // that the request needs; nil: not named
	Code     string   // such as insufficient_scope
}

// ParseChallenge reads the value of a WWW-Authenticate header. It ignores what it does not understand: then the server's
// well-known addresses say where to sign in.
func ParseChallenge(header string) (c Challenge) {
	if len(header) > maxChallenge {
		return c
	}
	all, err := oauthex.ParseWWWAuthenticate([]string{header})
	if err != nil {
		return c
	}
	for _, one := range all {
		if one.Scheme != "bearer" {
			continue
		}
		c = Challenge{one.Params["resource_metadata"], scopesIn(one.Params["scope"]), plain(one.Params["error"], 60, nil)}
		if c.Metadata != "" {
			break
		}
	}
	return c
}

// Requests that a server refuses unless it works without a sign-in. Some servers refuse only the first, which begins no
// session; some know it only in a session, and refuse the second.
const (
	question1 = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	question2 = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"mcsh","version":"0"}}}`
)

// ask makes requests without a token. It returns the challenge of a refusal, and whether there was one.
func (s Server) ask(ctx context.Context) (challenge string, refused bool, err error) {
	for _, question := range []string{question1, question2} {
		if challenge, refused, err = s.askOnce(ctx, question); refused || err != nil {
			break
		}
	}
	return challenge, refused, err
}

func (s Server) askOnce(ctx context.Context, question string) (challenge string, refused bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(question))
	if err != nil {
		return "", false, errors.New("the address of the server is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return "", false, withoutAddress(req.URL, err)
	}
	_ = resp.Body.Close() // only the header counts
	if resp.StatusCode != http.StatusUnauthorized {
		return "", false, nil
	}
	return bestChallenge(resp.Header.Values("WWW-Authenticate")), true, nil
}

// bestChallenge picks the header that says most.
func bestChallenge(headers []string) (best string) {
	for _, header := range headers {
		if best == "" || ParseChallenge(header).Metadata != "" {
			best = header
		}
	}
	return best
}
