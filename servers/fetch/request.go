package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/mcsh-dev/mcsh/servers/tool"
)

const (
	maxURL         = 8 << 10
	maxHeaders     = 64
	maxHeaderBytes = 32 << 10 // of all names and values
	userAgent      = "mcsh-fetch (+https://github.com/mcsh-dev/mcsh)"
	accept         = "application/json, text/html, text/*;q=0.9, */*;q=0.8"
)

type fetchArgs struct {
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	MaxBytes *int64            `json:"max_bytes"`
	As       string            `json:"as"`
}

type requestArgs struct {
	fetchArgs
	Method string          `json:"method"`
	Body   json.RawMessage `json:"body"`
}

var (
	methods  = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	bodiless = []string{"GET", "HEAD"}
	forms    = []string{"auto", "raw", "markdown"}
)

// ownHeaders are the headers that callers must not set, with the reasons.
var ownHeaders = map[string]string{
	"Accept-Encoding":     "compression is handled here",
	"Connection":          "it belongs to the connection",
	"Content-Length":      "it follows from the body",
	"Expect":              "it belongs to the connection",
	"Host":                "it follows from the URL",
	"Http2-Settings":      "it belongs to the connection",
	"Keep-Alive":          "it belongs to the connection",
	"Proxy-Authenticate":  "no proxy is used",
	"Proxy-Authorization": "no proxy is used",
	"Proxy-Connection":    "no proxy is used",
	"Te":                  "it belongs to the connection",
	"Trailer":             "it belongs to the connection",
	"Transfer-Encoding":   "it belongs to the connection",
	"Upgrade":             "it belongs to the connection",
}

// check checks the arguments that build does not check, and returns the size limit of the body.
func (a *requestArgs) check(standard int64) (limit int64, err error) {
	if !slices.Contains(methods, a.Method) {
		return 0, invalid("", "method is %.40q, want one of %s", a.Method, strings.Join(methods, ", "))
	}
	if a.As == "" {
		a.As = forms[0]
	}
	if !slices.Contains(forms, a.As) {
		return 0, invalid("", "as is %.40q, want one of %s", a.As, strings.Join(forms, ", "))
	}
	if len(a.Body) > 0 && slices.Contains(bodiless, a.Method) {
		return 0, invalid("use POST, or put it into the URL's query", "a %s request has no body", a.Method)
	}
	if a.MaxBytes == nil {
		return standard, nil
	}
	if *a.MaxBytes < 1 || *a.MaxBytes > hardMaxBytes {
		return 0, invalid("", "max_bytes is %d, want 1 to %d", *a.MaxBytes, hardMaxBytes)
	}
	return *a.MaxBytes, nil
}

// build makes the request.
func (a *requestArgs) build(ctx context.Context) (*http.Request, error) {
	u, err := parseURL(a.URL)
	if err != nil {
		return nil, err
	}
	body, contentType, err := a.payload()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, a.Method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, invalid("", "making the request: %v", err)
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", accept)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	return req, setHeaders(req.Header, a.Headers)
}

// payload returns the body and its type.
func (a *requestArgs) payload() (body []byte, contentType string, err error) {
	if len(a.Body) == 0 {
		return nil, "", nil
	}
	switch a.Body[0] {
	case '"':
		var text string
		if err := json.Unmarshal(a.Body, &text); err != nil {
			return nil, "", invalid("", "reading the body: %v", err)
		}
		if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
			if json.Valid([]byte(t)) {
				return []byte(text), "application/json", nil
			}
		}
		return []byte(text), "text/plain; charset=utf-8", nil
	case '{', '[':
		return a.Body, "application/json", nil
	}
	return nil, "", invalid("send other JSON values as a string", "body is %.40s, want a string, an object or an array", a.Body)
}

// setHeaders checks the caller's headers and adds them to h.
func setHeaders(h http.Header, headers map[string]string) error {
	if len(headers) > maxHeaders {
		return invalid("", "there are %d headers, at most %d are sent", len(headers), maxHeaders)
	}
	size := 0
	seen := map[string]bool{}
	for name, value := range headers {
		key := http.CanonicalHeaderKey(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return invalid("", "%.60q is not a header name", name)
		case ownHeaders[key] != "":
			return invalid("leave it out", "the header %s cannot be set: %s", key, ownHeaders[key])
		case !httpguts.ValidHeaderFieldValue(value):
			return invalid("", "the value of the header %s contains control characters", key)
		case seen[key]:
			return invalid("", "the header %s is given twice", key)
		}
		seen[key] = true
		if size += len(name) + len(value); size > maxHeaderBytes {
			return invalid("", "the headers have more than %d bytes", maxHeaderBytes)
		}
		h.Set(key, value)
	}
	return nil
}

// parseURL parses a caller's URL.
func parseURL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, invalid("", "the URL has %d bytes, at most %d are possible", len(raw), maxURL)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		// The error's text repeats the URL, which may hold a password.
		return nil, invalid(`give one such as "https://example.com/path?q=x"`, "the URL cannot be parsed")
	}
	return u, checkURL(u)
}

// checkURL checks every requested URL, the caller's and those of redirects.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return invalid(`the URL must begin with "http://" or "https://"`, "%.100q is not an http or https URL", u.Redacted())
	case u.User != nil:
		return invalid("send credentials in an Authorization header", "the URL %.100q contains a user name or password", u.Redacted())
	case u.Hostname() == "" || u.Opaque != "":
		return invalid(`give one such as "https://example.com/path"`, "the URL %.100q names no host", u.Redacted())
	}
	return nil
}

func invalid(hint, format string, args ...any) error {
	return &tool.Error{Kind: tool.InvalidArgument, Msg: fmt.Sprintf(format, args...), Hint: hint}
}
