package gateway

import (
	"io"
	"net/http"
	"time"
)

const (
	// writeWait is how long a client may take nothing of what is written for it. It is far longer than a network that
	// works needs, and far shorter than a call may take.
	writeWait = 30 * time.Second
	// writeOnce is how much is written within one writeWait: a slow client has the time that its answer takes.
	writeOnce = 64 << 10
	// bodyWait is how long the body of a request may take. Its sender was asked who it is before.
	bodyWait = time.Minute
	// unwantedWait and unwantedMost are how long and how much is read of a body that nobody wants. Many clients send all of
	// it before they read why, and lose the answer with a connection that is closed before.
	unwantedWait = 5 * time.Second
	unwantedMost = 64 << 20
	// serverReads is how much of it the server reads by itself, before the answer goes out.
	serverReads = 256 << 10
)

// Patient serves requests with h and bounds how long a request takes to come and how long a write of an answer waits. It
// stands before everything that answers: a client that does not read a refusal, or sends no body that nobody wants, must
// not hold anything either.
func Patient(h http.Handler) http.Handler { return patience{h} }

// patience serves requests with a bound on how long they take to come and how long a write waits. The server has none of
// its own: that would be one for the whole of a response, and a stream of events has no end.
type patience struct{ next http.Handler }

// ServeHTTP implements [http.Handler].
func (p patience) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if patient(w) {
		p.next.ServeHTTP(w, r)
		return
	}
	pw := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	pw.rest() // from the deadline of the connection's request before
	if r.Body == nil || r.Body == http.NoBody {
		p.next.ServeHTTP(pw, r)
		pw.extend() // for what the server still writes; a writer that has no deadlines, as of tests, waits as it does
		return
	}
	body := &patientBody{Reader: r.Body, control: pw.control}
	pw.control.SetReadDeadline(time.Now().Add(bodyWait))
	inner := r.WithContext(r.Context()) // the server looks at the body of its own
	inner.Body = body
	p.next.ServeHTTP(pw, inner)
	pw.extend() // likewise
	small := r.ContentLength >= 0 && r.ContentLength <= serverReads
	body.leave(pw, small || r.Header.Get("Expect") != "")
}

// patient reports whether a patientWriter is behind a writer already.
func patient(w http.ResponseWriter) bool {
	for {
		switch inner := w.(type) {
		case *patientWriter:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return false
		}
	}
}

// patientBody is a body with a deadline, which ends with it: the server goes on reading, to see whether the client leaves.
type patientBody struct {
	io.Reader
	control *http.ResponseController
	whole   bool
}

// Close leaves the body open: the server closes it, when what nobody wants was read.
func (b *patientBody) Close() error { return nil }

// Read implements [io.Reader].
func (b *patientBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && !b.whole {
		b.whole = true
		b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// leave reads what nobody wants, within bounds, behind the answer, or leaves it to the server.
func (b *patientBody) leave(answer *patientWriter, toServer bool) {
	if b.whole {
		return
	}
	b.control.SetReadDeadline(time.Now().Add(unwantedWait))
	if toServer || answer.FlushError() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, b, unwantedMost) // what is left then ends with the connection
}

// patientWriter gives every write its own deadline.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *patientWriter) extend() { w.control.SetWriteDeadline(time.Now().Add(writeWait)) }

// rest takes the deadline away: with HTTP/2 it would end a stream that has nothing to write.
func (w *patientWriter) rest() { w.control.SetWriteDeadline(time.Time{}) }

// Write implements [http.ResponseWriter].
func (w *patientWriter) Write(p []byte) (n int, err error) {
	defer w.rest()
	for {
		w.extend()
		m, err := w.ResponseWriter.Write(p[n:min(len(p), n+writeOnce)])
		if n += m; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// FlushError flushes what was written, for [http.ResponseController].
func (w *patientWriter) FlushError() error {
	w.extend()
	defer w.rest()
	return w.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
