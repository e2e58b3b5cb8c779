package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/preview/shape"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Bounds of a playground.
const (
	checkTime = 20 * time.Second // of a check while somebody types
	wordsTime = 5 * time.Second  // of a list of tools
	mostPaths = 300              // of the results of a tool
)

// trials run pipelines for people at the console.
type trials struct {
	*shown
	console *ui.Console // is notified of replies
	replies *replies
}

// viewerOf returns who asks for what the person itself has done; its Caller is empty where nobody authenticates.
func viewerOf(ctx context.Context) (v control.Viewer) {
	identity, _ := auth.IdentityOf(ctx)
	v.Caller = identity.ID
	v.Groups, v.Limited = auth.LimitOf(ctx)
	return v
}

// call calls execute_pipeline as the person whose identity the context has.
func (t *trials) call(ctx context.Context, plan, mode string, h gateway.RunObserver) (*mcp.CallToolResult, error) {
	pipeline := any(plan) // a text that is no JSON has its mistake described by the check
	if json.Valid([]byte(plan)) {
		pipeline = json.RawMessage(plan)
	}
	return t.person(ctx).Call(gateway.Observed(ctx, h), "execute_pipeline", map[string]any{"pipeline": pipeline, "mode": mode})
}

// Check implements [ui.Playground].
func (t *trials) Check(ctx context.Context, plan string) (found stages.Plan, wrong []*stages.Error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	heard := false
	result, err := t.call(ctx, plan, schemas.ModeCheck, gateway.RunObserver{Checked: func(p stages.Plan, errs []*stages.Error) { found, wrong, heard = p, errs, true }})
	switch {
	case err != nil:
		return found, []*stages.Error{stages.Errorf(stages.Internal, "", "%w", err)}
	case !heard:
		return found, []*stages.Error{stages.Errorf(stages.LimitExceeded, "", "%s", strings.Join(replyOf(result).Texts, "\n"))}
	}
	return found, wrong
}

// Start implements [ui.Playground].
func (t *trials) Start(ctx context.Context, plan string, dry bool) (string, *ui.Reply) {
	mode, trial := schemas.ModeRun, &trialReply{by: viewerOf(ctx)}
	if dry {
		mode = schemas.ModeDryRun
	}
	begun, ended := make(chan string, 1), make(chan ui.Reply, 1)
	go func() {
		result, err := t.call(context.WithoutCancel(ctx), plan, mode, gateway.RunObserver{Begun: func(r string) {
			trial.request, trial.begun = r, time.Now()
			t.replies.begin(trial)
			begun <- r
		}})
		reply := replyOf(result)
		if err != nil {
			reply = ui.Reply{Texts: []string{err.Error()}, Failed: true}
		}
		if trial.request == "" {
			ended <- reply
			return
		}
		t.replies.answer(trial, reply)
		t.console.Changed("runs")
	}()
	select {
	case request := <-begun:
		return request, nil
	case reply := <-ended:
		return "", &reply
	}
}

// Reply implements [ui.Playground].
func (t *trials) Reply(ctx context.Context, request string) (*ui.Reply, bool) {
	return t.replies.of(viewerOf(ctx), request)
}

// EndUser implements [ui.Playground].
func (t *trials) EndUser(id string) { t.replies.endUser(id) }

// replyOf are the texts of a result, and what stands in place of other content.
func replyOf(result *mcp.CallToolResult) ui.Reply {
	if result == nil {
		return ui.Reply{}
	}
	r := ui.Reply{Failed: result.IsError}
	left := mostReplyText
	for _, block := range result.Content {
		text := ""
		switch block := block.(type) {
		case *mcp.TextContent:
			text = block.Text
		case *mcp.ImageContent:
			text = "a picture (" + block.MIMEType + ", " + texts.Bytes(int64(len(block.Data))) + ")"
		case *mcp.AudioContent:
			text = "a sound (" + block.MIMEType + ", " + texts.Bytes(int64(len(block.Data))) + ")"
		case *mcp.ResourceLink:
			continue // the page shows the output itself
		case *mcp.EmbeddedResource:
			text = "a resource (" + block.Resource.URI + ")\n" + block.Resource.Text
		}
		text = cutText(text, left)
		left -= len(text)
		r.Texts = append(r.Texts, text)
	}
	return r
}

// catalog lists the tools of servers that the person may use, and the saved pipelines.
func (t *trials) catalog(ctx context.Context, servers ...string) []upstream.Listing {
	ctx, cancel := context.WithTimeout(ctx, wordsTime)
	defer cancel()
	pool, ctx := t.pool(ctx)
	return gateway.Saved{Set: t.parts.parts.saved, Viewer: t.person(ctx).Viewer(ctx)}.Catalog(ctx, pool.Catalog, servers...)
}

// Servers implements [ui.Words].
func (t *trials) Servers(ctx context.Context) []ui.Word {
	return convert(t.catalog(ctx), func(l upstream.Listing) ui.Word {
		return ui.Word{Name: l.Server, Detail: texts.Count(len(l.Tools), "tool"), Info: texts.Fit(l.Instructions, 300)}
	})
}

// Tools implements [ui.Words].
func (t *trials) Tools(ctx context.Context, server string) (list []ui.Word) {
	for _, l := range t.catalog(ctx, server) {
		for i := range l.Tools {
			tool := &l.Tools[i]
			list = append(list, ui.Word{Name: tool.Name, Detail: tool.Brief, Info: texts.Fit(tool.Description, 300)})
		}
	}
	return list
}

// Tool implements [ui.Words].
func (t *trials) Tool(ctx context.Context, server, name string) (input json.RawMessage, paths []string) {
	for _, l := range t.catalog(ctx, server) {
		for i := range l.Tools {
			if tool := &l.Tools[i]; tool.Name == name {
				if tool.Result != nil {
					paths = jqPaths(tool.Result.Value, "", nil)
				}
				return tool.InputSchema, paths
			}
		}
	}
	return nil, nil
}

// jqPaths are the paths into values with a shape.
func jqPaths(s *shape.Shape, at string, list []string) []string {
	if s == nil || len(list) >= mostPaths {
		return list
	}
	if s.Items != nil {
		list = append(list, orDot(at)+"[]")
		list = jqPaths(s.Items, orDot(at)+"[]", list)
	}
	for _, f := range s.Fields {
		if !plainName(f.Name) || len(list) >= mostPaths {
			continue
		}
		list = jqPaths(f.Shape, at+"."+f.Name, append(list, at+"."+f.Name))
	}
	return list
}

func orDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// plainName reports whether jq reads .NAME.
func plainName(name string) bool {
	for i, c := range name {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Commands implements [ui.Words].
func (t *trials) Commands() (list []ui.Word) {
	report, err := t.parts.parts.sandbox.Describe()
	if err != nil {
		return nil
	}
	for _, a := range report.Programs {
		if p, ok := report.Added.Find(a.Name); ok && a.Refusal == "" {
			list = append(list, ui.Word{Name: a.Name, Detail: texts.Fit(p.Summary, 60), Info: p.Notes})
		}
	}
	return list
}

var _ ui.Playground = (*trials)(nil)
