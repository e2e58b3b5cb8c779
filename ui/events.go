package ui

import (
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Bounds of event streams.
const (
	maxStreams       = 512 // of a console
	maxPersonStreams = 32  // of one person
	maxTopics        = 64  // of a stream
	maxTopic         = 128 // bytes of a topic
)

const (
	// eventPause is the time between two messages of a stream: a run that changes a thousand times a second is shown four times.
	eventPause = 250 * time.Millisecond
	// tickPause is the time between two ticks, for what changes all the time. A stream has the topic "tick" only if it asks for it.
	tickPause = 2 * time.Second
	// silence is how long a stream may be silent before proxies take it for dead.
	silence = 15 * time.Second
)

// A hub knows the open streams.
type hub struct {
	instance string // of this process

	mu      sync.Mutex
	streams map[*stream]bool // guarded by mu
}

// A stream sends the events of one open page. It keeps the topics that have changed since its last message, and no more: a browser
// that reads slowly gets them once.
type stream struct {
	topics  []string
	person  string
	ended   chan struct{}   // closed when the person has lost access
	changed map[string]bool // guarded by hub.mu
	wake    chan struct{}   // of one place
}

func newHub() *hub { return &hub{instance: rand.Text()[:8], streams: map[*stream]bool{}} }

// publish marks a topic as changed, for the streams that have it.
func (h *hub) publish(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		if !slices.Contains(s.topics, topic) {
			continue
		}
		s.changed[topic] = true
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// open opens a stream, or says why there is none.
func (h *hub) open(person string, topics []string) (*stream, *Problem) {
	s := &stream{topics: topics, person: person, ended: make(chan struct{}), changed: map[string]bool{}, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for other := range h.streams {
		if other.person == person {
			own++
		}
	}
	if own >= maxPersonStreams || len(h.streams) >= maxStreams {
		return nil, &Problem{http.StatusTooManyRequests, "Too many pages are open", "this page is not updated", "close other pages of the console"}
	}
	h.streams[s] = true
	return s, nil
}

func (h *hub) close(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// endUser ends the streams of a person.
func (h *hub) endUser(person string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		if s.person == person {
			close(s.ended)
			delete(h.streams, s)
		}
	}
}

// take returns the topics that have changed.
func (h *hub) take(s *stream) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := slices.Sorted(maps.Keys(s.changed))
	clear(s.changed)
	return list
}

// serveEvents sends the names of topics that change, until the browser goes.
func (c *Console) serveEvents(v *Visit) {
	if v.Method == http.MethodHead { // a page asks whether it may come in
		return
	}
	topics := v.URL.Query()["topic"]
	if len(topics) > maxTopics || slices.ContainsFunc(topics, func(t string) bool { return len(t) > maxTopic }) {
		v.fail(&Problem{http.StatusBadRequest, "Too many topics", "a page may have " + texts.Count(maxTopics, "topic"), ""})
		return
	}
	s, refused := c.hub.open(v.Who.ID, topics)
	if refused != nil {
		v.fail(refused)
		return
	}
	defer c.hub.close(s)
	h := v.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	flush := http.NewResponseController(v.w).Flush
	send := func(event, data string) bool {
		_, err := fmt.Fprintf(v.w, "event: %s\ndata: %s\n\n", event, data)
		return err == nil && flush() == nil
	}
	if send("hello", texts.JSON(c.hub.instance)) {
		c.hub.follow(v, s, send, func() bool { _, err := io.WriteString(v.w, ":\n\n"); return err == nil && flush() == nil })
	}
}

// follow sends what changes in a stream until that fails or the browser has gone.
func (h *hub) follow(v *Visit, s *stream, send func(event, data string) bool, beat func() bool) {
	pause, tick, alive := time.NewTimer(0), time.NewTicker(tickPause), time.NewTicker(silence)
	defer pause.Stop()
	defer tick.Stop()
	defer alive.Stop()
	wake, ok := s.wake, true
	for ok {
		select {
		case <-v.Context().Done():
			return
		case <-s.ended:
			return
		case <-pause.C:
			wake = s.wake
		case <-wake:
			wake = nil // until the pause is over
			pause.Reset(eventPause)
			ok = send("changed", texts.JSON(h.take(s)))
		case <-tick.C:
			if slices.Contains(s.topics, "tick") {
				ok = send("changed", `["tick"]`)
			}
		case <-alive.C:
			ok = beat()
		}
	}
}
