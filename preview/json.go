package preview

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// jsonStats is the result of one pass over JSON documents.
type jsonStats struct {
	s      *scanner
	p      *profile
	prefix int64        // lines of text before the first document
	others int64        // other lines that are not JSON
	first  *syntaxError // the error of the first of them
	broken *syntaxError // the error that ended the reading
	joined bool         // some documents share a line
}

// readJSON profiles all documents of src. Line numbers count the prefix lines before src.
func readJSON(src io.Reader, prefix int64, seq bool) (*jsonStats, error) {
	j := &jsonStats{s: newScanner(src), p: newProfile(), prefix: prefix}
	j.s.seq, j.p.embeds = seq, true
	j.s.line += prefix
	var ended int64 // the line on which the last document ended
	for {
		began, tokens, err := j.s.document(func(k kind) { j.p.add(k, &j.s.tok) })
		j.joined = j.joined || tokens > 0 && began == ended
		syntax, broken := errors.AsType[*syntaxError](err)
		switch {
		case broken:
			if !j.recover(syntax, began) {
				return j, nil
			}
		case err != nil:
			return nil, err
		case tokens == 0:
			return j, nil
		default:
			ended = j.s.line
		}
	}
}

// recover skips the line of an error if the broken document began on it, as in JSON Lines mixed with text. It reports
// whether the reading goes on: the rest of a document of many lines would be mistaken for documents.
func (j *jsonStats) recover(e *syntaxError, began int64) bool {
	j.p.abort()
	if e.end || e.line != began {
		j.broken = e
		return false
	}
	more := j.s.resync()
	if !more && e.depth > 0 {
		j.broken = e
		return false
	}
	if j.first == nil {
		j.first = e
	}
	j.others++
	return more
}

func (j *jsonStats) describe(in *source, head []byte, o Options) description {
	all := j.notes(in) // before the summary, which does not mention a fence
	return description{
		summary: j.summary(in), header: j.header(in), notes: all,
		body: func(budget int) string { return j.body(budget, head, o) },
	}
}

func (j *jsonStats) summary(in *source) string {
	p := j.p
	text := "JSON " + rootName(p.root)
	if p.docs > 1 {
		text = fmt.Sprintf("%d JSON documents", p.docs)
	}
	if others := j.prefix + j.others; others > 0 {
		text += " and " + texts.Count(others, "other line")
	}
	switch {
	case j.broken != nil && in.partial:
		text += " (its beginning)"
	case j.broken != nil:
		text += ", not valid"
	}
	return text
}

// rootName names the type of the only document.
func rootName(n *node) string {
	for k, name := range [numKinds]string{"null", "boolean", "number", "string", "array", "object"} {
		if n.kinds[k] == 0 {
			continue
		}
		if kind(k) == kindArray {
			return fmt.Sprintf("array of %d", n.lengths.hi)
		}
		return name
	}
	return "nothing"
}

func (j *jsonStats) header(in *source) string {
	format := "JSON"
	if j.p.docs > 1 && !j.joined {
		format = "JSON Lines"
	}
	if j.s.seq {
		format = "JSON text sequence (jq --seq)"
	}
	docs := texts.Count(j.p.docs, "document")
	switch {
	case j.broken == nil:
	case in.partial && j.broken.end && j.p.docs == 0:
		docs = "1 document"
	case in.partial && j.broken.end:
		docs += " and part of one"
	case j.p.docs == 0:
		docs = "1 document, not complete"
	default:
		docs += " and one that is not complete"
	}
	return fmt.Sprintf("%s: %s, %s.", format, docs, in.size())
}

func (j *jsonStats) notes(in *source) (all notes) {
	p := j.p
	if j.broken != nil && !in.partial {
		all.add(true, "NOT VALID at %s; jq fails there, the shape is of the part before.", j.broken.explain())
	}
	all.add(p.odd[oddNumber] > 0, "NaN or Infinity: %d (not JSON; jq fails there).", p.odd[oddNumber])
	all.add(p.odd[oddControl] > 0, "Strings with raw control characters: %d (not JSON; jq fails there).", p.odd[oddControl])
	if j.fenced() {
		all.add(true, "The JSON stands in a fence; sed -e '0,/^```/d' -e '/^```/,$d' takes it out.")
		j.prefix, j.others = 0, 0
	}
	if blocks := p.root.contentBlocks(); blocks != "" {
		all.add(true, "MCP content: %s.", blocks)
	}
	all.add(j.prefix > 0, "The JSON begins at line %d (tail -n +%d).", j.prefix+1, j.prefix+1)
	advice := "jq fails there"
	if p.docs > 1 && !j.joined {
		advice = "jq -R 'fromjson? // empty' leaves such lines out"
	}
	if j.others > 0 {
		all.add(true, "%s not valid JSON (the first at %s); %s.", texts.Count(j.others, "line"), j.first.explain(), advice)
	}
	all.add(p.docs > 1, "Paths are per document (jq -c; jq -s makes one array).")
	all.add(p.dups > 0, "Duplicate keys: %d (jq keeps the last).", p.dups)
	all.add(p.odd[oddInvalid] > 0, "Strings that are not valid UTF-8: %d.", p.odd[oddInvalid])
	all.add(p.odd[oddSurrogate] > 0, "Strings with half a surrogate pair: %d.", p.odd[oddSurrogate])
	limit := ""
	if j.s.deepest > 10_000 {
		limit = ", jq reads at most 10000"
	}
	all.add(j.s.deepest > maxDepth, "Nested %d deep; %d levels are shown%s.", j.s.deepest, maxDepth, limit)
	all.add(p.nodes >= maxNodes, "More than %d different paths; not all are shown.", maxNodes)
	return all
}

// fenced reports whether the JSON stands in a Markdown fence with only text around it.
func (j *jsonStats) fenced() bool {
	return j.prefix > 0 && j.first != nil && strings.HasSuffix(j.first.msg, "'`'")
}

// body prints the tree, then a command to try and samples if there is room.
func (j *jsonStats) body(budget int, sample []byte, o Options) string {
	if j.p.root.total() == 0 {
		return ""
	}
	j.p.foldMaps(j.p.root)
	j.p.foldRecursion(j.p.root)
	root := newItemTree(j.p.root).root
	text := renderTree(root, budget)
	text += tryLine(tryCommand(root, j.p.docs), budget-runes(text), o)
	text += root.textLines(budget - runes(text))
	return text + sampleLine(sample, min(budget-runes(text), maxSample))
}

// contentTypes are the types of the content blocks of an MCP result.
var contentTypes = []string{"text", "image", "audio", "resource", "resource_link"}

// contentBlocks counts the content blocks of an MCP result by type, if n is such a result, a list of blocks or a block.
// It returns "" for text alone.
func (n *node) contentBlocks() string {
	if content := n.child("content"); content != nil && content.elem != nil {
		n = content
	}
	if n.elem != nil {
		n = n.elem
	}
	kind := n.child("type")
	if kind == nil || kind.strs.over || !kind.alone(kindString) {
		return ""
	}
	var parts []string
	other := false
	for _, v := range kind.strs.byCount() {
		if !slices.Contains(contentTypes, v.text) {
			return ""
		}
		other = other || v.text != "text"
		parts = append(parts, texts.Count(v.n, strings.ReplaceAll(v.text, "_", " ")))
	}
	if !other || n.child("data") == nil && n.child("resource") == nil && n.child("uri") == nil {
		return ""
	}
	text := strings.Join(parts, ", ")
	if mime := n.child("mimeType"); mime != nil && !mime.strs.over && len(mime.strs.values) > 0 {
		var types []string
		for _, v := range mime.strs.byCount() {
			types = append(types, texts.Fit(clean([]byte(v.text)), maxExample))
		}
		text += " (" + strings.Join(types, ", ") + ")"
	}
	return text
}

// child returns the node of a key, nil if there is none.
func (n *node) child(name string) *node {
	if at := n.find([]byte(name), 0); at >= 0 {
		return n.keys[at].n
	}
	return nil
}
