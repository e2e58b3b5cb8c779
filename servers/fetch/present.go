package fetch

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

const (
	errorBytes = 64 << 10 // read of an error's body
	errorChars = 2000     // shown of it
)

// answer describes the response in the result's _meta, under "mcsh/http".
type answer struct {
	URL         string `json:"url"` // after redirects
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Charset     string `json:"charset,omitempty"`  // that the text was converted from
	Replaced    int64  `json:"replaced,omitempty"` // characters that were not valid in it
	Bytes       int    `json:"bytes"`              // of the body, decompressed
	RetryAfter  string `json:"retry_after,omitempty"`
}

// present turns a response into a result. A body of more than limit bytes is an error.
func (s *server) present(resp *http.Response, as string, limit int64) (*mcp.CallToolResult, error) {
	about := answer{
		URL:         resp.Request.URL.Redacted(),
		Status:      resp.StatusCode,
		ContentType: texts.Cut(resp.Header.Get("Content-Type"), 200),
		RetryAfter:  texts.Cut(resp.Header.Get("Retry-After"), 60),
	}
	if resp.StatusCode >= 400 {
		return s.failed(resp, about), nil
	}
	if resp.Request.Method == http.MethodHead {
		return headers(resp, about)
	}
	body, err := read(resp, limit)
	if err != nil {
		return nil, err
	}
	about.Bytes = len(body)
	doc := classify(body, resp.Header.Get("Content-Type"))
	if doc.kind == kindImage {
		return about.on(&mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: body, MIMEType: doc.mime}}}), nil
	}
	text, err := s.text(resp.Request.Context(), doc, as, resp.Request.URL, &about)
	if err != nil {
		return nil, err
	}
	return about.on(tool.Text(text)), nil
}

// on adds the answer to the result r.
func (a answer) on(res *mcp.CallToolResult) *mcp.CallToolResult {
	res.Meta = mcp.Meta{"mcsh/http": a}
	return res
}

// read reads the body, which the transport has decompressed.
func read(resp *http.Response, limit int64) ([]byte, error) {
	if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, &tool.Error{Kind: badContent, Msg: fmt.Sprintf("the server sent the content encoding %.40q without being asked to", e)}
	}
	if resp.ContentLength > limit && resp.Request.Method != http.MethodHead {
		return nil, tooLarge(fmt.Sprintf("has %d bytes", resp.ContentLength), limit)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading the body: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, tooLarge("has more", limit)
	}
	return body, nil
}

func tooLarge(what string, limit int64) error {
	hint := fmt.Sprintf("ask for less, or for up to %d with max_bytes", hardMaxBytes)
	if limit == hardMaxBytes {
		hint = "ask for less: a page, a filter, or a Range header"
	}
	return &tool.Error{Kind: tool.LimitExceeded, Msg: fmt.Sprintf("the body may have %d bytes and %s", limit, what), Hint: hint}
}

// failed is the result for a status of 400 and above: the status, the URL and the beginning of the body.
func (s *server) failed(resp *http.Response, about answer) *mcp.CallToolResult {
	msg := fmt.Sprintf("%d %s from %s %s", about.Status, http.StatusText(about.Status), resp.Request.Method, texts.Cut(about.URL, 300))
	if about.RetryAfter != "" {
		msg += fmt.Sprintf(" (retry-after: %s)", about.RetryAfter)
	}
	res := tool.Failure(&tool.Error{Kind: httpStatus, Msg: msg})
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorBytes)) // a broken body must not hide the status
	about.Bytes = len(body)
	if text := s.beginning(body, resp, &about); text != "" {
		res.Content[0] = &mcp.TextContent{Text: httpStatus + ": " + msg + "\n" + text}
	}
	return about.on(res)
}

// beginning returns the readable beginning of an error's body.
func (s *server) beginning(body []byte, resp *http.Response, about *answer) string {
	if resp.Header.Get("Content-Encoding") != "" {
		return ""
	}
	doc := classify(body, resp.Header.Get("Content-Type"))
	if doc.kind == kindImage || doc.kind == kindBinary {
		return ""
	}
	text, err := s.text(resp.Request.Context(), doc, "auto", resp.Request.URL, about)
	if err != nil {
		text, _ = s.text(resp.Request.Context(), doc, "raw", resp.Request.URL, about)
	}
	return texts.Cut(strings.TrimSpace(text), errorChars)
}

// headers returns the result of a HEAD request.
func headers(resp *http.Response, about answer) (*mcp.CallToolResult, error) {
	flat := map[string]string{}
	for name, values := range resp.Header {
		flat[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\ufffd")
	}
	res, err := tool.JSON(struct {
		URL     string            `json:"url"`
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
	}{about.URL, about.Status, flat})
	if err != nil {
		return nil, err
	}
	return about.on(res), nil
}

// kind selects the presentation of a body.
type kind int

const (
	kindText kind = iota
	kindJSON
	kindHTML
	kindImage
	kindBinary
)

// document is a body with its type.
type document struct {
	kind    kind
	mime    string // without parameters
	charset string // as declared, or empty
	body    []byte
}

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// textTypes are text although their names do not begin with "text/".
var textTypes = []string{
	"application/xml", "application/javascript", "application/ecmascript", "application/yaml", "application/x-yaml",
	"application/toml", "application/x-ndjson", "application/jsonl", "application/x-www-form-urlencoded", "application/sql",
	"application/graphql", "application/rtf", "application/x-sh", "image/svg+xml",
}

// classify selects the presentation of body by its declared type, or by its first bytes if the type is missing or vague.
func classify(body []byte, contentType string) document {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	sniffed, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	if media == "" {
		media = sniffed
	}
	d := document{mime: media, charset: params["charset"], body: body}
	switch {
	case media == "text/html" || media == "application/xhtml+xml":
		d.kind = kindHTML
	case media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"):
		d.kind = kindJSON
	case slices.Contains(imageTypes, media) && sniffed == media:
		d.kind = kindImage
	case strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+xml") || slices.Contains(textTypes, media):
		d.kind = kindText
	case looksLikeText(body): // such as source code served as application/octet-stream
		d.kind = kindText
	default:
		d.kind = kindBinary
	}
	return d
}
