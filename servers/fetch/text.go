package fetch

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	basic "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"github.com/mcsh-dev/mcsh/servers/tool"
)

// maxMarkdownWork bounds the conversion of HTML, whose time and output grow with the square of how deeply quotes and
// lists are nested: about two seconds. Pages that people read need a thousandth of it.
const maxMarkdownWork = 200_000_000

// maxBracketWork bounds the escaping of text that could be taken for Markdown: for every "[" the converter looks through
// the text behind it. A page with more is converted without escaping.
const maxBracketWork = 500_000_000

// text returns the body as valid UTF-8, in the form that the caller asked for, and notes in about what was done.
func (d document) text(as string, base *url.URL, about *answer) (string, error) {
	if d.kind == kindBinary {
		return "", &tool.Error{Kind: badContent, Msg: fmt.Sprintf("the body is binary: %d bytes of %s", len(d.body), clip(d.mime, 100)), Hint: "only text, JSON, HTML and images are returned"}
	}
	text, err := d.decode(as, about)
	if err != nil {
		return "", err
	}
	if as == "markdown" || as == "auto" && d.kind == kindHTML {
		return markdown(text, base)
	}
	return text, nil
}

// decode converts the body to UTF-8.
func (d document) decode(as string, about *answer) (string, error) {
	enc, name := d.encoding(as)
	var text string
	if name == "utf-8" {
		text, about.Replaced = tool.ValidText(bytes.TrimPrefix(d.body, []byte("\ufeff")))
		return text, nil
	}
	about.Charset = name
	out, err := enc.NewDecoder().Bytes(d.body)
	if err != nil {
		return "", &tool.Error{Kind: badContent, Msg: fmt.Sprintf("decoding the body from %s: %v", name, err)}
	}
	text = strings.TrimPrefix(string(out), "\ufeff")
	about.Replaced = strings.Count(text, "\ufffd")
	return text, nil
}

// encoding decides what the body is encoded in: a byte order mark comes first, then what the server declares, then what
// an HTML page says of itself, then UTF-8 if it is valid, and last, as in browsers, windows-1252, but never for JSON. A
// label that nobody knows is ignored, as in browsers.
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

// markdown converts HTML.
func markdown(page string, base *url.URL) (string, error) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", unconvertible(err.Error())
	}
	if work(doc, 0, maxMarkdownWork) > maxMarkdownWork {
		return "", unconvertible("its quotes or lists are nested too deeply")
	}
	escape := converter.EscapeModeSmart
	if n, size := brackets(doc); n*size > maxBracketWork {
		escape = converter.EscapeModeDisabled
	}
	conv := converter.NewConverter(
		converter.WithPlugins(basic.NewBasePlugin(), commonmark.NewCommonmarkPlugin()),
		converter.WithEscapeMode(escape))
	out, err := conv.ConvertNode(doc, converter.WithDomain(base.Redacted()))
	if err != nil {
		return "", unconvertible(err.Error())
	}
	return strings.ToValidUTF8(string(out), "\ufffd"), nil
}

func unconvertible(why string) error {
	return &tool.Error{Kind: badContent, Msg: "the page cannot be converted to Markdown: " + clip(why, 200), Hint: `ask for it with "as": "raw"`}
}

// indenting are the elements whose every line gets a prefix, once for each element around it.
var indenting = map[atom.Atom]bool{
	atom.Blockquote: true, atom.Ul: true, atom.Ol: true, atom.Li: true, atom.Menu: true, atom.Dir: true, atom.Dl: true, atom.Dd: true,
}

// work estimates what converting n takes, which is depth such elements deep. It gives up above limit. The parser
// refuses pages nested deeper than 512 elements, so the recursion is bounded.
func work(n *html.Node, depth int, limit int) int {
	const lineBytes = 40
	sum := (1 + len(n.Data)/lineBytes + strings.Count(n.Data, "\n")) * (depth + 1) * (depth + 1)
	if indenting[n.DataAtom] {
		depth++
	}
	for c := n.FirstChild; c != nil && sum <= limit; c = c.NextSibling {
		sum += work(c, depth, limit-sum)
	}
	return sum
}

// brackets counts the "[" in the text below n, and the bytes of that text.
func brackets(n *html.Node) (count, size int) {
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			count += strings.Count(d.Data, "[")
			size += len(d.Data)
		}
	}
	return count, size
}

// looksLikeText reports whether body is UTF-8 without the control characters that text does not have.
func looksLikeText(body []byte) bool {
	return utf8.Valid(body) && bytes.IndexFunc(body, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", r)
	}) < 0
}
