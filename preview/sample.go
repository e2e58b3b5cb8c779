package preview

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

func runes(s string) int { return utf8.RuneCountInString(s) }

const (
	maxSample      = 2000 // characters of a sample record
	maxSampleItems = 2    // elements of an array in it
	maxSampleTries = 20   // records that are tried
	maxTryKeys     = 6
)

// fitLine is a proposal of a jq command, empty if there is none, no room for it, or the program cannot be compiled.
func fitLine(command string, room int, o Options) string {
	line := "try: " + command + "\n"
	if command == "" || runes(line) > room {
		return ""
	}
	_, program, _ := strings.Cut(command, "'")
	if o.Check != nil && !o.Check(strings.TrimSuffix(program, "'")) {
		return ""
	}
	return line
}

// tryCommand is a jq command that is a good next step, empty if there is none.
func tryCommand(root *item, docs int64) string {
	at := root
	if !strings.HasSuffix(at.seg, "[]") && at.n.recursive == nil {
		for _, kid := range root.kids {
			if (strings.HasSuffix(kid.path, "[]") || kid.n.recursive != nil) && kid.lens != "" && len(kid.n.keys) > 0 {
				at = kid
				break
			}
		}
	}
	if at == root && docs < 2 && at.lens == "" && at.n.recursive == nil || !at.n.alone(kindObject) {
		return ""
	}
	keys := tryKeys(at.n)
	if len(keys) < 2 {
		return ""
	}
	from := at.path + " | "
	if at.path == "." {
		from = ""
	}
	return "jq -c '" + from + "{" + strings.Join(keys, ",") + "}'"
}

// tryKeys are keys of n that a filter may want first: a few, with scalars, the ones asked for most before the others.
func tryKeys(n *node) []string {
	var hot, cold []string
	for i := range n.keys {
		e := &n.keys[i]
		switch {
		case !e.n.isScalar() || e.n.alone(kindNull) || e.n.class() == classBase64 || !isName(e.name) || runes(e.name) > maxExample || keywords[e.name]:
		case hotNames[e.name]:
			hot = append(hot, e.name)
		default:
			cold = append(cold, e.name)
		}
	}
	keys := append(hot, cold...)
	return keys[:min(len(keys), maxTryKeys)]
}

// keywords cannot stand for themselves in an object construction of every jq.
var keywords = map[string]bool{
	"and": true, "as": true, "catch": true, "def": true, "elif": true, "else": true, "end": true, "foreach": true,
	"if": true, "import": true, "include": true, "label": true, "module": true, "or": true, "reduce": true,
	"then": true, "try": true, "__loc__": true,
}

// sampleLine is the first record, compact, with long strings and arrays cut and secrets masked. Where that does not fit,
// it is the first one of an array inside. Empty if head does not hold all of one that fits.
func sampleLine(head []byte, room int) string {
	s := newScanner(bytes.NewReader(head))
	s.seq, s.lenient = true, true
	var path [maxDepth]string // for each depth what leads on from there
	for tries := 0; tries < maxSampleTries; {
		k, err := s.next()
		if err != nil || s.depth == 0 || s.depth >= maxDepth {
			return ""
		}
		switch k {
		case tokKey:
			key := string(unescape(nil, s.tok.raw))
			if isSecret(key) {
				return ""
			}
			path[s.depth] = segment(key)
		case tokArray:
			path[s.depth] = "[]"
		case tokObject:
			if at := strings.Join(path[:s.depth], ""); s.depth == 1 || path[s.depth-1] == "[]" {
				if line := sampleOf(head[s.offset()-1:], at); line != "" && runes(line) <= room {
					return line
				}
				tries++
			}
		}
	}
	return ""
}

// sampleOf is the record that head begins with, which lies at a path.
func sampleOf(head []byte, at string) string {
	name := "sample: "
	if strings.Contains(at, ".") {
		name = "sample of " + at + ": "
	}
	s := newScanner(bytes.NewReader(head))
	s.lenient = true
	w := sampleWriter{scanner: s}
	for {
		k, err := s.next()
		if err != nil || w.out.Len() > 4*maxSample {
			return ""
		}
		if w.token(k); s.depth == 0 {
			return name + w.out.String() + "\n"
		}
	}
}

// sampleWriter prints tokens as compact JSON.
type sampleWriter struct {
	*scanner
	out    strings.Builder
	comma  bool
	items  []int // elements of the open containers
	skip   int   // the depth of an element that is left out, 0 outside of one
	secret int   // the depth of the container that a secret value is in, 0 outside of one
	hide   bool
}

var brackets = [...]byte{tokObject: '{', tokObjectEnd: '}', tokArray: '[', tokArrayEnd: ']'}

// leftOut reports whether a token belongs to an element that is left out, which is marked once.
func (w *sampleWriter) leftOut(k tokenKind) bool {
	opens, ends := k == tokObject || k == tokArray, k == tokObjectEnd || k == tokArrayEnd
	switch {
	case w.skip > 0:
		if ends && w.depth < w.skip {
			w.skip = 0
		}
		return true
	case ends:
		w.items = w.items[:len(w.items)-1]
		return false
	}
	if in := len(w.items) - 1; in >= 0 && k != tokKey && w.items[in] >= 0 {
		if w.items[in]++; w.items[in] > maxSampleItems {
			if w.items[in] == maxSampleItems+1 {
				w.out.WriteString(",…")
			}
			if opens {
				w.skip = w.depth
			}
			return true
		}
	}
	if opens {
		w.items = append(w.items, map[tokenKind]int{tokObject: -1}[k])
	}
	return false
}

func (w *sampleWriter) token(k tokenKind) {
	if w.leftOut(k) {
		return
	}
	ends := k == tokObjectEnd || k == tokArrayEnd
	if w.comma && !ends {
		w.out.WriteByte(',')
	}
	hide := w.hide
	w.hide = w.secret > 0
	w.comma = k != tokKey && k != tokObject && k != tokArray
	switch k {
	case tokObject, tokArray:
		if hide && w.secret == 0 {
			w.secret, w.hide = w.depth, true
		}
		w.out.WriteByte(brackets[k])
	case tokObjectEnd, tokArrayEnd:
		if w.depth < w.secret {
			w.secret, w.hide = 0, false
		}
		w.out.WriteByte(brackets[k])
	case tokKey:
		key := string(unescape(nil, w.tok.raw))
		w.out.WriteString(quoteCut(key, maxToken) + ":")
		w.hide = w.secret > 0 || isSecret(key)
	default:
		w.scalar(k, hide)
	}
}

func (w *sampleWriter) scalar(k tokenKind, hide bool) {
	switch {
	case k == tokNull:
		w.out.WriteString("null")
	case hide:
		w.out.WriteString(quote(masked))
	case k == tokString:
		w.out.WriteString(quoteCut(maskText(string(unescape(nil, w.tok.raw))), maxExample))
	case k == tokNumber:
		w.out.WriteString(cut(string(w.tok.raw), maxNumber))
	case k == tokTrue:
		w.out.WriteString("true")
	default:
		w.out.WriteString("false")
	}
}
