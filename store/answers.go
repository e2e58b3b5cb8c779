package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxAnswer is the most bytes of an answer: a page of a list has 1,000 rows of a name of 1 KiB, escaped, and what servers say of
// an object.
const maxAnswer = 16 << 20

// wholeAnswers reads an answer before it returns it: so a request has a time as a whole, and minio-go, which has no bounds of its own,
// sends it again if the answer breaks off. Of a longer answer there is the beginning, which is neither an object nor a page.
type wholeAnswers struct {
	next http.RoundTripper
	wait time.Duration
}

// RoundTrip implements [http.RoundTripper].
func (a wholeAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(request.Context(), a.wait, fmt.Errorf("the server took longer than %s", a.wait))
	defer cancel()
	response, err := a.next.RoundTrip(request.WithContext(ctx))
	var data []byte
	if err == nil {
		defer response.Body.Close()
		data, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	}
	switch {
	case err != nil && ctx.Err() != nil: // net/http does not always say why
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, nil
}
