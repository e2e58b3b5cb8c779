package ui

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strings"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/control"
)

// Options are what a console shows. A page whose source is nil is left out.
type Options struct {
	About   func() control.Gateway // describes the gateway
	Results bool                   // operators see the results of others, too
	Acted   func(who, path string) // called for each form that an operator submits; nil: not reported

	Activity   Activity
	Servers    Servers
	Tools      Tools
	Offers     Offers
	Logins     Logins
	Protocol   Protocol
	System     System
	Runs       Runs
	Playground Playground
	Pipelines  Pipelines

	Memory Memory // for sign-ins; nil: nobody counts it

	Preview func(ctx context.Context, data io.Reader, characters int) (string, error) // describes data by its shape
}

// A Console serves the pages of one gateway. Its methods may be called concurrently.
type Console struct {
	options  Options
	key      []byte // of the tokens in forms, of this process
	assets   map[string]*asset
	pages    []*page
	problems *page // shows errors
	signIns  *page // where people sign in
	hub      *hub

	sessions *table[session]
	begun    *table[begun]
}

// New makes a console.
func New(o Options) (*Console, error) {
	c := &Console{options: o, key: []byte(rand.Text()), hub: newHub()}
	c.sessions = newTable(o.Memory, func(s session) int { return len(s.token) + len(s.person) })
	c.begun = newTable(o.Memory, func(b begun) int { return len(b.next) + len(b.signIn.Address) })
	var err error
	if c.assets, err = openAssets(); err != nil {
		return nil, err
	}
	c.problems = &page{title: "Problem", file: "problem.html"}
	c.signIns = &page{title: "Sign in", file: "signin.html"}
	c.problems.parse(c.assets)
	c.signIns.parse(c.assets)
	for _, p := range pages() {
		if p.there != nil && !p.there(&o) {
			continue
		}
		p.parse(c.assets)
		c.pages = append(c.pages, &p)
	}
	return c, nil
}

// A Door is a way by which people come to a console.
type Door struct {
	// Base returns the path of the console, as the browser sees it. It begins and ends with a slash. nil: it is "/".
	Base func(*http.Request) string
	// Guard knows the tokens of those who may come in. nil: nobody authenticates, and everybody is the operator.
	Guard  *auth.Guard
	Issuer Issuer // with which people sign in; nil: they paste a token
	Public string // the address of the console for browsers; empty: that of the request
}

// A Person looks at a console.
type Person struct {
	ID       string // of the identity; empty: nobody authenticates
	Name     string // for people
	Operator bool   // sees what all callers do, not only own runs
	Results  bool   // sees the data of what all callers do, too

	Limited bool     // sees only the servers of some groups, and is no operator
	Groups  []string // these groups, sorted
}

// Handler serves the console to those who come through a door. Requests for other hosts must have been refused before. The path of
// a request begins with a slash, after which comes what is below the base.
func (c *Console) Handler(d Door) http.Handler {
	if d.Base == nil {
		d.Base = func(*http.Request) string { return "/" }
	}
	mux := http.NewServeMux()
	visit := func(serve func(*Visit)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(c.visit(w, r, d)) })
	}
	mux.Handle("GET /assets/{name}", http.HandlerFunc(c.serveAsset))
	mux.Handle("GET /events", visit(c.serveEvents))
	for _, p := range c.pages {
		mux.Handle("GET "+exact(p.path), visit(func(v *Visit) { v.show(p, p.show) }))
		for _, a := range p.acts {
			mux.Handle("POST "+exact(a.path), visit(func(v *Visit) { v.act(p, a) }))
		}
	}
	mux.Handle("/", visit(func(v *Visit) { v.fail(notFound(v.URL.Path)) }))
	if d.Guard == nil {
		return guarded(mux)
	}
	return guarded(c.protected(d, mux))
}

// visit returns the visit of a request that comes through a door.
func (c *Console) visit(w http.ResponseWriter, r *http.Request, d Door) *Visit {
	v := &Visit{Request: r, Base: d.Base(r), Who: Person{Operator: d.Guard == nil, Results: d.Guard == nil}, console: c, w: w}
	if identity, known := auth.IdentityOf(r.Context()); known {
		v.Who = Person{ID: identity.ID, Name: identity.Name}
		v.Who.Groups, v.Who.Limited = auth.LimitOf(r.Context())
		v.Who.Operator = identity.Operator && !v.Who.Limited
		v.Who.Results = v.Who.Operator && c.options.Results
	}
	return v
}

// exact returns the pattern of http.ServeMux for a path.
func exact(path string) string {
	if path == "" || strings.HasSuffix(path, "/") {
		return "/" + path + "{$}"
	}
	return "/" + path
}

// EndUser ends the event streams of an identity that has lost access, and forgets the replies to its runs. The next request of a
// sign-in says why it has ended.
func (c *Console) EndUser(id string) {
	c.hub.endUser(id)
	if c.options.Playground != nil {
		c.options.Playground.EndUser(id)
	}
}

// Changed tells the open pages that what a topic names has changed. It does not wait.
func (c *Console) Changed(topic string) { c.hub.publish(topic) }
