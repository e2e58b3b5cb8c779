package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

const (
	taskWait   = 1                      // seconds before a durable run becomes a task, if the call does not say
	leastPoll  = time.Second            // the time between two requests for a task: a tenth of its age
	mostPoll   = 10 * time.Second       // and at most this
	endedWait  = 300 * time.Millisecond // for the word of the engine that a run has ended
	engineWait = 5 * time.Second        // for other requests to the engine
)

// A taskAnswer is the answer to a request about a task.
type taskAnswer struct {
	mcp.ResultBase
	Type string `json:"resultType"`
}

func acknowledgement() *taskAnswer { return &taskAnswer{Type: "complete"} }

// A task is a durable run for clients with the tasks extension.
type task struct {
	taskAnswer
	ID      string      `json:"taskId"`
	Status  string      `json:"status"`
	Message string      `json:"statusMessage,omitempty"`
	Created time.Time   `json:"createdAt"`
	Updated time.Time   `json:"lastUpdatedAt"`
	TTL     int64       `json:"ttlMs"` // from Created
	Poll    int64       `json:"pollIntervalMs,omitempty"`
	Result  *rpc.Result `json:"result,omitempty"`
}

// A startedTask is the answer to a call whose run goes on. Handlers of tools return it as an error: their results are none.
type startedTask struct{ *task }

// Error implements error.
func (startedTask) Error() string { return "the run goes on as a task" }

// taskKey is the context key of a request whose client has the tasks extension.
type taskKey struct{}

// hasTasks reports whether the client of a request has the tasks extension, and may use it here.
func hasTasks(ctx context.Context) bool { return ctx.Value(taskKey{}) != nil }

// takesTasks reports whether the client of a request declares the tasks extension in it, which those of the stateless era can.
func (g *Gateway) takesTasks(ctx context.Context, req mcp.Request) bool {
	if g.o.Durable.Engine == nil || !g.stateless(ctx, req) {
		return false
	}
	capabilities, _ := metaOf(req)[mcp.MetaKeyClientCapabilities].(map[string]any)
	return declaresTasks(capabilities)
}

func declaresTasks(capabilities map[string]any) bool {
	extensions, _ := capabilities["extensions"].(map[string]any)
	_, ok := extensions[rpc.TasksExtension].(map[string]any)
	return ok
}

// errNoTasks is the answer to clients that do not declare the extension.
var errNoTasks = &jsonrpc.Error{
	Code: mcp.CodeMissingRequiredClientCapabilities, Message: "missing required client capability: the extension " + rpc.TasksExtension,
	Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + rpc.TasksExtension + `":{}}}}`),
}

// errNoTask is the answer to requests about a task of nobody or of somebody else.
var errNoTask error = &jsonrpc.Error{
	Code: jsonrpc.CodeInvalidParams, Message: "there is no such task of yours here: it has expired, or belongs to another caller or group",
}

// taskID is the id of the job as a task. With it the outputs of the run can be read, as with the id of the run.
func (j job) taskID() string {
	if j.Number == 1 {
		return j.Run
	}
	return fmt.Sprintf("%s.%d", j.Run, j.Number)
}

// jobOf returns the name of the job that a task is.
func jobOf(taskID string) string {
	run, number, again := strings.Cut(taskID, ".")
	if !again {
		return jobName(run, 1)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 2 || strconv.Itoa(n) != number {
		return jobName(taskID, 0) // of no job
	}
	return jobName(run, n)
}

// newTask returns a job as a task that is under way.
func (g *Gateway) newTask(j job) *task {
	poll := min(max(time.Since(j.Begun)/10, leastPoll), mostPoll)
	return &task{
		taskAnswer: *acknowledgement(), ID: j.taskID(), Status: rpc.TaskWorking,
		Created: taskTime(j.Begun), Updated: taskTime(time.Now()),
		TTL: (j.Timeout + g.o.Kept.TTL()).Milliseconds(), Poll: poll.Milliseconds(),
	}
}

// taskTime is a time as clients of other languages write it.
func taskTime(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// underWay answers a call whose run goes on: with a task, or else with its status.
func (g *Gateway) underWay(ctx context.Context, name string, j job) (*mcp.CallToolResult, error) {
	if !hasTasks(ctx) {
		return g.jobStatus(ctx, name, j), nil
	}
	t := g.newTask(j)
	t.Type, t.Message = "task", g.howFar(ctx, name).message()
	return nil, startedTask{t}
}

// taskParams are the parameters of a request about a task. Answers to questions have no effect: no run asks anything.
type taskParams struct {
	mcp.ParamsBase
	ID string `json:"taskId"`
}

// taskMethods answer requests about a task of their caller.
var taskMethods = map[string]func(g *Gateway, ctx context.Context, name string, j job) (mcp.Result, error){
	rpc.TaskGet:    (*Gateway).getTask,
	rpc.TaskCancel: (*Gateway).cancelTask,
	rpc.TaskUpdate: func(*Gateway, context.Context, string, job) (mcp.Result, error) { return acknowledgement(), nil },
}

// offerTasks serves requests about tasks. [Gateway.aboutTasks] answers them before they come to the handler.
func (g *Gateway) offerTasks() {
	for method := range taskMethods {
		err := mcp.AddReceivingCustomMethod(g.server, method, func(context.Context, *mcp.ServerSession, *taskParams) (*task, error) { return nil, errNoTask })
		if err != nil {
			panic("gateway: internal error: " + err.Error()) // the SDK has such a method
		}
	}
	g.server.AddReceivingMiddleware(g.aboutTasks)
}

// aboutTasks is middleware. It answers requests about tasks, and hides them from clients of the older era, whose tasks are others.
func (g *Gateway) aboutTasks(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		answer := taskMethods[method]
		switch {
		case answer == nil:
			res, err := next(ctx, method, req)
			if hello, ok := res.(*mcp.InitializeResult); ok && err == nil {
				hello.Capabilities.Extensions = nil
			}
			return res, err
		case !g.stateless(ctx, req):
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q unsupported", method)}
		case !hasTasks(ctx):
			return nil, errNoTasks
		}
		res, err := g.ofTask(ctx, req.(*mcp.ServerRequest[*taskParams]), answer)
		if err != nil && err != errNoTask {
			err = question{g: g}.fault(err)
		}
		return res, err
	}
}

// refuseMisnamed answers a request about a task whose headers name another one, and reports whether it did. The SDK checks that for
// methods of its own only.
func refuseMisnamed(w http.ResponseWriter, r *http.Request, m *message) bool {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Params taskParams      `json:"params"`
	}
	if taskMethods[r.Header.Get("Mcp-Method")] == nil || r.Header.Get(versionHeader) < statelessEra || json.Unmarshal(m.data, &request) != nil ||
		r.Header.Get("Mcp-Name") == request.Params.ID {
		return false
	}
	respond(w, http.StatusBadRequest, ErrorAnswer(request.ID, &jsonrpc.Error{
		Code: mcp.CodeHeaderMismatch, Message: "the header Mcp-Name is missing, or is not params.taskId",
	}))
	return true
}

// ofTask answers a request about a task of its caller.
func (g *Gateway) ofTask(ctx context.Context, req *mcp.ServerRequest[*taskParams], answer func(*Gateway, context.Context, string, job) (mcp.Result, error)) (mcp.Result, error) {
	ctx, end, err := g.begin(ctx, g.lookups, req.Extra)
	if err != nil {
		return nil, err
	}
	defer end()
	if req.Params == nil {
		return nil, errNoTask
	}
	var j job
	name := jobOf(req.Params.ID)
	found, err := g.getJob(ctx, name, &j)
	switch {
	case err != nil:
		return nil, err
	case !found || j.Shard || j.Caller.Owner != g.runsName(req.Extra):
		return nil, errNoTask
	}
	return answer(g, ctx, name, j)
}

// getTask answers tasks/get.
func (g *Gateway) getTask(ctx context.Context, name string, j job) (mcp.Result, error) {
	t := g.newTask(j)
	reply, err := g.replyOf(ctx, name)
	if reply == nil && err == nil {
		far := g.howFar(ctx, name)
		t.Message = far.message()
		if far.attempts > 0 || far.err != nil {
			return t, nil
		}
		var over bool
		if reply, over, err = g.await(ctx, name, j, endedWait, nil); !over && err == nil {
			return t, nil
		}
	}
	if err != nil {
		return nil, err
	}
	t.end(reply)
	return t, nil
}

// end gives the task the reply of its run. One that was cancelled has no result but a reason.
func (t *task) end(reply *jobReply) {
	t.Updated, t.Poll, t.Message = taskTime(reply.Ended), 0, ""
	if !reply.Cancelled {
		t.Status, t.Result = rpc.TaskCompleted, wireResult(reply.Result, true)
		return
	}
	t.Status = rpc.TaskCancelled
	for _, block := range reply.Result.Content {
		if text := textOf(block); text != nil {
			t.Message += *text
		}
	}
}

// cancelTask answers tasks/cancel. A run that has ended stays so.
func (g *Gateway) cancelTask(ctx context.Context, name string, _ job) (mcp.Result, error) {
	reply, err := g.replyOf(ctx, name)
	if reply != nil || err != nil {
		return acknowledgement(), err
	}
	ctx, cancel := context.WithTimeout(ctx, engineWait)
	defer cancel()
	if err := g.o.Durable.Engine.Cancel(ctx, name); err != nil {
		g.o.Log.Warn("a durable run could not be cancelled", zap.Error(err))
		return nil, stages.Errorf(stages.ServerUnavailable, "try again later", "the run could not be cancelled: the engine of durable runs cannot be used now")
	}
	return acknowledgement(), nil
}
