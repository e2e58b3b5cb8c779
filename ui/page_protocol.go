package ui

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Protocol has the messages between the gateway and its servers while somebody looks at them.
type Protocol interface {
	// Messages returns the last messages, the newest last. Each call keeps them being noted for a while; without, nothing is.
	Messages(ctx context.Context) []Message
}

// A Message is one message.
type Message struct {
	Number int64 // counts up
	Server string
	Out    bool // the gateway has sent it
	At     time.Time
	Method string // of a request or notification
	ID     string // of a request or an answer
	Failed bool   // the answer is an error
	Text   string // without secrets, cut; empty: bodies are not shown
	Size   int
}

// shownMessages bounds the messages that the page shows.
const shownMessages = 200

func protocolPage() page {
	return page{
		path: "protocol", title: "Protocol", file: "protocol.html", menu: "protocol", keys: "o", operators: true,
		there: func(o *Options) bool { return o.Protocol != nil }, show: showProtocol,
	}
}

// A protocolView is the messages that fit a filter, the newest first.
type protocolView struct {
	Query, Server string
	Servers       []string
	List          []Message
	All           int
	Bodies        bool
}

func showProtocol(v *Visit) (any, error) {
	q := v.URL.Query()
	p := &protocolView{Query: fitQuery(q.Get("q")), Server: texts.Fit(q.Get("server"), maxQuery), Bodies: v.Options().Results}
	all := v.Options().Protocol.Messages(v.Context())
	slices.Reverse(all)
	wanted := strings.ToLower(p.Query)
	for _, m := range all {
		if !p.Bodies {
			m.Text = ""
		}
		if !slices.Contains(p.Servers, m.Server) {
			p.Servers = append(p.Servers, m.Server)
		}
		if p.Server != "" && m.Server != p.Server || !strings.Contains(strings.ToLower(m.Method+" "+m.ID+" "+m.Text), wanted) {
			continue
		}
		if p.All++; len(p.List) < shownMessages {
			p.List = append(p.List, m)
		}
	}
	slices.Sort(p.Servers)
	return p, nil
}
