package preview

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonReading is what one pass over JSON documents found.
type jsonReading struct {
	s      *scanner
	p      *profile
	prefix int64        // lines of text before the first document
	others int64        // lines behind it that are not JSON
	first  *syntaxError // the first of them
	broken *syntaxError // where a document broke off for good
	joined bool         // documents follow each other on one line
}

// readJSON profiles all documents of src. prefix lines stand before them; line numbers count those.
func readJSON(src io.Reader, prefix int64, seq bool) (*jsonReading, error) {
	j := &jsonReading{s: newScanner(src), p: newProfile(), prefix: prefix}
	j.s.seq, j.s.lenient, j.s.whole, j.p.inside = seq, true, true, &inside{}
	j.p.s = j.s
	j.s.line += prefix
	var began, ended int64 // lines of the current document's begin, and of the end of the one before
	for {
		between := j.s.depth == 0
		k, err := j.s.next()
		if err != nil {
			syntax, ok := errors.AsType[*syntaxError](err)
			if !ok {
				return nil, err
			}
			if between {
				began = syntax.line
			}
			if !j.recover(syntax, began) {
				return j, nil
			}
			continue
		}
		if k == tokEnd {
			return j, nil
		}
		if between {
			began = j.s.line
			j.joined = j.joined || began == ended
		}
		j.p.add(k, &j.s.tok)
		if j.s.depth == 0 {
			ended = j.s.line
		}
	}
}

// recover goes on behind the line of an error if the broken document began on it, as in JSON Lines mixed with text.
// What is left of a document of many lines would only be taken for documents of its own.
func (j *jsonReading) recover(e *syntaxError, began int64) bool {
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

// summary names the data in a few words.
func (j *jsonReading) summary(in *source) string {
	p := j.p
	text := "JSON " + rootName(p.root)
	if p.docs > 1 {
		text = fmt.Sprintf("%d JSON documents", p.docs)
	}
	if others := j.prefix + j.others; others > 0 {
		text += " and " + count(others, "other line")
	}
	switch {
	case j.broken == nil:
		return text
	case in.partial:
		return text + ", cut"
	}
	return text + ", not valid"
}

// rootName names the kind of the only document.
func rootName(n *node) string {
	for k, name := range [numKinds]string{"null", "boolean", "number", "string", "array", "object"} {
		if n.kinds[k] == 0 {
			continue
		}
		if valueKind(k) == kindArray {
			return fmt.Sprintf("array of %d", n.lenMax)
		}
		return name
	}
	return "nothing"
}

// header is the first line of the preview and the notes that may follow on it.
func (j *jsonReading) header(in *source) (string, []string) {
	format := "JSON"
	if j.p.docs > 1 && !j.joined {
		format = "JSON Lines"
	}
	if j.s.seq {
		format = "JSON text sequence (jq --seq)"
	}
	docs := count(j.p.docs, "document")
	switch {
	case j.broken == nil:
	case j.p.docs == 0:
		docs = "1 document, not complete"
	default:
		docs += " and one that is not complete"
	}
	return fmt.Sprintf("%s: %s, %s.", format, docs, in.size()), j.notes(in)
}

func (j *jsonReading) notes(in *source) (notes []string) {
	add := func(wanted bool, format string, args ...any) {
		if wanted {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	p := j.p
	if j.broken != nil && !in.partial {
		add(true, "NOT VALID at %s; jq fails there, the shape is of the part before.", j.broken.explain())
	}
	add(p.odds > 0, "NaN or Infinity: %d (not JSON; jq fails there).", p.odds)
	add(p.controls > 0, "Strings with raw control characters: %d (not JSON; jq fails there).", p.controls)
	if j.fenced() {
		add(true, "The JSON stands in a fence; sed -e '0,/^```/d' -e '/^```/,$d' takes it out.")
		j.prefix, j.others = 0, 0
	}
	if blocks := p.root.contentBlocks(); blocks != "" {
		add(true, "MCP content: %s.", blocks)
	}
	add(j.prefix > 0, "The JSON begins at line %d (tail -n +%d).", j.prefix+1, j.prefix+1)
	advice := "jq fails there"
	if p.docs > 1 && !j.joined {
		advice = "jq -R 'fromjson? // empty' leaves such lines out"
	}
	if j.others > 0 {
		add(true, "%s not valid JSON (the first at %s); %s.", count(j.others, "line"), j.first.explain(), advice)
	}
	add(p.docs > 1, "Paths are per document (jq -c; jq -s makes one array).")
	add(p.dups > 0, "Duplicate keys: %d (jq keeps the last).", p.dups)
	add(p.invalid > 0, "Strings that are not valid UTF-8: %d.", p.invalid)
	add(p.lone > 0, "Strings with half a surrogate pair: %d.", p.lone)
	add(j.s.deep > maxDepth, "Nested %d deep; %d levels are shown%s.", j.s.deep, maxDepth, deepWarning(j.s.deep))
	add(p.nodes >= maxNodes, "More than %d different paths; not all are shown.", maxNodes)
	return notes
}

// fenced reports whether the JSON stands in a fence of Markdown, with nothing but text around it.
func (j *jsonReading) fenced() bool {
	return j.prefix > 0 && j.first != nil && strings.HasSuffix(j.first.msg, "'`'")
}

func deepWarning(depth int) string {
	if depth > 10_000 {
		return ", jq reads at most 10000"
	}
	return ""
}

// body prints the tree, then what helps with the next step, if there is room.
func (j *jsonReading) body(budget int, sample []byte, o Options) string {
	if j.p.root.total() == 0 {
		return ""
	}
	j.p.foldMaps(j.p.root)
	j.p.foldRecursion(j.p.root)
	findLines(j.p.root)
	root := newItemTree(j.p.root).root
	text := renderTree(root, budget)
	text += fitLine(tryCommand(root, j.p.docs), budget-runes(text), o)
	return text + sampleLine(sample, min(budget-runes(text), maxSample))
}
