package logins

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxFile bounds the file of logins.
const maxFile = 4 << 20

// anew is the remedy of a file that cannot be used any more.
const anew = ": remove it and sign in again with mcsh login --all"

// magic begins the file: its name and version.
const magic = "mcsh-logins-1"

// Kinds of seals, by where the key is.
const (
	inKeyring = "keyring"
	inKeyFile = "key-file"
	plain     = "plain" // no key
)

// A header is the first line of the file. It is authenticated together with the content.
type header struct {
	kind        string
	id          string // of the keyring's entry; "-": none
	fingerprint string // of the key: it distinguishes another key from a damaged file
}

func (h header) line() string {
	return strings.Join([]string{magic, h.kind, h.id, h.fingerprint}, " ") + "\n"
}

// maxHeader bounds the first line.
const maxHeader = 200

// parseHeader splits a file into its header and the rest.
func parseHeader(file []byte) (header, []byte, error) {
	line, _, found := bytes.Cut(file[:min(len(file), maxHeader)], []byte("\n"))
	words := strings.Split(string(line), " ")
	if !found || words[0] != magic {
		if words[0] != magic && strings.HasPrefix(words[0], "mcsh-logins-") {
			return header{}, nil, errors.New("another version of this program has written it: use that one, or remove the file and sign in again with mcsh login --all")
		}
		return header{}, nil, errors.New("it is not a file of logins, or it is damaged" + anew)
	}
	if len(words) != 4 || !slices.Contains([]string{inKeyring, inKeyFile, plain}, words[1]) {
		return header{}, nil, errors.New("its first line is damaged" + anew)
	}
	return header{words[1], words[2], words[3]}, file[len(line)+1:], nil
}

// fingerprint names a key without telling it.
func fingerprint(key []byte) string {
	if key == nil {
		return "-"
	}
	sum := sha256.Sum256(append([]byte(magic+" key "), key...))
	return hex.EncodeToString(sum[:8])
}

// seal returns a file.
func seal(h header, key []byte, list []Login) ([]byte, error) {
	data, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	line := []byte(h.line())
	if h.kind != plain {
		gcm, err := newGCM(key)
		if err != nil {
			return nil, err
		}
		data = gcm.Seal(nil, nil, data, line)
	}
	if file := append(line, data...); len(file) <= maxFile {
		return file, nil
	}
	return nil, errFull
}

var errFull = errors.New("the logins do not fit into 4 MiB: sign out of servers that are no longer needed, with mcsh logout")

// open returns the logins of what follows the header.
func (h header) open(key, rest []byte) ([]Login, error) {
	if h.kind != plain {
		gcm, err := newGCM(key)
		if err != nil {
			return nil, err
		}
		if rest, err = gcm.Open(nil, nil, rest, []byte(h.line())); err != nil {
			return nil, errors.New("it was damaged or changed since it was written" + anew)
		}
	}
	return decode(rest)
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// decode reads a list of logins, which must be as [seal] writes it.
func decode(data []byte) ([]Login, error) {
	var list []Login
	if err := strictly(data, &list); err != nil {
		return nil, err
	}
	if len(list) > maxLogins {
		return nil, fmt.Errorf("it has %d logins, more than %d"+anew, len(list), maxLogins)
	}
	for i, l := range list {
		if err := l.check(); err != nil {
			return nil, fmt.Errorf("login %d: %w"+anew, i+1, err)
		}
		if i > 0 && list[i-1].compare(l.Key) >= 0 {
			return nil, errors.New("its logins are not in order" + anew)
		}
	}
	return list, nil
}

// strictly reads JSON that has nothing else than v.
func strictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields() // the next writer would lose them
	if err := d.Decode(v); err != nil {
		return errors.New("its logins cannot be read; another version of this program may have written them" + anew)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows its logins" + anew)
	}
	return nil
}
