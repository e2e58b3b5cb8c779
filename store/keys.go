package store

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	keySize     = 32
	maxKeyID    = 24 // bytes
	maxKeyFile  = 1 << 20
	keyFileHelp = `each line is ID:KEY, such as one that this makes: echo "$(date +%Y-%m):$(head -c 32 /dev/urandom | base64)"`
)

// Keys are the keys of sealed objects. All open objects, and the first seals new ones.
type Keys struct {
	list []key
}

type key struct {
	id     string
	secret []byte
}

// ReadKeys reads a key file: a line ID:BASE64 for each key of 32 bytes, empty lines and lines that begin with "#". It refuses a
// file that everybody can use.
func ReadKeys(path string) (Keys, error) {
	data, err := namedfile.ReadSecret(path, maxKeyFile)
	if err != nil {
		return Keys{}, fmt.Errorf("the key file of the store: %w", err)
	}
	keys, err := parseKeys(string(data))
	if err != nil {
		return Keys{}, fmt.Errorf("the key file of the store, %s: %w", path, err)
	}
	return keys, nil
}

// parseKeys never quotes a line, which may hold a key.
func parseKeys(text string) (Keys, error) {
	var keys Keys
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		id, encoded, _ := strings.Cut(line, ":")
		id = strings.TrimSpace(id)
		secret, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(secret) != keySize || len(id) > maxKeyID || checkName(id) != nil || strings.Contains(id, "/") {
			return Keys{}, fmt.Errorf("line %d is not an id of at most %d letters, digits, \"_\", \"-\" and \".\", a colon, and %d bytes in base64; %s", i+1, maxKeyID, keySize, keyFileHelp)
		}
		if _, err := keys.find(id); err == nil {
			return Keys{}, fmt.Errorf("line %d repeats the id %s; a new key needs an id of its own", i+1, id)
		}
		keys.list = append(keys.list, key{id, secret})
	}
	if len(keys.list) == 0 {
		return Keys{}, errors.New("there is no key; " + keyFileHelp)
	}
	return keys, nil
}

// first returns the key that seals.
func (k Keys) first() (key, error) {
	if len(k.list) == 0 {
		return key{}, errors.New("there is no key to seal objects with")
	}
	return k.list[0], nil
}

// find returns the secret of a key.
func (k Keys) find(id string) ([]byte, error) {
	for _, key := range k.list {
		if key.id == id {
			return key.secret, nil
		}
	}
	return nil, fmt.Errorf("%w: add the key %s to the key file", ErrKey, texts.Quote(id))
}
