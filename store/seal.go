package store

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	magic    = "mcsh-sealed"
	version  = 1
	saltSize = 32
	tagSize  = 16

	// The header: magic, version, key id, salt. Behind it is the encrypted data, and its tag.
	idAt       = len(magic) + 1
	saltAt     = idAt + maxKeyID
	headerSize = saltAt + saltSize
	sealSize   = headerSize + tagSize

	maxStored = int64(MaxObject + sealSize) // bytes of an object below a seal
)

// Seal returns a store that encrypts objects before they come to s. An object that was changed since it was written, or is under another
// name, cannot be read.
func Seal(s Store, k Keys) Store { return sealed{s, k} }

// keysPrefix begins the names of empty objects, each sealed with the key whose id follows.
const keysPrefix = "keys/"

// OpenSealed is [Seal] after a check that each key is the one that other gateways have under its id. With another one this gateway would
// take good objects for damaged ones, and others its own.
func OpenSealed(ctx context.Context, s Store, k Keys) (Store, error) {
	for _, one := range k.list {
		own, name := Seal(s, Keys{[]key{one}}), keysPrefix+one.id
		err := own.Put(ctx, name, nil)
		if errors.Is(err, ErrExists) {
			_, err = own.Get(ctx, name)
		}
		switch {
		case errors.Is(err, ErrDamaged):
			return nil, fmt.Errorf("the key %s of the key file is not the one that sealed this store: "+
				"give all gateways the same key file, and a new key a new id", texts.Quote(one.id))
		case err != nil:
			return nil, err
		}
	}
	return Seal(s, k), nil
}

type sealed struct {
	store Store
	keys  Keys
}

// objectCipher derives the key of an object. The whole header is in the derivation, so that it cannot be changed.
func objectCipher(key, header []byte) (cipher.AEAD, error) {
	objectKey, err := hkdf.Key(sha256.New, key, header[saltAt:], string(header[:saltAt]), 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(objectKey)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce is that of all objects: the key of an object seals nothing else.
var nonce [12]byte

// Put implements [Store].
func (s sealed) Put(ctx context.Context, name string, data []byte) error {
	if err := checkPut(ctx, name, data, MaxObject); err != nil {
		return err
	}
	key, err := s.keys.first()
	if err != nil {
		return err
	}
	header := make([]byte, headerSize, sealSize+len(data))
	copy(header, magic)
	header[len(magic)] = version
	copy(header[idAt:saltAt], key.id)
	rand.Read(header[saltAt:]) // it never fails
	c, err := objectCipher(key.secret, header)
	if err != nil {
		return err
	}
	return s.store.Put(ctx, name, c.Seal(header, nonce[:], data, []byte(name)))
}

// Get implements [Store].
func (s sealed) Get(ctx context.Context, name string) ([]byte, error) {
	object, err := s.store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := s.open(name, object)
	if err != nil {
		return nil, fmt.Errorf("opening the sealed object %s: %w", texts.Quote(name), err)
	}
	return data, nil
}

var errChanged = fmt.Errorf("%w: somebody has changed it, moved it here or cut it", ErrDamaged)

// open opens an object in its place.
func (s sealed) open(name string, object []byte) ([]byte, error) {
	if len(object) < sealSize {
		return nil, errChanged
	}
	header, data := object[:headerSize], object[headerSize:]
	if string(header[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it has no seal", ErrDamaged)
	}
	if v := header[len(magic)]; v != version {
		return nil, fmt.Errorf("a newer mcsh has written it (version %d; this one reads version %d): use that one", v, version)
	}
	secret, err := s.keys.find(string(bytes.TrimRight(header[idAt:saltAt], "\x00")))
	if err != nil {
		return nil, err
	}
	c, err := objectCipher(secret, header)
	if err != nil {
		return nil, err
	}
	data, err = c.Open(data[:0], nonce[:], data, []byte(name))
	if err != nil {
		return nil, errChanged
	}
	return data, nil
}

// List implements [Store]. Sizes are those of the data that was sealed; of an object that is not sealed the size is wrong.
func (s sealed) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range s.store.List(ctx, prefix) {
			o.Size = max(o.Size-int64(sealSize), 0)
			if !yield(o, err) {
				return
			}
		}
	}
}

// Delete implements [Store].
func (s sealed) Delete(ctx context.Context, name string) error { return s.store.Delete(ctx, name) }
