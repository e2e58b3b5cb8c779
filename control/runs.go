package control

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Runs answers for the runs of a gateway, live and finished: pipelines, and calls of tools of servers by names of their own. Its
// methods may be called concurrently. A run that a viewer may not see is as unknown as one that never was (404).
type Runs interface {
	// Runs lists the newest runs first.
	Runs(ctx context.Context, v Viewer, f RunFilter) RunList

	Run(ctx context.Context, v Viewer, request string) (RunDetail, error)

	// Output returns a part of what a stage of a finished run has produced, while that is kept. Without Results of the viewer
	// it is refused (403).
	Output(ctx context.Context, v Viewer, r OutputRequest) (OutputPart, error)

	// Wait waits until runs have begun, ended or asked since a cursor, or a live run may have gone on, or ctx has ended. It returns
	// the cursor for the next call. 0 waits for nothing. It may wake without a change, and sums changes up.
	Wait(ctx context.Context, cursor uint64) (next uint64, err error)

	// Cancel cancels a live run. A run that has ended is left alone (409).
	Cancel(v Viewer, request string) error
}

// A Viewer is who asks about runs. The zero value sees none.
type Viewer struct {
	All     bool   // the runs of all callers
	Caller  string // the identity whose runs these are, UserID of its token; empty: of nobody
	Results bool   // also the data of runs: plans, arguments, messages, outputs and run ids

	Limited bool     // only own runs, and of them those that could use no servers but those of Groups
	Groups  []string // sorted
}

// Reaches reports whether a viewer may know of what the viewer itself has done, limited to the servers of some groups or not.
func (v Viewer) Reaches(limited bool, groups []string) bool {
	beyond := func(group string) bool { return !slices.Contains(v.Groups, group) }
	return !v.Limited || limited && !slices.ContainsFunc(groups, beyond)
}

// A RunFilter chooses runs. Its zero value chooses all.
type RunFilter struct {
	States []string `json:"states,omitempty"`
	Tool   string   `json:"tool,omitempty"`   // a part of the name of a tool that the client or a stage has called: SERVER/NAME
	Caller string   `json:"caller,omitempty"` // a part of the name of the caller or the client
	Text   string   `json:"text,omitempty"`   // a part of the name of the request, and for viewers of results of the plan
	Limit  int      `json:"limit,omitempty"`  // 0: all
}

// A RunList is an answer with runs.
type RunList struct {
	Cursor uint64 `json:"cursor"` // for Wait
	Runs   []Run  `json:"runs"`
	More   int    `json:"more,omitempty"` // beyond the limit
}

// States of a run.
const (
	RunRunning   = "running"
	RunAsking    = "asking" // it waits for an answer of its client to a question of a server
	RunOK        = "ok"
	RunFailed    = "failed"
	RunCancelled = "cancelled"
	RunTimedOut  = "timed_out"
)

// A Run describes a run in a line.
type Run struct {
	Request   string     `json:"request"` // its name in logs
	Caller    string     `json:"caller,omitempty"`
	Client    string     `json:"client,omitempty"`    // the program and its version, as it says
	Transport string     `json:"transport,omitempty"` // stdio or http
	Tool      string     `json:"tool,omitempty"`      // that the client has called
	State     string     `json:"state,omitempty"`
	Code      string     `json:"code,omitempty"` // of its failure
	Started   time.Time  `json:"started"`
	Ended     *time.Time `json:"ended,omitempty"`
	Stages    int        `json:"stages"` // without nested ones
	DryRun    bool       `json:"dry_run,omitempty"`

	Tools    []string `json:"tools,omitempty"`    // that its stages have called, as SERVER/NAME
	Items    int64    `json:"items,omitempty"`    // of all for_each that have ended
	Failed   int64    `json:"failed,omitempty"`   // of those
	Calls    int64    `json:"calls,omitempty"`    // of tools
	Seen     int64    `json:"seen,omitempty"`     // bytes that tools have returned to the pipeline
	Returned int64    `json:"returned,omitempty"` // bytes of the reply to the client
}

// Live reports whether the run has not ended.
func (r Run) Live() bool { return r.State == RunRunning || r.State == RunAsking }

// A RunDetail describes a run. Only viewers of results have the fields marked as data.
type RunDetail struct {
	Run
	Cursor uint64 `json:"cursor"` // for Wait

	ID        string          `json:"run,omitempty"`       // by which its caller continues it; data
	Plan      json.RawMessage `json:"plan,omitempty"`      // as it was written; data
	PlanSize  int             `json:"plan_size,omitempty"` // of a plan that was too long to be kept, in bytes
	Continues string          `json:"continues,omitempty"` // the request of the run whose outputs this one begins with, if it is known

	Stages  []RunStage  `json:"stage_list"`
	Windows []RunWindow `json:"windows,omitempty"` // of preview stages in the middle; data
	Error   *RunError   `json:"error,omitempty"`
	Cut     bool        `json:"cut,omitempty"` // there was more than is kept: stages, windows or messages
}

// A RunStage is what a stage has done, over all items of a for_each.
type RunStage struct {
	Place  string `json:"stage"` // "3", and of nested ones "3.1" or "3.users.1"
	Label  string `json:"label"`
	Kind   string `json:"kind"`
	Branch string `json:"branch,omitempty"`
	Input  string `json:"input,omitempty"` // of a command, whose output it becomes

	Changes bool `json:"changes,omitempty"` // its calls may have changed something
	Ended   bool `json:"ended,omitempty"`

	Items   int64 `json:"items,omitempty"` // of a for_each, begun
	Total   int64 `json:"total,omitempty"` // of them, begun or not; 0: not known yet, or no for_each
	OK      int64 `json:"ok,omitempty"`
	Failed  int64 `json:"failed,omitempty"`
	Skipped int64 `json:"skipped,omitempty"` // of those failed
	Retried int64 `json:"retried,omitempty"` // of those ok
	Retries int64 `json:"retries,omitempty"`
	Shared  int64 `json:"shared,omitempty"`
	Resumed int64 `json:"resumed,omitempty"`

	Calls    int64 `json:"calls,omitempty"`
	Refused  int64 `json:"refused,omitempty"`
	Unknown  int64 `json:"unknown,omitempty"`
	Pages    int64 `json:"pages,omitempty"`
	Fetched  int64 `json:"fetched,omitempty"`
	Returned int64 `json:"returned,omitempty"` // bytes of results of tools
	BytesIn  int64 `json:"bytes_in"`
	BytesOut int64 `json:"bytes_out"`

	Millis float64 `json:"ms"`
	Busy   float64 `json:"busy_ms,omitempty"`

	ToolDone  float64 `json:"tool_done,omitempty"` // as its tool says, of ToolTotal, which may be 0
	ToolTotal float64 `json:"tool_total,omitempty"`
	ToolSays  string  `json:"tool_says,omitempty"` // data

	Messages []RunFailures `json:"messages,omitempty"` // failures of items, the most frequent first; data
	Others   int64         `json:"other_messages,omitempty"`
	Notes    []string      `json:"notes,omitempty"` // data

	Kept *int64 `json:"kept,omitempty"` // bytes of its output that are kept, see Output; nil: none; for viewers of results

	Stages []RunStage `json:"stages,omitempty"` // within this one
}

// RunFailures are failures that say the same.
type RunFailures struct {
	Text  string `json:"text"`
	Count int64  `json:"count"`
}

// A RunWindow is what a preview stage has seen.
type RunWindow struct {
	Place string `json:"stage"`
	Text  string `json:"text"`
}

// A RunError is why a run failed.
type RunError struct {
	Code  string `json:"code"`
	Place string `json:"stage,omitempty"`
	Label string `json:"label,omitempty"`
	Item  int    `json:"item,omitempty"`

	Message string          `json:"message,omitempty"` // data
	Hint    string          `json:"hint,omitempty"`    // data
	Fix     json.RawMessage `json:"fix,omitempty"`     // what the stage should be; data
	Sample  string          `json:"sample,omitempty"`  // the beginning of the stage's input; data
}

// An OutputRequest names a part of the output of a run.
type OutputRequest struct {
	Request string `json:"request"`
	Stage   int    `json:"stage,omitempty"` // from 1; 0: the last
	Offset  int64  `json:"offset,omitempty"`
	Max     int    `json:"max,omitempty"` // bytes, at most and by default [MaxPart]
}

// MaxPart is the largest part of an output, in bytes.
const MaxPart = 1 << 20

// An OutputPart is a part of the output of a stage.
type OutputPart struct {
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"` // of the whole output
	Data   []byte `json:"data"` // in base64
}

// A RunRequest names a run.
type RunRequest struct {
	Request string `json:"request"`
}

// A RunCursor is a moment in the life of a gateway's runs.
type RunCursor struct {
	Cursor uint64 `json:"cursor"`
}

// runWait bounds one wait for runs.
const runWait = 20 * time.Second

// runRoutes are the requests about runs. GET /v1/runs lists those in progress only, as it always has.
func runRoutes(v Viewer) []route {
	return []route{
		{http.MethodGet, "/v1/runs", nil, func(ctx context.Context, s Source, _ any) (any, error) {
			return s.Runs(ctx, v, RunFilter{States: []string{RunRunning, RunAsking}}).Runs, nil
		}},
		post("/v1/runs/list", func(s Source, ctx context.Context, f RunFilter) (RunList, error) { return s.Runs(ctx, v, f), nil }),
		post("/v1/runs/show", func(s Source, ctx context.Context, r RunRequest) (RunDetail, error) { return s.Run(ctx, v, r.Request) }),
		post("/v1/runs/output", func(s Source, ctx context.Context, r OutputRequest) (OutputPart, error) { return s.Output(ctx, v, r) }),
		post("/v1/runs/wait", func(s Source, ctx context.Context, c RunCursor) (RunCursor, error) {
			ctx, cancel := context.WithTimeout(ctx, runWait)
			defer cancel()
			next, err := s.Wait(ctx, c.Cursor)
			if err != nil && ctx.Err() != nil {
				err = nil // nothing has changed so far
			}
			return RunCursor{next}, err
		}),
		post("/v1/runs/cancel", func(s Source, _ context.Context, r RunRequest) (struct{}, error) {
			return struct{}{}, s.Cancel(v, r.Request)
		}),
	}
}
