package rpc

import (
	"strings"
	"testing"
)

// TestNews: a notification is read as news, with a URI only where it is text and not too long.
func TestNews(t *testing.T) {
	for message, want := range map[string]News{
		`{"method":"notifications/resources/updated","params":{"uri":"a:\u0062"}}`:     {ResourceUpdated, "a:b"},
		`{"method":"notifications/resources/updated","params":{"uri":7}}`:              {Method: ResourceUpdated},
		`{"method":"notifications/resources/updated","params":[]}`:                     {Method: ResourceUpdated},
		`{"method":"notifications/resources/updated"}`:                                 {Method: ResourceUpdated},
		`{"method":"notifications/resources/updated","params":{"uri":"` + long + `"}}`: {Method: ResourceUpdated},
		`{"method":"notifications/resources/list_changed","params":{"uri":"a:b"}}`:     {Method: ResourcesChanged},
		`{"id":1,"method":"notifications/resources/updated","params":{"uri":"a:b"}}`:   {},
		`{"method":"notifications/resources/subscribed","params":{"uri":"a:b"}}`:       {},
	} {
		e, ok := Scan([]byte(message))
		if !ok {
			t.Fatalf("%.80s is no message", message)
		}
		got := News{}
		if e.IsNews() {
			got = e.News()
		}
		if got != want {
			t.Errorf("%.80s: got %+v, want %+v", message, got, want)
		}
	}
}

var long = strings.Repeat("x", maxUpdate)

// FuzzAcknowledgement: any parameters are read without a panic, and reach only the request that they name.
func FuzzAcknowledgement(f *testing.F) {
	for _, params := range []string{
		`{"_meta":{"io.modelcontextprotocol/subscriptionId":1000000000},"notifications":{"resourceSubscriptions":["a:b"]}}`,
		`{"_meta":{"io.modelcontextprotocol/subscriptionId":"1000000000"},"notifications":{}}`, `{"notifications":{"resourceSubscriptions":[1]}}`, `{}`, `7`,
	} {
		f.Add([]byte(params))
	}
	f.Fuzz(func(t *testing.T, params []byte) {
		c := &Conn{pending: map[int64]pendingRequest{
			FirstID:     {request: &Request{Acknowledged: func([]string) {}}},
			FirstID + 1: {request: &Request{Acknowledged: func([]string) { t.Errorf("%q has reached another request", params) }}},
			FirstID + 2: {request: &Request{}},
		}}
		if id, _, ok := readAcknowledgement(params); ok && (id == FirstID+1) {
			return // it names that one
		}
		c.routeAcknowledgement(params)
		(&Request{}).Acknowledge(params)
	})
}
