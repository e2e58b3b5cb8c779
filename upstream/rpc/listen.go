package rpc

import (
	"encoding/json"
	"strconv"
	"strings"
)

const (
	// Listen is the method of a request whose answer comes only when the server ends it. Notifications come before.
	Listen = "subscriptions/listen"

	acknowledged    = `"notifications/subscriptions/acknowledged"`
	maxAcknowledged = 1 << 20 // bytes of the parameters of an acknowledgement that are read
)

// IsAcknowledgement reports whether the message says which notifications of a [Listen] request the server will send.
func (e *Envelope) IsAcknowledgement() bool { return e.ID == nil && string(e.Method) == acknowledged }

// readAcknowledgement reads the parameters of an acknowledgement: the URIs of the resources, and the id of the request, which
// is 0 if the server leaves it out. Some servers return the id as a string.
func readAcknowledgement(params []byte) (id int64, uris []string, ok bool) {
	var a struct {
		Meta struct {
			ID json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
		} `json:"_meta"`
		Notifications struct {
			URIs []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	if len(params) > maxAcknowledged || json.Unmarshal(params, &a) != nil {
		return 0, nil, false
	}
	id, err := strconv.ParseInt(strings.Trim(string(a.Meta.ID), `"`), 10, 64)
	return id, a.Notifications.URIs, err == nil || a.Meta.ID == nil
}

// Acknowledge passes the parameters of an acknowledgement that came with the answer to a request.
func (r *Request) Acknowledge(params []byte) {
	if _, uris, ok := readAcknowledgement(params); ok && r.Acknowledged != nil {
		r.Acknowledged(uris)
	}
}

// routeAcknowledgement passes an acknowledgement to its pending request.
func (c *Conn) routeAcknowledgement(params []byte) {
	id, uris, ok := readAcknowledgement(params)
	if !ok {
		return
	}
	c.mu.Lock()
	w, pending := c.pending[id]
	c.mu.Unlock()
	if pending && w.request.Acknowledged != nil {
		w.request.Acknowledged(uris)
	}
}
