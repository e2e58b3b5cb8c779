package preview

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

func runes(s string) int { return utf8.RuneCountInString(s) }

const (
	maxSample      = 2000 // characters of a sample record
	maxSampleItems = 2    // elements of an array in it
	maxSampleTries = 20   // records tried
	maxTryKeys     = 6
)

// tryLine proposes a jq command. It returns "" if there is no command, no room, or the program does not compile.
func tryLine(command string, room int, o Options) string {
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

// tryCommand returns a jq command that is a good next step, "" if there is none.
func tryCommand(root *item, docs int64) string {
	at := root
	if !strings.HasSuffix(at.seg, "[]") && at.n.recursive == nil {
		for _, kid := range root.kids {
			if (strings.HasSuffix(kid.path, "[]") || kid.n.recursive != nil) && kid.lengths != "" && len(kid.n.keys) > 0 {
				at = kid
				break
			}
		}
	}
	if at == root && docs < 2 && at.lengths == "" && at.n.recursive == nil || !at.n.alone(kindObject) {
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

// maxJoinKeys is the maximum number of join keys in a proposed command.
const maxJoinKeys = 3

// isJoinKey reports whether a key identifies a thing that other data may refer to.
func isJoinKey(name string) bool {
	switch name {
	case "id", "email", "login", "sku", "sha", "slug", "uuid", "uid":
		return true
	}
	return strings.HasSuffix(name, "_id") || strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "ID")
}

// tryKeys returns a few keys with scalars that a filter may want: first join keys, then common keys, then others.
func tryKeys(n *node) []string {
	var joins, common, others []string
	for i := range n.keys {
		e := &n.keys[i]
		switch {
		case !e.n.isScalar() || e.n.alone(kindNull) || e.n.class() == classBase64 || !isName(e.name) || runes(e.name) > maxExample || keywords[e.name]:
		case isJoinKey(e.name) && len(joins) < maxJoinKeys:
			joins = append(joins, e.name)
		case commonKeys[e.name]:
			common = append(common, e.name)
		default:
			others = append(others, e.name)
		}
	}
	keys := slices.Concat(joins, common, others)
	return keys[:min(len(keys), maxTryKeys)]
}

// keywords cannot stand alone in an object construction: some versions of jq refuse them.
var keywords = map[string]bool{
	"and": true, "as": true, "catch": true, "def": true, "elif": true, "else": true, "end": true, "foreach": true,
	"if": true, "import": true, "include": true, "label": true, "module": true, "or": true, "reduce": true,
	"then": true, "try": true, "__loc__": true,
}

// sampleLine prints the first record, compact, with long strings and arrays cut and secrets masked. If it does not fit,
// the first fitting record of an array in it is printed. It returns "" if head holds no whole record that fits.
func sampleLine(head []byte, room int) string {
	s := scanBytes(head)
	s.seq = true
	var path [maxDepth]string // the path segment at each depth
	for tries := 0; tries < maxSampleTries; {
		k, err := s.next()
		if err != nil || s.depth == 0 || s.depth >= maxDepth {
			return ""
		}
		switch k {
		case tokKey:
			key := string(s.tok.begin())
			if isSecret(key) {
				return ""
			}
			path[s.depth] = segment(key)
		case kindArray:
			path[s.depth] = "[]"
		case kindObject:
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

// sampleOf prints the record at the beginning of head; at is its path.
func sampleOf(head []byte, at string) string {
	name := "sample: "
	if strings.Contains(at, ".") {
		name = "sample of " + at + ": "
	}
	w := sampleWriter{scanner: scanBytes(head)}
	k, err := w.next()
	if err != nil || !w.value(k, false) {
		return ""
	}
	return name + w.out.String() + "\n"
}

// sampleWriter prints values as compact JSON.
type sampleWriter struct {
	*scanner
	out strings.Builder
}

// value prints the value that begins with a token. It returns false if the value does not end in the head or is too long,
// which also bounds the recursion.
func (w *sampleWriter) value(k kind, hide bool) bool {
	switch k {
	case kindObject:
		return w.container('{', '}', hide)
	case kindArray:
		return w.container('[', ']', hide)
	}
	w.out.WriteString(w.scalar(k, hide))
	return w.out.Len() <= 4*maxSample
}

func (w *sampleWriter) container(opening, closing byte, hide bool) bool {
	w.out.WriteByte(opening)
	inside := w.depth
	for i := 0; ; i++ {
		k, err := w.next()
		if err != nil || w.out.Len() > 4*maxSample {
			return false
		}
		if k == tokClose && w.depth < inside {
			w.out.WriteByte(closing)
			return true
		}
		if opening == '[' && i >= maxSampleItems { // the tokens of all other elements are left out
			if i == maxSampleItems {
				w.out.WriteString(",…")
			}
			continue
		}
		if i > 0 {
			w.out.WriteByte(',')
		}
		secret := hide
		if k == tokKey {
			key := string(w.tok.begin())
			w.out.WriteString(quoteCut(key, maxToken) + ":")
			secret = hide || isSecret(key)
			if k, err = w.next(); err != nil {
				return false
			}
		}
		if !w.value(k, secret) {
			return false
		}
	}
}

// scalar writes a value without others in it.
func (w *sampleWriter) scalar(k kind, hide bool) string {
	switch {
	case k != kindNull && hide:
		return quote(masked)
	case k == kindString:
		return quoteCut(maskText(string(w.tok.begin())), maxExample)
	}
	return texts.Fit(string(w.tok.begin()), maxNumber)
}
