package gateway

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// writeWait is how long a write may wait for a client: far longer than a working network needs, far shorter than a
	// call may take.
	writeWait = 30 * time.Second
	// writeOnce is the number of bytes for each writeWait, so that a slow client gets a long answer.
	writeOnce = 64 << 10
	// bodyWait is how long the body of a request may take. Authentication comes before it.
	bodyWait = time.Minute
	// unwantedWait and unwantedMost bound how long and how many bytes the server reads of a refused body. Many clients read
	// the answer only after they have sent all, and lose it if the connection is closed before.
	unwantedWait = 5 * time.Second
	unwantedMost = 64 << 20
	// serverReads is how much of it net/http reads before it sends the answer.
	serverReads = 256 << 10
	// maxUnread bounds the bytes of long answers that clients have not read, all together. Beyond it the oldest write ends
	// with its connection: a client that reads is done in a moment.
	maxUnread = 32 << 20
)

// WithDeadlines bounds how long h waits for the body of a request and for each write of an answer. It wraps every other
// handler, because a client that stalls on a refusal must not hold memory either.
func WithDeadlines(h http.Handler) http.Handler { return deadlines{h, new(unread)} }

// deadlines is the handler of [WithDeadlines]. The timeouts of net/http are for whole responses, and a stream of events has
// no end.
type deadlines struct {
	next   http.Handler
	unread *unread
}

// ServeHTTP implements [http.Handler].
func (p deadlines) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pw := &deadlineWriter{ResponseWriter: w, control: http.NewResponseController(w), unread: p.unread}
	pw.clear() // of the connection's earlier request
	if r.Body == nil || r.Body == http.NoBody {
		p.next.ServeHTTP(pw, r)
		pw.extend() // for the rest of the answer, which net/http flushes
		return
	}
	body := &deadlineBody{Reader: r.Body, control: pw.control}
	pw.control.SetReadDeadline(time.Now().Add(bodyWait))
	inner := r.WithContext(r.Context()) // net/http keeps its own body
	inner.Body = body
	p.next.ServeHTTP(pw, inner)
	pw.extend()
	small := r.ContentLength >= 0 && r.ContentLength <= serverReads
	body.drain(pw, small || r.Header.Get("Expect") != "")
}

// deadlineBody clears the read deadline at its end, because net/http then reads on to notice a closed connection.
type deadlineBody struct {
	io.Reader
	control *http.ResponseController
	whole   bool
}

// Close leaves the body open: net/http closes it after drain.
func (b *deadlineBody) Close() error { return nil }

// Read implements [io.Reader].
func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && !b.whole {
		b.whole = true
		b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// drain reads the rest of an unwanted body after the answer, within bounds, unless net/http does.
func (b *deadlineBody) drain(answer *deadlineWriter, toServer bool) {
	if b.whole {
		return
	}
	b.control.SetReadDeadline(time.Now().Add(unwantedWait))
	if toServer || answer.FlushError() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, b, unwantedMost) // net/http closes the connection if more is left
}

// deadlineWriter gives each write its own deadline.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	unread  *unread
	size    int // of a long answer in writing, guarded by unread.mu

	mu   sync.Mutex
	over bool // no write may succeed, guarded by mu
}

// extend gives the client writeWait for what is written now.
func (w *deadlineWriter) extend() { w.set(time.Now().Add(writeWait)) }

// clear removes the deadline: with HTTP/2 it would end an idle stream.
func (w *deadlineWriter) clear() { w.set(time.Time{}) }

func (w *deadlineWriter) set(deadline time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.control.SetWriteDeadline(deadline)
	}
}

// end fails the current write and all later ones.
func (w *deadlineWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.control.SetWriteDeadline(time.Unix(1, 0))
}

// Write implements [http.ResponseWriter].
func (w *deadlineWriter) Write(p []byte) (n int, err error) {
	defer w.clear()
	if len(p) > writeOnce {
		w.unread.add(w, len(p))
		defer w.unread.remove(w)
	}
	for {
		w.extend()
		m, err := w.ResponseWriter.Write(p[n:min(len(p), n+writeOnce)])
		if n += m; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// FlushError flushes what was written, for [http.ResponseController].
func (w *deadlineWriter) FlushError() error {
	w.extend()
	defer w.clear()
	return w.control.Flush()
}

// Unwrap is for [http.ResponseController].
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// unread counts the long answers in writing.
type unread struct {
	mu      sync.Mutex
	bytes   int               // guarded by mu
	writers []*deadlineWriter // oldest first, guarded by mu
}

// add counts an answer, and ends older ones beyond maxUnread.
func (u *unread) add(w *deadlineWriter, size int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes += size
	for u.bytes > maxUnread && len(u.writers) > 0 {
		u.writers[0].end()
		u.drop(0)
	}
	w.size = size
	u.writers = append(u.writers, w)
}

// remove removes an answer after its write.
func (u *unread) remove(w *deadlineWriter) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := slices.Index(u.writers, w); i >= 0 {
		u.drop(i)
	}
}

// drop removes the answer i. u.mu is held.
func (u *unread) drop(i int) {
	u.bytes -= u.writers[i].size
	u.writers = slices.Delete(u.writers, i, i+1)
}
