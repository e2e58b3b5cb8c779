package gateway

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// A sealer makes tickets that only this process can read, and only for what they are bound to.
type sealer struct{ aead cipher.AEAD }

// A ticket names one reply with questions of a dialog.
type ticket struct {
	id    string
	round uint32
	until time.Time
}

// idLength is the length of the id of a dialog.
const idLength = 26

// newSealer returns a sealer with a random key.
func newSealer() *sealer {
	key := make([]byte, 32)
	rand.Read(key) // does not fail
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // of a wrong length only
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &sealer{aead}
}

// close seals a ticket.
func (s *sealer) close(t ticket, of binding) string {
	plain := binary.BigEndian.AppendUint32([]byte(t.id), t.round)
	plain = binary.BigEndian.AppendUint64(plain, uint64(t.until.Unix()))
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, of.bytes()))
}

// open reads a ticket. It reports false for one that is not of this process, is bound to something else, or is too old.
func (s *sealer) open(text string, of binding) (ticket, bool) {
	const plainLength = idLength + 4 + 8
	if len(text) != base64.RawURLEncoding.EncodedLen(plainLength+s.aead.Overhead()) {
		return ticket{}, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return ticket{}, false
	}
	plain, err := s.aead.Open(nil, nil, sealed, of.bytes())
	if err != nil || len(plain) != plainLength {
		return ticket{}, false
	}
	t := ticket{
		string(plain[:idLength]), binary.BigEndian.Uint32(plain[idLength:]),
		time.Unix(int64(binary.BigEndian.Uint64(plain[idLength+4:])), 0),
	}
	return t, time.Now().Before(t.until)
}

// bytes writes a binding so that no two are written alike.
func (b binding) bytes() []byte {
	out := binary.BigEndian.AppendUint64(nil, uint64(len(b.caller)))
	return append(append(out, b.caller...), b.call...)
}
