package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/gateway"
)

// stateless is a client of the stateless era that writes its own messages.
type stateless struct {
	h    http.Handler
	user string // its identity; empty: there is no authentication
	kind string // the content type; the gateway leaves all but application/json to the SDK
}

// newStateless returns a client of a gateway.
func newStateless(g *gateway.Gateway, user string) *stateless {
	s := &stateless{g.Handler(), user, "application/json"}
	if user != "" {
		s.h = auth.RequireBearerToken(func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
		}, nil)(s.h)
	}
	return s
}

// An askReply is a reply to a [stateless] client.
type askReply struct {
	Type    string `json:"resultType"`
	State   string `json:"requestState"`
	Content []struct{ Text string }
	Asked   map[string]struct {
		Method string
		Params mcp.ElicitParams
	} `json:"inputRequests"`
}

func (a askReply) text() string {
	if len(a.Content) == 0 {
		return ""
	}
	return strings.TrimSpace(a.Content[len(a.Content)-1].Text)
}

// call runs a pipeline; more are members of the parameters.
func (s *stateless) call(t testing.TB, pipeline, more string) askReply {
	t.Helper()
	return s.callMeta(t, pipeline, "", more)
}

// callMeta is call with more members of _meta.
func (s *stateless) callMeta(t testing.TB, pipeline, meta, more string) askReply {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
		`"_meta":{`+meta+`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}},`+
		`"name":"execute_pipeline","arguments":{"pipeline":`+pipeline+`}`+more+`}}`))
	for name, value := range map[string]string{
		"Content-Type": s.kind, "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "execute_pipeline", "Authorization": "Bearer " + s.user,
	} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	text := w.Body.String()
	if _, data, ok := strings.Cut(text, "data: "); ok {
		text = data
	}
	var answer struct {
		Result askReply
		Error  any
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Error != nil {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	return answer.Result
}

// answers are the members of an answer to the first question of a reply.
func (a askReply) answers(t testing.TB, answer string) string {
	t.Helper()
	keys := slices.Sorted(maps.Keys(a.Asked))
	if len(keys) == 0 || a.Type != "input_required" || a.State == "" {
		t.Fatalf("nobody is asked: %+v", a)
	}
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:%s}`, a.State, keys[0], answer)
}

const accepted = `{"action":"accept","content":{"name":"Ann","n":9007199254740993}}`

// TestAnswers: the answers of a client reach the call that they belong to once, as the client has written them. Others do not,
// and the gateway does not say why.
func TestAnswers(t *testing.T) {
	t.Parallel() // it waits
	const right = `{"action":"accept","content":{"n":9007199254740993,"name":"Ann"}}`
	plan := asks(nameForm)
	tests := map[string]struct {
		kind, want string // empty: the refusal
		answer     func(t *testing.T, g *gateway.Gateway, ann *stateless, a askReply) askReply
	}{
		"right": {"application/json", right, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			return ann.call(t, plan, a.answers(t, accepted))
		}},
		"right through the SDK": {"application/json; charset=utf-8", `{"action":"accept","content":{"n":7,"name":"Ann"}}`, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			return ann.call(t, plan, a.answers(t, `{"action":"accept","content":{"name":"Ann","n":7}}`))
		}},
		"other white space": {"application/json", right, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			return ann.call(t, strings.ReplaceAll(plan, `,"name":"buy"`, ` , "name" : "buy"`), a.answers(t, accepted))
		}},
		"wrong answer": {"application/json", `{"action":"cancel"}`, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			return ann.call(t, plan, a.answers(t, `{"action":"accept","content":{"name":7}}`))
		}},
		"unknown action": {"application/json", `{"action":"cancel"}`, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			return ann.call(t, plan, a.answers(t, `{"action":"yes"}`))
		}},
		"long answer": {"application/json", `{"action":"cancel"}`, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			return ann.call(t, plan, a.answers(t, `{"action":"accept","content":{"name":"`+strings.Repeat("x", 64<<10)+`"}}`))
		}},
		"no answer is asked again": {"application/json", right, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			again := ann.call(t, plan, fmt.Sprintf(`,"requestState":%q`, a.State))
			if old := ann.call(t, plan, a.answers(t, accepted)); again.State == a.State || !refusal(old) {
				t.Errorf("the old state is good: %+v", old)
			}
			return ann.call(t, plan, again.answers(t, accepted))
		}},
		"answer to another key": {"application/json", right, func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			again := ann.call(t, plan, fmt.Sprintf(`,"requestState":%q,"inputResponses":{"q99":{"action":"decline"}}`, a.State))
			return ann.call(t, plan, again.answers(t, accepted))
		}},
		"stolen": {"application/json", "", func(t *testing.T, g *gateway.Gateway, _ *stateless, a askReply) askReply {
			return newStateless(g, "bob").call(t, plan, a.answers(t, accepted))
		}},
		"without authentication": {"application/json", "", func(t *testing.T, g *gateway.Gateway, _ *stateless, a askReply) askReply {
			return newStateless(g, "").call(t, plan, a.answers(t, accepted))
		}},
		"other arguments": {"application/json", "", func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			return ann.call(t, strings.Replace(plan, "buy", "sell", 1), a.answers(t, accepted))
		}},
		"another process": {"application/json", "", func(t *testing.T, _ *gateway.Gateway, _ *stateless, a askReply) askReply {
			return newStateless(curiousGateway(t, gateway.Options{}), "ann").call(t, plan, a.answers(t, accepted))
		}},
		"forged": {"application/json", "", func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			first := "A"
			if a.State[:1] == first {
				first = "B"
			}
			a.State = first + a.State[1:]
			return ann.call(t, plan, a.answers(t, accepted))
		}},
		"cut": {"application/json", "", func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			a.State = a.State[:len(a.State)-2]
			return ann.call(t, plan, a.answers(t, accepted))
		}},
		"long state": {"application/json", "", func(t *testing.T, _ *gateway.Gateway, ann *stateless, a askReply) askReply {
			a.State = strings.Repeat("A", 1<<20)
			return ann.call(t, plan, a.answers(t, accepted))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := curiousGateway(t, gateway.Options{})
			ann := newStateless(g, "ann")
			ann.kind = test.kind
			a := ann.call(t, plan, "")
			got := test.answer(t, g, ann, a)
			if test.want != "" {
				if got.text() != test.want || got.Type != "complete" {
					t.Errorf("got %+v, want %s", got, test.want)
				}
				if again := ann.call(t, plan, a.answers(t, accepted)); !refusal(again) {
					t.Errorf("the second time: %+v", again)
				}
				return
			}
			if !refusal(got) {
				t.Errorf("got %+v", got)
			}
			if got := ann.call(t, plan, a.answers(t, accepted)); got.text() != right && test.kind == "application/json" {
				t.Errorf("afterwards the right answer comes to %+v", got)
			}
		})
	}
}

// refusal reports whether a reply is the one to answers that nothing waits for.
func refusal(a askReply) bool {
	const want = "execute_pipeline failed: UNKNOWN_RUN\n" +
		"no open call of yours expects these answers: it has ended, was answered already, had other arguments, or is at another gateway\n" +
		`Try: call again without requestState; a "from" stage with "resume" goes on from the kept outputs of a run`
	return strings.TrimSpace(strings.Replace(a.text(), "The pipeline", "execute_pipeline", 1)) == want
}

// idle waits until no run is in progress.
func idle(t testing.TB, g *gateway.Gateway) {
	t.Helper()
	for begun := time.Now(); len(live(g)) > 0; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the run goes on")
		}
	}
}

// TestLateAnswers: a call whose client does not come back in time goes on as if its question were refused. The client can still
// have the result, once.
func TestLateAnswers(t *testing.T) {
	g := curiousGateway(t, gateway.Options{AskTimeout: 300 * time.Millisecond})
	ann, plan := newStateless(g, "ann"), asks(nameForm)
	a := ann.call(t, plan, "")
	idle(t, g)
	if got := ann.call(t, plan, a.answers(t, accepted)); got.text() != `{"action":"cancel"}` {
		t.Errorf("got %+v", got)
	}
	if got := ann.call(t, plan, a.answers(t, accepted)); !refusal(got) {
		t.Errorf("the second time: %+v", got)
	}
}

// TestParkedEnd: a call that waits for its client ends with the access of its caller, and with the gateway.
func TestParkedEnd(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, g *gateway.Gateway){
		"access": func(_ *testing.T, g *gateway.Gateway) { g.EndUser("ann") },
		"gateway": func(t *testing.T, g *gateway.Gateway) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := g.Close(ctx); err != nil || ctx.Err() != nil {
				t.Errorf("closing came to %v, %v", err, ctx.Err())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := curiousGateway(t, gateway.Options{})
			newStateless(g, "ann").call(t, asks(nameForm), "")
			if len(live(g)) != 1 {
				t.Fatal("no run waits")
			}
			end(t, g)
			idle(t, g)
		})
	}
}

// TestParkedMost: no more calls than half of all runs wait for their clients. The questions of others are refused.
func TestParkedMost(t *testing.T) {
	g := curiousGateway(t, gateway.Options{Runs: 4})
	var waiting []askReply
	for i := range 3 {
		ann := newStateless(g, fmt.Sprint("ann", i))
		got := ann.call(t, asks(nameForm), "")
		if i < 2 {
			waiting = append(waiting, got)
		} else if got.text() != `{"action":"cancel"}` {
			t.Errorf("the third comes to %+v", got)
		}
	}
	if got := newStateless(g, "ann1").call(t, asks(nameForm), waiting[1].answers(t, accepted)); got.Type != "complete" {
		t.Errorf("got %+v", got)
	}
	if got := newStateless(g, "ann3").call(t, asks(nameForm), ""); got.Type != "input_required" {
		t.Errorf("after a place is free: %+v", got)
	}
}

// TestOpenMost: a reply has at most 16 questions, and the others follow.
func TestOpenMost(t *testing.T) {
	g := curiousGateway(t, gateway.Options{})
	ann := newStateless(g, "ann")
	plan := `[{"type":"tool","server":"shop","name":"list","args":{"list":[` + strings.TrimSuffix(strings.Repeat(nameForm+",", 20), ",") + `]}},
		{"type":"tool","server":"shop","name":"buy","for_each":true,"distinct":false,"concurrency":20}]`
	seen := 0
	for a := ann.call(t, plan, ""); a.Type == "input_required"; {
		if len(a.Asked) > 16 {
			t.Fatalf("%d questions", len(a.Asked))
		}
		var list []string
		for key, q := range a.Asked {
			seen++
			list = append(list, fmt.Sprintf("%q:%s", key, `{"action":"decline"}`))
			if !strings.Contains(q.Params.Message, "(item ") || q.Method != "elicitation/create" {
				t.Errorf("got %+v", q)
			}
		}
		a = ann.call(t, plan, fmt.Sprintf(`,"requestState":%q,"inputResponses":{%s}`, a.State, strings.Join(list, ",")))
	}
	if seen != 20 {
		t.Errorf("%d questions", seen)
	}
}

// TestSessionEnds: a call that waits for its client ends with the client's session, and a question that nobody answers is
// cancelled.
func TestSessionEnds(t *testing.T) {
	for _, way := range []string{"2025-11-25 HTTP", "2025-11-25 HTTP, the SDK", "2025-11-25 stdio", "2026-07-28 stdio"} {
		t.Run(way, func(t *testing.T) {
			g := curiousGateway(t, gateway.Options{Grace: -1})
			asked := make(chan bool)
			p := &person{answer: func(*mcp.ElicitParams) (*mcp.ElicitResult, error) {
				asked <- true
				<-t.Context().Done()
				return nil, errors.New("gone")
			}}
			s := ways[way](t, g, p.client())
			ctx, cancel := context.WithCancel(t.Context())
			go s.CallTool(ctx, &mcp.CallToolParams{Name: "execute_pipeline", Arguments: json.RawMessage(`{"pipeline":` + asks(nameForm) + `}`)})
			<-asked
			cancel()
			go s.Close()
			idle(t, g)
		})
	}
}

// TestUnanswered: a client of the older era that does not answer in time sees its question cancelled.
func TestUnanswered(t *testing.T) {
	// Over HTTP the SDK sends the cancellation beside the answer, which may end the stream before.
	for _, way := range []string{"2025-11-25 HTTP", "2025-11-25 stdio", "2025-11-25 in memory"} {
		t.Run(way, func(t *testing.T) {
			g := curiousGateway(t, gateway.Options{AskTimeout: 200 * time.Millisecond})
			cancelled := make(chan bool, 1)
			client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					<-ctx.Done()
					cancelled <- true
					return nil, ctx.Err()
				},
			})
			if got := ran(t, ways[way](t, g, client), asks(nameForm)); got != `{"action":"cancel"}` {
				t.Errorf("got %s", got)
			}
			select {
			case <-cancelled:
			case <-time.After(time.Minute):
				t.Error("the question is not cancelled")
			}
		})
	}
}
