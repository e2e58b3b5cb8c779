package rpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// A peer is a server that a test plays by hand.
type peer struct {
	t       *testing.T
	far     net.Conn
	in      *json.Decoder
	client  *rpc.Transport
	unnamed chan bool // whether a request has ended without an answer
	logged  chan string
}

// wireMessage is what the tests look at in a message.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *jsonrpc.Error  `json:"error"`
}

func newPeer(t *testing.T, asked bool) *peer {
	t.Helper()
	near, far := net.Pipe()
	p := &peer{t: t, far: far, in: json.NewDecoder(far), unnamed: make(chan bool, 100), logged: make(chan string, 100)}
	p.client = &rpc.Transport{Open: func(context.Context) (rpc.Wire, error) {
		return rpc.NewLine(near, near, rpc.LineOptions{Close: near.Close}), nil
	}}
	p.client.Play(rpc.Role{
		Asked: asked, Unnamed: func(left bool) { p.unnamed <- left }, Log: func(params []byte) { p.logged <- string(params) },
		Roots: json.RawMessage(`{"roots":[]}`),
	})
	conn, err := p.client.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			if _, err := conn.Read(context.Background()); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.client.Abort()
		far.Close()
		<-over
	})
	return p
}

// send sends a message to the client.
func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.far, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

// next is the next message of the client.
func (p *peer) next() (m wireMessage) {
	p.t.Helper()
	if err := p.in.Decode(&m); err != nil {
		p.t.Fatal(err)
	}
	return m
}

// A question is one call of Ask.
type question struct {
	ctx    context.Context
	params string
	answer chan error // an error, or nil for accept
}

// request begins a request in whose middle the server may ask; the answer to it, or the failure, comes on done.
func (p *peer) request(ctx context.Context) (id string, asked chan question, done chan error) {
	p.t.Helper()
	asked, done = make(chan question, 100), make(chan error, 1)
	go func() {
		_, f := p.client.Request(ctx, &rpc.Request{Method: "tools/call", Ask: func(ctx context.Context, in rpc.Question) (json.RawMessage, error) {
			q := question{ctx, string(in.Params), make(chan error, 1)}
			asked <- q
			select {
			case err := <-q.answer:
				return json.RawMessage(`{"action":"accept"}`), err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
		if f != nil {
			done <- f.Err
			return
		}
		done <- nil
	}()
	return string(p.next().ID), asked, done
}

const ask = `{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"%s"}}`

// TestQuestionOfOneRequest: the only request in flight gets the question, and the server its answer; errors decline it.
func TestQuestionOfOneRequest(t *testing.T) {
	p := newPeer(t, true)
	id, asked, done := p.request(t.Context())
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, `{"action":"accept"}`},
		{errors.New("no"), `{"action":"cancel"}`},
	} {
		p.send(ask, `"q"`, "who?")
		q := <-asked
		q.answer <- c.err
		if m := p.next(); string(m.ID) != `"q"` || string(m.Result) != c.want {
			t.Errorf("got %+v, want %s", m, c.want)
		}
	}
	p.send(ask, `"q"`, "who?")
	q := <-asked
	q.answer <- &jsonrpc.Error{Code: -32602, Message: "wrong"}
	if m := p.next(); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("got %+v", m)
	}
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestUnnamedQuestions: a question that may belong to more than one request, to none, or to one that has ended without an answer,
// is declined, and nobody sees it.
func TestUnnamedQuestions(t *testing.T) {
	p := newPeer(t, true)
	declined := func(why string, left bool) {
		t.Helper()
		p.send(ask, "1", "who?")
		if m := p.next(); string(m.Result) != `{"action":"cancel"}` {
			t.Errorf("%s: got %+v", why, m)
		}
		if got := <-p.unnamed; got != left {
			t.Errorf("%s: a request has ended without an answer: %v", why, got)
		}
		p.send(`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}`)
		if m := p.next(); m.Error == nil || m.Error.Code != -1 {
			t.Errorf("%s: got %+v", why, m)
		}
		<-p.unnamed
	}
	declined("none in flight", false)
	first, in, done1 := p.request(t.Context())
	second, asked2, done2 := p.request(t.Context())
	declined("two in flight", false)
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, first)
	<-done1
	p.send(ask, "3", "now it is certain")
	q := <-asked2
	q.answer <- nil
	p.next()
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, second)
	<-done2

	ctx, cancel := context.WithCancel(t.Context())
	gone, asked3, done3 := p.request(ctx)
	cancel()
	<-done3
	if m := p.next(); m.Method != "notifications/cancelled" {
		t.Fatalf("got %+v", m)
	}
	fourth, asked4, done4 := p.request(t.Context())
	declined("one has ended without an answer", true)
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, gone)
	p.send(ask, "5", "it is answered now")
	q = <-asked4
	q.answer <- nil
	p.next()
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, fourth)
	<-done4
	if n := len(in) + len(asked2) + len(asked3) + len(asked4); n > 0 {
		t.Errorf("%d more questions were asked", n)
	}
}

// TestCancelledQuestion: a question that the server cancels, or whose request has ended, gets no answer; the same id twice is one
// question.
func TestCancelledQuestion(t *testing.T) {
	p := newPeer(t, true)
	id, asked, done := p.request(t.Context())
	p.send(ask, "7", "who?")
	p.send(ask, "7", "who again?")
	q := <-asked
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	<-q.ctx.Done()
	p.send(ask, "9", "who?")
	(<-asked).answer <- rpc.ErrEnded
	p.send(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
	if m := p.next(); string(m.ID) != "8" {
		t.Errorf("got %+v", m)
	}
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	<-done
	if len(asked) > 0 {
		t.Errorf("asked again: %s", (<-asked).params)
	}
}

// TestManyQuestions: a server that asks without end, or something very long, gets refusals.
func TestManyQuestions(t *testing.T) {
	p := newPeer(t, true)
	id, asked, done := p.request(t.Context())
	p.send(ask, "1", strings.Repeat("x", 10<<20))
	if m := p.next(); string(m.Result) != `{"action":"cancel"}` {
		t.Errorf("got %+v", m)
	}
	for i := range rpc.MaxQuestions + 5 {
		p.send(ask, fmt.Sprint(100+i), "again?")
		if i >= rpc.MaxQuestions {
			if m := p.next(); string(m.Result) != `{"action":"cancel"}` {
				t.Errorf("question %d: got %+v", i, m)
			}
			continue
		}
		q := <-asked
		q.answer <- nil
		p.next()
	}
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	if err := <-done; err != nil || len(asked) > 0 {
		t.Errorf("got %v, and %d more questions", err, len(asked))
	}
}

// TestUndeclaredQuestions: who has declared nothing refuses questions, in the middle of a request too; directories and messages
// for the log are no questions.
func TestUndeclaredQuestions(t *testing.T) {
	p := newPeer(t, false)
	id, asked, done := p.request(t.Context())
	p.send(ask, "1", "who?")
	if m := p.next(); m.Error == nil || m.Error.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("got %+v", m)
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"roots/list"}`)
	if m := p.next(); string(m.Result) != `{"roots":[]}` {
		t.Errorf("got %+v", m)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hé"}}`)
	if got := <-p.logged; got != `{"level":"info","data":"hé"}` {
		t.Errorf("logged %s", got)
	}
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	if <-done; len(asked)+len(p.unnamed) > 0 {
		t.Error("somebody was asked")
	}
}

// TestQuestionAtTheEnd: a connection that ends while a question is open ends the request.
func TestQuestionAtTheEnd(t *testing.T) {
	p := newPeer(t, true)
	_, asked, done := p.request(t.Context())
	p.send(ask, "1", "who?")
	q := <-asked
	p.far.Close()
	if err := <-done; !errors.Is(err, io.EOF) && !errors.Is(err, rpc.ErrClosed) {
		t.Errorf("got %v", err)
	}
	q.answer <- nil // its goroutine ends
}

// TestTaskQuestions: a question that names a task, or is asked while somebody waits for one, belongs to that task, and one that
// names a task for which nobody waits belongs to nobody. A task that nobody waits for makes no other question uncertain, though
// it goes on.
func TestTaskQuestions(t *testing.T) {
	const of = `{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"who?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"%s"}}}}`
	p := newPeer(t, true)
	asked := make(chan string, 100)
	task := func(id string) *rpc.Request {
		return &rpc.Request{Task: id, Ask: func(context.Context, rpc.Question) (json.RawMessage, error) {
			asked <- id
			return json.RawMessage(`{"action":"accept"}`), nil
		}}
	}
	expect := func(why, action string, unnamed bool) {
		t.Helper()
		if m := p.next(); string(m.Result) != `{"action":"`+action+`"}` {
			t.Errorf("%s: got %+v, want %s", why, m, action)
		}
		if got := len(p.unnamed) > 0; got != unnamed {
			t.Errorf("%s: the session is uncertain: %v", why, got)
		}
		for len(p.unnamed) > 0 {
			<-p.unnamed
		}
	}
	one := task("one")
	release := p.client.Hold(one)
	p.send(ask, "1", "who?")
	expect("the only task", "accept", false)
	id, _, done := p.request(t.Context())
	p.send(of, "2", "one")
	expect("beside a call", "accept", false)
	p.send(of, "3", "two")
	expect("another task", "cancel", false)
	p.send(ask, "4", "who?")
	expect("no name, beside a call", "cancel", true)
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	<-done
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.client.Request(t.Context(), &rpc.Request{Method: "tasks/get", About: one})
	}()
	id = string(p.next().ID)
	p.send(ask, "5", "who?")
	expect("in the middle of a request about the task", "accept", false)
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	<-ended
	release()
	release()
	id, others, done := p.request(t.Context())
	p.send(ask, "6", "who?")
	(<-others).answer <- nil
	expect("a task that goes on", "accept", false)
	p.send(of, "7", "one")
	expect("nobody waits for it", "cancel", false)
	again := p.client.Hold(task("one"))
	p.send(of, "8", "one")
	expect("it is waited for again", "accept", false)
	again()
	p.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	if err := <-done; err != nil || len(asked) != 4 {
		t.Errorf("got %v, and %d questions about the task", err, len(asked))
	}
}
