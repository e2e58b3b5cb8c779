// Package markdown converts HTML pages to Markdown. A page is hostile text: a small one can cause a very large tree, and
// some trees take quadratic time to convert. Both are bounded before the work begins, since neither library can be
// interrupted.
package markdown

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	basic "github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxNodes bounds a page in a process that must survive the conversion: about 100 MB and a second.
const maxNodes = 200_000

// converting is a semaphore of one for Bounded: each conversion takes much memory.
var converting = make(chan struct{}, 1)

// Bounded converts a page in a process that must survive the conversion: one page at a time, and only pages whose tree
// has at most 200,000 nodes. The wait for other pages ends with ctx.
func Bounded(ctx context.Context, page, base string) (string, error) {
	if n := countNodes(page, maxNodes); n > maxNodes {
		return "", fmt.Errorf("its tree has more than %d nodes", maxNodes)
	}
	select {
	case converting <- struct{}{}:
		defer func() { <-converting }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return Convert(page, base)
}

// The bounds of quadratic work. Each is about two seconds; ordinary pages need a thousandth of it.
const (
	maxIndentWork  = 200_000_000 // every line of a quote or list gets a prefix for each quote and list around it
	maxBracketWork = 500_000_000 // the converter scans the text after every "["; beyond the bound nothing is escaped
)

// Convert converts a page, which is valid UTF-8. Links are resolved against base. The size of its tree is not bounded.
func Convert(page, base string) (string, error) {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	if indentWork(doc, 0, maxIndentWork) > maxIndentWork {
		return "", errors.New("its quotes or lists are nested too deeply")
	}
	escape := converter.EscapeModeSmart
	if n, size := brackets(doc); n*size > maxBracketWork {
		escape = converter.EscapeModeDisabled
	}
	conv := converter.NewConverter(
		converter.WithPlugins(basic.NewBasePlugin(), commonmark.NewCommonmarkPlugin()),
		converter.WithEscapeMode(escape))
	out, err := conv.ConvertNode(doc, converter.WithDomain(base))
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(out), "\ufffd"), nil
}

// formatting are the elements that, left unclosed, the parser opens again in each following block (HTML standard, "list
// of active formatting elements").
var formatting = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true,
	atom.S: true, atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// adoptionClones is the number of nodes that the parser makes for the end tag of a formatting element that is not the
// innermost one: eight rounds of three (HTML standard, "adoption agency algorithm").
const adoptionClones = 24

// void are the elements that the parser closes at once (HTML standard, "void elements").
var void = map[atom.Atom]bool{
	atom.Area: true, atom.Base: true, atom.Br: true, atom.Col: true, atom.Embed: true, atom.Hr: true, atom.Img: true,
	atom.Input: true, atom.Link: true, atom.Meta: true, atom.Source: true, atom.Track: true, atom.Wbr: true,
}

// countNodes returns an upper bound of the nodes in the tree of a page, without making them. It stops above limit.
func countNodes(page string, limit int) int {
	z := html.NewTokenizer(strings.NewReader(page))
	nodes, unclosed := 0, 0
	var open []atom.Atom
	for nodes <= limit {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		nodes += 2 + unclosed // the element, an implied one such as tbody, and those opened again
		if kind != html.StartTagToken && kind != html.EndTagToken {
			continue
		}
		name, _ := z.TagName()
		tag := atom.Lookup(name)
		last := len(open) - 1
		switch {
		case kind == html.StartTagToken && void[tag]:
		case kind == html.StartTagToken:
			if open = append(open, tag); formatting[tag] {
				unclosed++
			}
		case last >= 0 && open[last] == tag:
			if open = open[:last]; formatting[tag] {
				unclosed--
			}
		case formatting[tag]:
			nodes += adoptionClones
		}
	}
	return nodes
}

// indenting are the elements in which every line gets a prefix for each such element around it.
var indenting = map[atom.Atom]bool{
	atom.Blockquote: true, atom.Ul: true, atom.Ol: true, atom.Li: true, atom.Menu: true, atom.Dir: true, atom.Dl: true, atom.Dd: true,
}

// indentWork estimates the cost of converting n, which is depth such elements deep. It stops above limit. The parser
// refuses pages nested deeper than 512 elements, so the recursion is bounded.
func indentWork(n *html.Node, depth int, limit int) int {
	const lineBytes = 40
	sum := (1 + len(n.Data)/lineBytes + strings.Count(n.Data, "\n")) * (depth + 1) * (depth + 1)
	if indenting[n.DataAtom] {
		depth++
	}
	for c := n.FirstChild; c != nil && sum <= limit; c = c.NextSibling {
		sum += indentWork(c, depth, limit-sum)
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
