package gateway

import (
	"net/http"
	"time"
)

const (
	// writeWait is how long a client may take nothing of what is written for it. It is far longer than a network that
	// works needs, and far shorter than a call may take.
	writeWait = 30 * time.Second
	// writeOnce is how much is written within one writeWait: a slow client has the time that its answer takes.
	writeOnce = 64 << 10
)

// Patient serves requests with h and bounds how long a write of an answer waits. It stands before everything that
// answers: a client that does not read a refusal must not hold anything either.
func Patient(h http.Handler) http.Handler { return patience{h} }

// patience serves requests with a bound on how long a write waits. The server has none of its own: that would be one for
// the whole of a response, and a stream of events has no end.
type patience struct{ next http.Handler }

// ServeHTTP implements [http.Handler].
func (p patience) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, ok := w.(*patientWriter); ok {
		p.next.ServeHTTP(w, r)
		return
	}
	pw := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	pw.rest() // from the deadline of the connection's request before
	p.next.ServeHTTP(pw, r)
	pw.extend() // for what the server still writes; a writer that has no deadlines, as of tests, waits as it does
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
