package store

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

const (
	magic     = "mcsh-sealed"
	version   = 1
	saltSize  = 32
	tagSize   = 16
	chunkSize = 64 << 10 // bytes of plain data

	// The header: magic, version, key id, size, salt, tag.
	idAt       = len(magic) + 1
	sizeAt     = idAt + maxKeyID
	saltAt     = sizeAt + 8
	tagAt      = saltAt + saltSize
	headerSize = tagAt + tagSize

	maxSize = math.MaxInt64 / 2 // of plain data
)

// Seal returns a store that encrypts objects before they come to s. What is no longer as it was written, or is under another
// name, cannot be read.
func Seal(s Store, k Keys) Store { return sealed{s, k} }

type sealed struct {
	store Store
	keys  Keys
}

// A box seals and opens the chunks of one object.
type box struct {
	aead cipher.AEAD
	name string // of the object, with which every chunk is authenticated
	size int64  // of the plain data
}

// newBox derives the key of an object. The header without its tag is in the derivation, so that it cannot be changed.
func newBox(key []byte, header []byte, name string) (*box, error) {
	objectKey, err := hkdf.Key(sha256.New, key, header[saltAt:tagAt], string(header[:saltAt]), 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(objectKey)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &box{aead: aead, name: name, size: int64(binary.BigEndian.Uint64(header[sizeAt:]))}, err
}

// nonce is the number of a chunk from 1 on; 0 is that of the header's tag. A key seals one object, so no nonce comes again.
func (b *box) nonce(number int64) []byte {
	nonce := make([]byte, b.aead.NonceSize())
	binary.BigEndian.PutUint64(nonce[len(nonce)-8:], uint64(number))
	return nonce
}

// Put implements [Store].
func (s sealed) Put(ctx context.Context, name string, data io.Reader, size int64) error {
	if err := checkCall(ctx, name, size); err != nil {
		return err
	}
	if size > maxSize {
		return fmt.Errorf("%s is longer than %s", texts.Quote(name), texts.Bytes(maxSize))
	}
	header, b, err := s.newHeader(name, size)
	if err != nil {
		return err
	}
	exact := &exactReader{ctx: ctx, from: data, left: size, whole: true}
	if size == 0 { // no chunk notices data
		if _, err := exact.Read(nil); err != nil {
			return err
		}
	}
	chunks := &chunkReader{from: exact, left: size, step: b.seal}
	return s.store.Put(ctx, name, io.MultiReader(bytes.NewReader(header), chunks), sealedSize(size))
}

// newHeader makes the header of a new object.
func (s sealed) newHeader(name string, size int64) ([]byte, *box, error) {
	header := make([]byte, tagAt, headerSize)
	copy(header, magic)
	header[len(magic)] = version
	key, err := s.keys.first()
	if err != nil {
		return nil, nil, err
	}
	copy(header[idAt:sizeAt], key.id)
	binary.BigEndian.PutUint64(header[sizeAt:], uint64(size))
	rand.Read(header[saltAt:]) // it never fails
	b, err := newBox(key.secret, header, name)
	if err != nil {
		return nil, nil, err
	}
	return b.aead.Seal(header, b.nonce(0), nil, []byte(name)), b, nil
}

// seal seals a chunk of size plain bytes in a buffer that has room for it.
func (b *box) seal(from io.Reader, buffer []byte, number, size int64) ([]byte, error) {
	plain := buffer[:size]
	if _, err := io.ReadFull(from, plain); err != nil {
		return nil, err
	}
	return b.aead.Seal(plain[:0], b.nonce(number), plain, []byte(b.name)), nil
}

// open opens a chunk. Nothing may follow the last one.
func (b *box) open(from io.Reader, buffer []byte, number, size int64) ([]byte, error) {
	if _, err := io.ReadFull(from, buffer[:size+tagSize]); err != nil {
		return nil, unopened(b.name, err)
	}
	plain, err := b.aead.Open(buffer[:0], b.nonce(number), buffer[:size+tagSize], []byte(b.name))
	if err != nil {
		return nil, unopened(b.name, errChanged)
	}
	if number*chunkSize >= b.size {
		err = b.end(from)
	}
	return plain, err
}

// end checks that nothing follows.
func (b *box) end(from io.Reader) error {
	switch n, err := io.ReadFull(from, make([]byte, 1)); {
	case n > 0:
		return unopened(b.name, errChanged)
	case !errors.Is(err, io.EOF):
		return unopened(b.name, err)
	}
	return nil
}

var errChanged = errors.New("its content is not what was written under this name: somebody has changed it, or it is damaged")

// unopened names the object that cannot be opened. Its early end is no end of data.
func unopened(name string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("opening the sealed object %s: %w", texts.Quote(name), err)
}

// A chunkReader reads chunks, each sealed or opened by step.
type chunkReader struct {
	from   io.Reader
	number int64 // of the last chunk
	left   int64 // plain bytes of the chunks after it
	skip   int64 // bytes that the next chunk begins with and nobody wants
	step   func(from io.Reader, buffer []byte, number, size int64) ([]byte, error)

	buffer, ready []byte
	err           error // after what is ready
}

// Read implements [io.Reader].
func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if r.left == 0 {
			return 0, io.EOF
		}
		size := min(r.left, chunkSize)
		if r.buffer == nil {
			r.buffer = make([]byte, size+tagSize) // no later chunk is longer
		}
		r.number++
		r.left -= size
		if r.ready, r.err = r.step(r.from, r.buffer, r.number, size); r.err != nil {
			return 0, r.err
		}
		r.ready, r.skip = r.ready[r.skip:], 0
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// Get implements [Store]. It takes one request of the store below if the part begins in the first chunk, and else two.
func (s sealed) Get(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := checkCall(ctx, name, offset); err != nil {
		return nil, err
	}
	ahead := int64(headerSize)
	if offset < chunkSize {
		ahead = through(0, offset, length)
	}
	data, err := s.store.Get(ctx, name, 0, ahead)
	if err != nil {
		return nil, err
	}
	b, err := s.readHeader(data, name)
	if err == nil && b.size == 0 {
		err = b.end(data)
	}
	if err != nil {
		data.Close()
		return nil, err
	}
	first := min(offset, b.size) / chunkSize
	if first > 0 {
		data.Close()
		if data, err = s.store.Get(ctx, name, sealedSize(first*chunkSize), through(first, offset, length)); err != nil {
			return nil, err
		}
	}
	chunks := &chunkReader{from: data, number: first, left: b.size - first*chunkSize, skip: offset % chunkSize, step: b.open}
	rest := max(b.size-offset, 0)
	if length >= 0 {
		rest = min(rest, length)
	}
	return part{io.LimitReader(chunks, rest), data}, nil
}

// A part is what Get returns.
type part struct {
	io.Reader
	io.Closer
}

// through returns how many bytes of a sealed object have, from a chunk on, the part of it that is asked for: all that is there
// if it is -1. One byte more shows whether the last chunk is the last.
func through(first, offset, length int64) int64 {
	if length < 0 || length > maxSize-offset {
		return -1
	}
	chunks := (offset + length + chunkSize - 1) / chunkSize
	from := int64(0) // the header is read with the first chunk
	if first > 0 {
		from = sealedSize(first * chunkSize)
	}
	return max(sealedSize(chunks*chunkSize)-from, 0) + 1
}

// readHeader reads the header of an object.
func (s sealed) readHeader(r io.Reader, name string) (*box, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, unopened(name, err)
	}
	if string(header[:len(magic)]) != magic {
		return nil, unopened(name, errors.New("mcsh has not sealed it"))
	}
	if v := header[len(magic)]; v != version {
		return nil, unopened(name, fmt.Errorf("a newer mcsh has written it (version %d; this one reads version %d): use that one", v, version))
	}
	secret, err := s.keys.find(string(bytes.TrimRight(header[idAt:sizeAt], "\x00")))
	if err != nil {
		return nil, unopened(name, err)
	}
	b, err := newBox(secret, header, name)
	if err != nil {
		return nil, err
	}
	if _, err := b.aead.Open(nil, b.nonce(0), header[tagAt:], []byte(name)); err != nil || b.size < 0 || b.size > maxSize {
		return nil, unopened(name, errChanged)
	}
	return b, nil
}

// List implements [Store]. Sizes are those of plain data, by the lengths of the objects.
func (s sealed) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range s.store.List(ctx, prefix) {
			o.Size = plainSize(o.Size)
			if !yield(o, err) {
				return
			}
		}
	}
}

// Delete implements [Store].
func (s sealed) Delete(ctx context.Context, name string) error { return s.store.Delete(ctx, name) }

// sealedSize is the size of an object of size plain bytes.
func sealedSize(size int64) int64 {
	return int64(headerSize) + size + (size+chunkSize-1)/chunkSize*tagSize
}

// plainSize is the inverse of [sealedSize], and 0 for what has another origin.
func plainSize(size int64) int64 {
	size -= int64(headerSize)
	return max(size-(size+chunkSize+tagSize-1)/(chunkSize+tagSize)*tagSize, 0)
}
