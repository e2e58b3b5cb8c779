package fetch

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

// Markdown converts an HTML page, whose links are relative to base. It stops when ctx is done.
type Markdown func(ctx context.Context, page, base string) (string, error)

// text returns the body as valid UTF-8 in the requested form, and records its changes in about.
func (s *server) text(ctx context.Context, d document, as string, base *url.URL, about *answer) (string, error) {
	if d.kind == kindBinary {
		return "", &tool.Error{Kind: badContent, Msg: fmt.Sprintf("the body is binary: %d bytes of %s", len(d.body), texts.Cut(d.mime, 100)), Hint: "only text, JSON, HTML and images are returned"}
	}
	text, err := d.decode(as, about)
	if err != nil {
		return "", err
	}
	if as == "markdown" || as == "auto" && d.kind == kindHTML {
		return s.convert(ctx, text, base)
	}
	return text, nil
}

// decode converts the body to UTF-8.
func (d document) decode(as string, about *answer) (string, error) {
	enc, name := d.encoding(as)
	var text string
	if name == "utf-8" {
		text, about.Replaced = texts.Valid(bytes.TrimPrefix(d.body, []byte("\ufeff")))
		return text, nil
	}
	about.Charset = name
	out, err := enc.NewDecoder().Bytes(d.body)
	if err != nil {
		return "", &tool.Error{Kind: badContent, Msg: fmt.Sprintf("decoding the body from %s: %v", name, err)}
	}
	text = strings.TrimPrefix(string(out), "\ufeff")
	about.Replaced = int64(strings.Count(text, "\ufffd"))
	return text, nil
}

// encoding determines the encoding of the body: by a byte order mark, else by the server's declaration, else by that of
// an HTML page, else UTF-8 if it is valid, else, as in browsers, windows-1252, but never for JSON. An unknown label is
// ignored, as in browsers.
func (d document) encoding(as string) (encoding.Encoding, string) {
	utf8Name := "utf-8"
	for _, mark := range []struct{ bytes, name string }{{"\xef\xbb\xbf", utf8Name}, {"\xfe\xff", "utf-16be"}, {"\xff\xfe", "utf-16le"}} {
		if bytes.HasPrefix(d.body, []byte(mark.bytes)) {
			enc, _ := charset.Lookup(mark.name)
			return enc, mark.name
		}
	}
	if enc, name := charset.Lookup(d.charset); enc != nil {
		return enc, name
	}
	const fallback = "windows-1252"
	enc, name := charset.Lookup(fallback)
	if d.kind == kindHTML || as == "markdown" {
		enc, name, _ = charset.DetermineEncoding(d.body, "text/html")
	}
	if d.kind == kindJSON || name == fallback && utf8.Valid(d.body) {
		return unicode.UTF8, utf8Name
	}
	return enc, name
}

// convert converts a page to Markdown.
func (s *server) convert(ctx context.Context, page string, base *url.URL) (string, error) {
	text, err := s.markdown(ctx, page, base.Redacted())
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	}
	return "", &tool.Error{Kind: badContent, Msg: "the page cannot be converted to Markdown: " + texts.Cut(err.Error(), 200), Hint: `ask for it with "as": "raw"`}
}

// looksLikeText reports whether body is UTF-8 without the control characters that text does not have.
func looksLikeText(body []byte) bool {
	return utf8.Valid(body) && bytes.IndexFunc(body, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r)
	}) < 0
}
