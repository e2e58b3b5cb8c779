package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// pages begin sign-ins to a doorman.
type pages struct {
	d     *doorman
	kept  keptLogins
	fails error

	begun, ended atomic.Int32
	scopes       atomic.Value // []string of the last one
	opened       chan struct{}
}

// Begin implements [upstream.SignIns]. The person signs in when the page is opened.
func (p *pages) Begin(_ context.Context, e upstream.Endpoint, scopes []string) (string, func(context.Context) error, error) {
	if p.fails != nil {
		return "", nil, p.fails
	}
	p.begun.Add(1)
	p.scopes.Store(scopes)
	return "http://127.0.0.1:1/start?login=secret", func(ctx context.Context) error {
		defer p.ended.Add(1)
		select {
		case <-ctx.Done():
		case <-p.opened:
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		login := p.d.login("access-token-of-person")
		p.d.set("access-token-of-person", "")
		return p.kept.Put(context.WithoutCancel(ctx), login)
	}, nil
}

// signInPool is a pool over a server that wants a sign-in, which begins on pages. They may be opened at once.
func signInPool(t *testing.T, d *doorman, kept keptLogins, opened bool) (*upstream.Pool, *pages) {
	t.Helper()
	signIns := &pages{d: d, kept: kept, opened: make(chan struct{})}
	if opened {
		close(signIns.opened)
	}
	e := d.endpoint(kept)
	return staticPool(t, upstream.Options{SignIns: signIns}, upstream.Server{Name: "s", Dial: upstream.HTTP(e), Endpoint: &e}), signIns
}

// accepting is an asker whose person signs in.
func accepting() *stages.Asker {
	return &stages.Asker{URL: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"accept"}`), nil
	}}
}

// TestAskSignIn: a call that nobody has signed in for goes on after its caller's person has, and else has the error with the
// command.
func TestAskSignIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		none, form bool // there is no asker, or it shows no addresses
		answer     string
		refused    error // the asker cannot ask
		begin      error // no sign-in can begin
		asked      int
		works      bool
	}{
		"accepted":       {answer: `{"action":"accept"}`, asked: 1, works: true},
		"declined":       {answer: `{"action":"decline"}`, asked: 1},
		"closed":         {answer: `{"action":"cancel"}`, asked: 1},
		"nonsense":       {answer: `[]`, asked: 1},
		"not asked":      {refused: errors.New("the client has gone"), asked: 1},
		"no sign-in":     {begin: errors.New("there are too many")},
		"no asker":       {none: true},
		"no URL":         {form: true},
		"nothing at all": {answer: ``, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, kept := newDoorman(t), newLogins(t)
			p, signIns := signInPool(t, d, kept, true)
			signIns.fails = c.begin
			var asked, paused atomic.Int32
			asker := &stages.Asker{URL: !c.form, Form: true, Ask: func(_ context.Context, q stages.Question) (json.RawMessage, error) {
				asked.Add(1)
				var params map[string]string
				if err := json.Unmarshal(q.Params, &params); err != nil || q.Method != "elicitation/create" || q.Server != "s" || !q.Own || params["mode"] != "url" ||
					params["url"] != "http://127.0.0.1:1/start?login=secret" || params["elicitationId"] == "" || !strings.Contains(params["message"], `"s"`) {
					t.Errorf("the question is %+v, %s", q, q.Params)
				}
				return json.RawMessage(c.answer), c.refused
			}, Pause: func() func() { paused.Add(1); return func() { paused.Add(-1) } }}
			if c.none {
				asker = nil
			}
			var calls sync.WaitGroup
			for range 8 { // as items of one for_each
				calls.Go(func() {
					_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one", Asker: asker})
					if c.works && err != nil {
						t.Error(err)
					}
					if !c.works {
						wantError(t, err, stages.ServerUnavailable, "signed out: run mcsh login s", "a person runs the command")
					}
				})
			}
			calls.Wait()
			if n := int(asked.Load()); n != c.asked || signIns.begun.Load() != signIns.ended.Load() || paused.Load() != 0 {
				t.Errorf("the person was asked %d times, want %d; %d sign-ins begun, %d ended", n, c.asked, signIns.begun.Load(), signIns.ended.Load())
			}
		})
	}
}

// TestAskLost: a call that ends before the person has answered does not answer for another one, which asks itself then.
func TestAskLost(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	p, signIns := signInPool(t, d, kept, true)
	ctx, cancel := context.WithCancel(t.Context())
	open := make(chan struct{})
	first := &stages.Asker{URL: true, Ask: func(ctx context.Context, _ stages.Question) (json.RawMessage, error) {
		close(open)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}
	second := accepting()
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "one", Asker: first}); err == nil {
			t.Error("the call that has ended works")
		}
	})
	<-open
	calls.Go(func() {
		if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one", Asker: second}); err != nil {
			t.Error(err)
		}
	})
	cancel() // before or after the second call waits
	calls.Wait()
	if signIns.begun.Load() != 2 || signIns.ended.Load() != 2 {
		t.Errorf("%d sign-ins begun, %d ended", signIns.begun.Load(), signIns.ended.Load())
	}
}

// TestAskBegun: a call that the server has begun is not made again, although a sign-in could help to get its answer.
func TestAskBegun(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	calls := 0
	d.call = func(w http.ResponseWriter) { // an answer in parts, whose second one nobody may read
		calls++
		d.good = ""
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "id: 1\nretry: 1\ndata:\n\n")
	}
	login := d.login("access-token-of-person")
	login.RefreshToken = ""
	kept.put(t, login)
	d.set("access-token-of-person", "")
	p, signIns := signInPool(t, d, kept, true)
	asker := accepting()
	_, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one", Asker: asker})
	wantError(t, err, stages.ServerUnavailable, "which may have taken effect", "")
	if calls != 1 || signIns.begun.Load() != 0 {
		t.Errorf("%d calls, %d sign-ins begun", calls, signIns.begun.Load())
	}
}

// TestAskTask: the wait for a task goes on after a sign-in, and the tool is not called again.
func TestAskTask(t *testing.T) {
	t.Parallel()
	for form, newer := range taskForms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			d, kept := newDoorman(t), newLogins(t)
			tasks := &mcptest.Tasks{Newer: newer, Working: 1, Members: `,"pollInterval":1,"pollIntervalMs":1`}
			tasks.Reply = func(r mcptest.TaskRequest) string {
				if r.Method == "tools/call" {
					d.good = "" // it holds d.mu
				}
				return ""
			}
			tasks.Serve(t)
			d.other = tasks
			login := d.login("access-token-of-old")
			login.RefreshToken = ""
			kept.put(t, login)
			d.set("access-token-of-old", "")
			p, signIns := signInPool(t, d, kept, true)
			asker := accepting()
			res, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "work", Args: json.RawMessage(`{"n":1}`), Asker: asker})
			if err == nil {
				defer res.Memory.Close()
			}
			if got := string(res.Data); err != nil || got != taskResult || len(tasks.Requests("tools/call")) != 1 || signIns.begun.Load() != 1 {
				t.Errorf("got %q, %v, after %d calls and %d sign-ins", got, err, len(tasks.Requests("tools/call")), signIns.begun.Load())
			}
		})
	}
}

// TestAskSignInPlan: a plan that fails for the sign-in of a server works after it.
func TestAskSignInPlan(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	p, _ := signInPool(t, d, kept, true)
	asker := accepting()
	_, err := p.Tool(t.Context(), "s", "one")
	if p.SignIn(t.Context(), asker, errors.New("another mistake")) || p.SignIn(t.Context(), asker, nil) {
		t.Error("the person is asked for nothing")
	}
	if !p.SignIn(t.Context(), asker, errors.Join(errors.New("another mistake"), err, err)) {
		t.Errorf("nobody was asked for %v", err)
	}
	if _, err := p.Tool(t.Context(), "s", "one"); err != nil {
		t.Error(err)
	}
}

// TestAskScopes: a call that lacks rights asks for them.
func TestAskScopes(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	d.set("access-token-of-old", "")
	kept.put(t, d.login("access-token-of-old"))
	p, signIns := signInPool(t, d, kept, true)
	if got := call(t, p, "s", "one"); got != "hand made" {
		t.Errorf("got %q", got)
	}
	d.set("access-token-of-old", "files:write")
	asker := accepting()
	if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one", Asker: asker}); err != nil {
		t.Error(err)
	}
	if scopes, _ := signIns.scopes.Load().([]string); len(scopes) != 1 || scopes[0] != "files:write" {
		t.Errorf("it asks for %v", scopes)
	}
}

// TestAskPauses: a call that waits for the sign-in of another one has paused clocks, too.
func TestAskPauses(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	p, signIns := signInPool(t, d, kept, false)
	var paused [2]atomic.Int32
	var all sync.WaitGroup
	for i := range paused {
		asker := &stages.Asker{URL: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"accept"}`), nil
		}, Pause: func() func() { paused[i].Add(1); return func() { paused[i].Add(-1) } }}
		all.Go(func() {
			if _, err := p.CallTool(t.Context(), stages.Call{Server: "s", Name: "one", Asker: asker}); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the clocks of both calls are paused", func() bool { return paused[0].Load() == 1 && paused[1].Load() == 1 })
	close(signIns.opened)
	all.Wait()
	if paused[0].Load() != 0 || paused[1].Load() != 0 {
		t.Error("a clock is paused after the sign-in")
	}
}

// TestAskEnds: the end of the call ends the wait for the person, and the sign-in.
func TestAskEnds(t *testing.T) {
	t.Parallel()
	d, kept := newDoorman(t), newLogins(t)
	p, signIns := signInPool(t, d, kept, false)
	ctx, cancel := context.WithCancel(t.Context())
	asker := &stages.Asker{URL: true, Ask: func(context.Context, stages.Question) (json.RawMessage, error) {
		cancel()
		return json.RawMessage(`{"action":"accept"}`), nil
	}}
	if _, err := p.CallTool(ctx, stages.Call{Server: "s", Name: "one", Asker: asker}); err == nil {
		t.Error("the call works")
	}
	if signIns.ended.Load() != 1 {
		t.Error("the sign-in goes on")
	}
}
