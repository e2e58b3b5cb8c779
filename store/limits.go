package store

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxAnswer bounds an answer in bytes: a page of a list has 1,000 rows of a name of 1 KiB, escaped, and what servers say of an
// object. minio-go reads it without a bound.
const maxAnswer = 16 << 20

// limits are those of a request, with its answer.
type limits struct {
	next http.RoundTripper
	wait time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (l limits) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(request.Context(), l.wait, fmt.Errorf("the server took longer than %s", l.wait))
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer cancel()
		return nil, causeOf(ctx, err)
	}
	response.Body = &limitedBody{http.MaxBytesReader(nil, response.Body, maxAnswer), ctx, cancel}
	return response, nil
}

// causeOf returns why a request has ended, which net/http does not always say.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// A limitedBody ends the request when it is closed.
type limitedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelFunc
}

// Read implements [io.Reader].
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

// Close implements [io.Closer].
func (b *limitedBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
