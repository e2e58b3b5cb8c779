package store

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// maxStored is the most bytes of an object below a seal.
const maxStored = int64(MaxObject + sealSize)

// checkCall checks the arguments of a method.
func checkCall(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// checkPut checks the arguments of Put.
func checkPut(ctx context.Context, name string, data []byte, most int64) error {
	if err := checkCall(ctx, name); err != nil {
		return err
	}
	if int64(len(data)) > most {
		return fmt.Errorf("the object %s has %d bytes, more than %d", texts.Quote(name), len(data), most)
	}
	return nil
}

// readObject reads an object of size bytes.
func readObject(from io.Reader, size int64) ([]byte, error) {
	if size > maxStored {
		return nil, fmt.Errorf("%w: it has %d bytes, more than %d", ErrDamaged, size, maxStored)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(from, data); errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	} else if err != nil {
		return nil, err
	}
	return data, nil
}
