package tokens

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// Prefix begins every token, so that secret scanners find them in sources.
const Prefix = "mcsh_"

// MaxFile bounds a file of tokens, in bytes.
const MaxFile = 1 << 20

const (
	algorithm  = "sha256:"
	expiresKey = "expires="
	groupsKey  = "groups="
	operator   = "operator"
	allGroups  = "*"
	maxGroups  = 64   // of one entry
	maxEntries = 4096 // each request is compared with all of them
	idLength   = 8    // characters of a hash that tell entries apart, for people
)

// header begins a new file.
const header = `# Who may call this gateway: NAME sha256:HASH [expires=2027-01-31T00:00:00Z] [groups=GROUP,GROUP] [operator]
# mcsh token new NAME makes a token and adds its line; a line that goes ends the access of its caller at once.
`

// names matches the valid names of callers.
var names = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)

// An Entry is one line of the file: the name of a token, its hash, its end and its groups.
type Entry struct {
	Name    string
	Expires time.Time // zero: never
	Groups  string    // that its caller may use, sorted, with commas, or * for all servers; empty: it names none

	Operator bool // its caller may see what all callers do

	hash [sha256.Size]byte
}

// New makes a token of a caller, and its entry. The token is stored nowhere.
func New(name string, expires time.Time) (string, Entry, error) {
	if !names().MatchString(name) {
		return "", Entry{}, fmt.Errorf("%.70q is not a name for a caller: want up to 64 of A-Z a-z 0-9 . _ @ + - that begin with a letter or a digit", name)
	}
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	token := Prefix + base64.RawURLEncoding.EncodeToString(secret)
	return token, Entry{Name: name, Expires: expires.UTC().Truncate(time.Second), hash: sha256.Sum256([]byte(token))}, nil
}

// ID distinguishes the entries of one name.
func (e Entry) ID() string { return hex.EncodeToString(e.hash[:])[:idLength] }

// Ended reports whether the token has expired.
func (e Entry) Ended(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

// line writes the entry as a line of the file.
func (e Entry) line() string {
	text := e.Name + " " + algorithm + hex.EncodeToString(e.hash[:])
	if !e.Expires.IsZero() {
		text += " " + expiresKey + e.Expires.Format(time.RFC3339)
	}
	if e.Groups != "" {
		text += " " + groupsKey + e.Groups
	}
	if e.Operator {
		text += " " + operator
	}
	return text + "\n"
}

// Parse reads a file. Its error names every invalid line and quotes none, since a line may hold a token.
func Parse(data []byte) ([]Entry, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("it is larger than %d bytes", MaxFile)
	}
	var entries []Entry
	var wrong []error
	lineOf := map[[sha256.Size]byte]int{}
	number := 0
	for line := range bytes.Lines(data) {
		number++
		fields := fieldsOf(line)
		if len(fields) == 0 {
			continue
		}
		e, err := parseEntry(fields)
		if first := lineOf[e.hash]; err == nil && first > 0 {
			err = fmt.Errorf("this repeats the token of line %d", first)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		lineOf[e.hash] = number
		entries = append(entries, e)
	}
	switch {
	case number == 0:
		return nil, errors.New("it is empty, as a file is that is just being written; to admit nobody, write a comment into it")
	case len(entries) > maxEntries:
		wrong = append(wrong, fmt.Errorf("there are more than %d tokens", maxEntries))
	}
	if len(wrong) > 10 {
		wrong = append(wrong[:10], fmt.Errorf("and %d lines more", len(wrong)-10))
	}
	if wrong != nil {
		return nil, errors.Join(wrong...)
	}
	return entries, nil
}

// fieldsOf returns the words of a line without its comment.
func fieldsOf(line []byte) []string {
	line, _, _ = bytes.Cut(line, []byte("#"))
	return strings.Fields(string(line))
}

func parseEntry(fields []string) (e Entry, err error) {
	const form = "want NAME sha256:HASH, as mcsh token new writes it"
	for _, field := range fields {
		if strings.HasPrefix(field, Prefix) {
			return e, errors.New("this line contains a token instead of its hash, and everybody who reads the file can use it: remove it, and make another with mcsh token new")
		}
	}
	if len(fields) < 2 || len(fields) > 5 {
		return e, fmt.Errorf("it has %d words; %s", len(fields), form)
	}
	if e.Name = fields[0]; !names().MatchString(e.Name) {
		return e, errors.New("its first word is not a name for a caller: want up to 64 of A-Z a-z 0-9 . _ @ + -")
	}
	text, ok := strings.CutPrefix(fields[1], algorithm)
	if n, err := hex.Decode(e.hash[:], []byte(text[:min(len(text), 2*len(e.hash))])); !ok || err != nil || n != len(e.hash) || len(text) != 2*n {
		return Entry{}, errors.New("its second word is not sha256: and 64 hexadecimal digits; " + form)
	}
	for _, field := range fields[2:] {
		if err := e.parseOption(field); err != nil {
			return Entry{}, err
		}
	}
	return e, nil
}

// parseOption reads a word behind the hash.
func (e *Entry) parseOption(field string) (err error) {
	end, isEnd := strings.CutPrefix(field, expiresKey)
	groups, isGroups := strings.CutPrefix(field, groupsKey)
	switch {
	case field == operator && !e.Operator:
		e.Operator = true
		return nil
	case isGroups && e.Groups == "":
		e.Groups, err = ParseGroups(strings.Split(groups, ","))
		return err
	case !isEnd || !e.Expires.IsZero():
		return errors.New("behind its hash stands something else than one expires=TIME, one groups=GROUP,GROUP and one operator")
	}
	if e.Expires, err = time.Parse(time.RFC3339, end); err != nil || e.Expires.IsZero() { // zero would be never
		return errors.New("its expires= is not followed by a time such as 2027-01-31T00:00:00Z")
	}
	e.Expires = e.Expires.UTC()
	return nil
}

// ParseGroups returns the groups of an entry. The error quotes nothing.
func ParseGroups(names []string) (string, error) {
	for _, name := range names {
		if !auth.ValidGroup(name) && (name != allGroups || len(names) > 1) {
			return "", errors.New("its groups are not names such as dev,ops: want up to 64 of A-Z a-z 0-9 . _ - that begin with a letter or a digit; * alone means all servers")
		}
	}
	if len(names) > maxGroups {
		return "", fmt.Errorf("it has more than %d groups", maxGroups)
	}
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), ","), nil
}

// groups returns the groups as a list, and whether they mean all servers.
func (e Entry) groups() (list []string, all bool) {
	switch e.Groups {
	case "":
		return nil, false
	case allGroups:
		return nil, true
	}
	return strings.Split(e.Groups, ","), false
}

// Add returns a file with one entry more. The rest stays as it is.
func Add(file []byte, e Entry) []byte {
	switch {
	case len(file) == 0:
		file = []byte(header)
	case file[len(file)-1] != '\n':
		file = append(bytes.Clone(file), '\n')
	}
	return append(bytes.Clone(file), e.line()...)
}

// Remove returns a file without the entries of a name, or without that of them with an id if there is one, and those that
// went.
func Remove(file []byte, name, id string) ([]byte, []Entry) {
	var kept []byte
	var removed []Entry
	for line := range bytes.Lines(file) {
		if fields := fieldsOf(line); len(fields) > 0 && fields[0] == name {
			if e, err := parseEntry(fields); err == nil && (id == "" || id == e.ID()) {
				removed = append(removed, e)
				continue
			}
		}
		kept = append(kept, line...)
	}
	if len(kept) == 0 {
		kept = []byte(header) // an empty file is taken for one that is being written
	}
	return kept, removed
}

// find returns the entry of a token. How long it takes says nothing of the hashes.
func find(entries []Entry, token string) (Entry, bool) {
	hash := sha256.Sum256([]byte(token))
	at := -1
	for i := range entries {
		if subtle.ConstantTimeCompare(entries[i].hash[:], hash[:]) == 1 {
			at = i
		}
	}
	if at < 0 {
		return Entry{}, false
	}
	return entries[at], true
}
