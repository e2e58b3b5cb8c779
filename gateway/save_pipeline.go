package gateway

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/stages"
)

//go:embed texts/save_pipeline.md
var saveText string

// saveName is the name of the tool, which is there only where the operator allows it.
const saveName = "save_pipeline"

var saveSchema = json.RawMessage(`{"type":"object","properties":{
"name":{"type":"string","pattern":"` + pipelines.NamePattern + `"},
"description":{"type":"string"},
"run":{"type":"string"},
"pipeline":{"type":"array","items":{"type":"object"}},
"parameters":{"type":"object"},
"version":{"type":"integer","minimum":1}},
"required":["name","description"],"additionalProperties":false}`)

// saveCall holds the arguments of save_pipeline.
type saveCall struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Run         string          `json:"run"`
	Pipeline    json.RawMessage `json:"pipeline"`
	Parameters  json.RawMessage `json:"parameters"`
	Version     int             `json:"version"` // that it follows
}

func (g *Gateway) savePipeline(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var call saveCall
	if wrong := decode(req, &call); wrong != nil {
		return nil, wrong
	}
	keeper := keeperOf(req.Extra)
	if keeper == "" {
		return nil, stages.Errorf(stages.Denied, "run the pipeline itself; the operator can give callers identities (--tokens), or save it with mcsh pipeline save",
			"this gateway does not know who calls: a pipeline that you save would be seen by others, or by nobody")
	}
	text, d, wrong := call.content(ctx, g.runsOf(req.Extra))
	if wrong != nil {
		return nil, wrong
	}
	if e := g.o.Pipelines.Inspect(ctx, call.Name, d, keeper); e != nil {
		return nil, wrongCall{e}
	}
	author := pipelines.Author{Agent: true, Caller: keeper}
	v, err := g.o.Pipelines.Store().Save(ctx, call.Name, text, call.Version, author)
	if err != nil {
		return nil, g.notSaved(ctx, call.Name, author, err)
	}
	g.o.Log.Info("an agent has saved a pipeline", g.logCaller(req.Extra), zap.String("name", call.Name), zap.Int("version", v.Number))
	stage := fmt.Sprintf(`{"type":"tool","server":%q,"name":%q,"args":%s}`, pipelines.Server, call.Name, d.ExampleArgs())
	return textResult(fmt.Sprintf("Saved as %s, version %d. Only you see it, until the operator of this gateway adopts it (mcsh pipeline adopt %s).\nA stage that calls it:\n%s\n",
		call.Name, v.Number, call.Name, texts.Plain(stage, false))), nil
}

// content returns the file of the pipeline, or all that is wrong with the call.
func (c *saveCall) content(ctx context.Context, runs stages.Runs) ([]byte, *pipelines.Definition, wrongCall) {
	var wrong wrongCall
	refuse := func(field, hint string, err error) {
		e := stages.Errorf(stages.InvalidArguments, hint, "%w", err)
		e.Field = field
		wrong = append(wrong, e)
	}
	if err := pipelines.CheckName(c.Name); err != nil {
		refuse("name", "name it like open_by_team", err)
	}
	draft := pipelines.Draft{Description: c.Description, Pipeline: c.Pipeline, Parameters: c.Parameters}
	switch {
	case (c.Run == "") == (len(c.Pipeline) == 0):
		refuse("run", `give "run": "r_..." of a reply, or else "pipeline": [stages]`, errors.New("it takes either run or pipeline"))
	case c.Run != "":
		plan, err := stages.PlanOf(ctx, runs, c.Run)
		if err != nil {
			own := *stages.AsError(err)
			own.Hint = "give the r_... of a reply; if that run is gone, run its pipeline again, or give the stages as pipeline"
			return nil, nil, append(wrong, &own)
		}
		draft.Ran, draft.Pipeline = true, json.RawMessage(texts.JSON(plan))
	}
	if wrong != nil {
		return nil, nil, wrong
	}
	text, errs := draft.Text()
	if errs != nil {
		return nil, nil, errs
	}
	d, err := pipelines.Parse("", text)
	for _, one := range linesOf(err) {
		key, _, _ := strings.Cut(one, ": ")
		refuse(key, "", errors.New(one))
	}
	return text, d, wrong
}

// linesOf returns the mistakes in a file, without the line: the agent has not seen the file.
func linesOf(err error) (list []string) {
	for line := range strings.SplitSeq(fmt.Sprint(err), "\n") {
		if _, rest, ok := strings.Cut(line, ": "); ok && err != nil {
			list = append(list, rest)
		}
	}
	return list
}

// notSaved tells an agent why a pipeline was not saved. It does not tell what others have saved, or where.
func (g *Gateway) notSaved(ctx context.Context, name string, author pipelines.Author, err error) error {
	code, hint, text := stages.Internal, "the operator of this gateway finds the reason in its log", "the pipeline could not be saved"
	switch {
	case errors.Is(err, pipelines.ErrConflict):
		own, _ := g.o.Pipelines.Store().Get(ctx, name, func(v pipelines.Version) bool { return v.VisibleTo(author.Caller) })
		code, text = stages.InvalidArguments, fmt.Sprintf("you have saved %s already: it is at version %d", name, own.Version.Number)
		hint = fmt.Sprintf(`look at it with get_tool_details, and give "version": %d to replace it, or another name`, own.Version.Number)
		if own.Version.Number == 0 {
			text, hint = fmt.Sprintf("there is no saved pipeline %q to replace", name), "leave version out"
		}
	case errors.Is(err, pipelines.ErrTaken), errors.Is(err, pipelines.ErrFile):
		code, text, hint = stages.Denied, fmt.Sprintf("the name %q is taken: agents change only pipelines of their own that nobody has adopted", name), "choose another name; a pipeline of another name can begin with a stage that calls this one"
	case errors.Is(err, pipelines.ErrFull):
		code, text, hint = stages.LimitExceeded, err.Error(), "save it as a new version of one of yours"
	case errors.Is(err, pipelines.ErrUnsettled):
		g.o.Log.Warn("a pipeline may not have been saved", zap.String("name", name), zap.Error(err))
		code, text, hint = stages.ServerUnavailable, pipelines.ErrUnsettled.Error(), "get_tool_details with server "+pipelines.Server+" shows it in a minute, if it was saved"
	case ctx.Err() != nil:
		code, text, hint = stages.Cancelled, "the call ended before the pipeline was saved", ""
	case errors.Is(err, pipelines.ErrStore):
		g.o.Log.Warn("a pipeline cannot be saved", zap.String("name", name), zap.Error(err))
		code, text, hint = stages.ServerUnavailable, pipelines.ErrStore.Error()+": nothing was saved", "try again in a minute"
	default:
		g.o.Log.Error("a pipeline cannot be saved", zap.String("name", name), zap.Error(err))
	}
	return stages.Errorf(code, hint, "%s", text)
}
