package ui

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Servers has the servers that the caller may use.
type Servers interface {
	// Servers returns what is known of them, sorted by name. It waits for none.
	Servers(ctx context.Context) []ServerState

	// Waiting returns the tools of a server that are new or have changed since its first list, and wait to be accepted.
	Waiting(ctx context.Context, server string) ([]WaitingTool, error)

	// Accept accepts a tool as it was shown.
	Accept(ctx context.Context, server, tool, hash string) error

	// Restart ends the sessions of a server when their calls have ended, and starts it anew.
	Restart(ctx context.Context, server string) error

	// Disable takes away what a server offers, and ends its sessions when their calls have ended, until Enable or the end of the
	// gateway. To do one of them twice changes nothing.
	Disable(ctx context.Context, server string) error
	Enable(ctx context.Context, server string) error
}

// A ServerState is what is known of a server.
type ServerState struct {
	Name, Status string
	Where        string // it is configured
	Transport    string
	Protocol     string // that its session speaks
	Started      time.Time
	Tools        int // -1: not known
	Changed      int // tools that are new or have changed since the first list

	Why, Hint string // of a failure
	SignIn    bool   // to sign in would help
	Stderr    string // its last lines
	Own       bool   // it is a part of the gateway, so that it does not restart

	Calls, Errors int64
	P50, P95      time.Duration // within which half of the calls, and 95 of 100, have ended
}

// A WaitingTool is a tool that is new or has changed.
type WaitingTool struct {
	Tool, Hash string
	New        bool
	Diff       string
}

// disabledState is the state of a server that an operator has disabled.
const disabledState = "disabled"

// Disabled reports whether an operator has disabled the server.
func (s ServerState) Disabled() bool { return s.Status == disabledState }

// stateKind is the look of a state.
func stateKind(status string) string {
	return map[string]string{"ready": "good", "starting": "busy", "failed": "bad", "degraded": "warn"}[status]
}

// state is the state of a server in words.
func (s ServerState) state() string {
	if s.SignIn {
		return "signed out"
	}
	return s.Status
}

func serversPage() page {
	return page{path: "servers", title: "Servers", file: "servers.html", menu: "servers", keys: "s", there: hasServers, show: showServers}
}

func serverPage() page {
	return page{
		path: "servers/{name}", title: "Server", file: "server.html", above: "servers", there: hasServers, show: showServer,
		acts: []act{
			{"servers/{name}/restart", direct(Servers.Restart, "restarted", "%s starts anew.")},
			{"servers/{name}/disable", direct(Servers.Disable, "disabled", "%s is disabled.")},
			{"servers/{name}/enable", direct(Servers.Enable, "enabled", "%s is enabled, and starts.")},
			{"servers/{name}/accept", acceptTool},
		},
	}
}

func hasServers(o *Options) bool { return o.Servers != nil }

// servers returns the servers without what shows the calls of others, unless an operator asks.
func (v *Visit) servers() []ServerState {
	list := v.Options().Servers.Servers(v.Context())
	for i := range list {
		if s := &list[i]; !v.Who.Operator {
			s.Stderr, s.Calls, s.Errors, s.P50, s.P95 = "", 0, 0, 0, 0
		}
	}
	return list
}

// A serversView is the list of servers.
type serversView struct {
	List     []ServerState
	Operator bool
}

func showServers(v *Visit) (any, error) { return serversView{v.servers(), v.Who.Operator}, nil }

// A serverView is a server with what waits for its operator.
type serverView struct {
	ServerState
	Operator bool
	Waiting  []WaitingTool
	Trouble  string // why it is not known what waits
	Logins   bool   // there is a page for sign-ins
}

// PageTitle names the window.
func (s *serverView) PageTitle() string { return s.Name }

func showServer(v *Visit) (any, error) {
	name := v.PathValue("name")
	for _, s := range v.servers() {
		if s.Name != name {
			continue
		}
		view := &serverView{ServerState: s, Operator: v.Who.Operator, Logins: v.Options().Logins != nil}
		waiting, err := v.Options().Servers.Waiting(v.Context(), name)
		if view.Waiting = waiting; err != nil {
			view.Trouble = err.Error()
		}
		return view, nil
	}
	return nil, &Problem{http.StatusNotFound, "This server is not there", "there is no server " + texts.Quote(texts.Fit(name, 80)), "the page Servers has all"}
}

// operator refuses what only operators may do. It says what they do.
func (v *Visit) operator() error {
	if v.Who.Operator {
		if acted := v.Options().Acted; acted != nil && v.Method == http.MethodPost {
			acted(v.Who.Name, texts.Fit(v.URL.Path, 200))
		}
		return nil
	}
	return &Problem{http.StatusForbidden, "Only operators may do that", "you are signed in as " + v.Who.Name, "ask the operator of the gateway"}
}

// direct returns what an operator does with a server as a whole: did is its participle, and notice names the server.
func direct(how func(Servers, context.Context, string) error, did, notice string) func(*Visit) (any, error) {
	return func(v *Visit) (any, error) {
		if err := v.operator(); err != nil {
			return nil, err
		}
		if err := how(v.Options().Servers, v.Context(), v.PathValue("name")); err != nil {
			return nil, &Problem{http.StatusConflict, "The server was not " + did, err.Error(), ""}
		}
		v.Notice(notice, v.PathValue("name"))
		return showServer(v)
	}
}

func acceptTool(v *Visit) (any, error) {
	if err := v.operator(); err != nil {
		return nil, err
	}
	tool := v.PostFormValue("tool")
	if err := v.Options().Servers.Accept(v.Context(), v.PathValue("name"), tool, v.PostFormValue("hash")); err != nil {
		return nil, &Problem{http.StatusConflict, "The tool was not accepted", err.Error(), "look at it again: reload the page"}
	}
	v.Notice("%s is accepted.", tool)
	if !v.Fragment() {
		v.To("servers/" + url.PathEscape(v.PathValue("name")))
		return nil, nil
	}
	return showServer(v)
}
