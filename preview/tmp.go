// Package preview turns large data into a short summary of its shape. For now it passes the data on: its scanner is on its way.
package preview

import (
	"context"
	"io"
)

type Options struct {
	Chars  int
	Window bool
}
type Result struct {
	Text, Summary     string
	Bytes             int64
	Verbatim, Partial bool
}

func Preview(ctx context.Context, r io.Reader, o Options) (Result, error) {
	b, err := io.ReadAll(r)
	if err == io.ErrUnexpectedEOF {
		err = nil
	}
	return Result{Text: string(b), Summary: "data"}, err
}
