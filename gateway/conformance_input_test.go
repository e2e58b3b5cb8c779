package gateway

//lint:file-ignore SA1019 the older revision is tested with what the newer one deprecates

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An interview is a tool that answers with what it needs to know until the client has said it.
type interview func(req *mcp.CallToolRequest, said mcp.InputResponseMap, state string) (*mcp.CallToolResult, error)

func (i interview) tool(name string) fixtureTool {
	return fixtureTool{name: name, call: func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return i(req, req.Params.InputResponses, req.Params.RequestState)
	}}
}

// needs asks for one thing.
func needs(key string, request mcp.InputRequest, state string) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: request}, RequestState: state}
}

// accepted is what a person has filled in, if one has.
func accepted(said mcp.InputResponseMap, key string) map[string]any {
	if r, ok := said[key].(*mcp.ElicitResult); ok && r.Action == "accept" {
		return r.Content
	}
	return nil
}

// sampled is what a model has said.
func sampled(said mcp.InputResponseMap, key string) (string, bool) {
	r, ok := said[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || len(r.Content) == 0 {
		return "", false
	}
	text, ok := r.Content[0].(*mcp.TextContent)
	return text.Text, ok
}

// inputTools ask in their results.
func inputTools() []fixtureTool {
	const prefix = "test_input_required_result_"
	return []fixtureTool{
		interview(byName).tool(prefix + "elicitation"),
		interview(bySampling).tool(prefix + "sampling"),
		interview(byRoots).tool(prefix + "list_roots"),
		interview(sealed).tool(prefix + "request_state"),
		interview(sealed).tool(prefix + "tampered_state"),
		interview(everythingAtOnce).tool(prefix + "multiple_inputs"),
		interview(inRounds).tool(prefix + "multi_round"),
		interview(whatTheClientCan).tool(prefix + "capabilities"),
	}
}

func byName(_ *mcp.CallToolRequest, said mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
	if name, _ := accepted(said, "user_name")["name"].(string); name != "" {
		return replyText("Hello, %s!", name), nil
	}
	return needs("user_name", ask("name", "string"), ""), nil
}

func bySampling(_ *mcp.CallToolRequest, said mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
	if answer, ok := sampled(said, "capital_question"); ok {
		return replyText("Sampling response: %s", answer), nil
	}
	return needs("capital_question", sampling("What is the capital of France?"), ""), nil
}

func byRoots(_ *mcp.CallToolRequest, said mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
	if r, ok := said["client_roots"].(*mcp.ListRootsResult); ok {
		return replyText("%d roots", len(r.Roots)), nil
	}
	return needs("client_roots", &mcp.ListRootsParams{}, ""), nil
}

// seal is the state that a tool gives; another one is not its own.
const seal = "sealed"

func sealed(_ *mcp.CallToolRequest, said mcp.InputResponseMap, state string) (*mcp.CallToolResult, error) {
	if state != "" && state != seal {
		return nil, refused(jsonrpc.CodeInvalidParams, "the requestState is not one of this server", nil)
	}
	if accepted(said, "confirm") != nil && state == seal {
		return replyText("state-ok"), nil
	}
	return needs("confirm", ask("ok", "boolean"), seal), nil
}

func everythingAtOnce(_ *mcp.CallToolRequest, said mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
	name := accepted(said, "user_name")
	greeting, greeted := sampled(said, "greeting")
	roots, rooted := said["client_roots"].(*mcp.ListRootsResult)
	if name != nil && greeted && rooted {
		return replyText("%s %v, %d roots", greeting, name["name"], len(roots.Roots)), nil
	}
	return &mcp.CallToolResult{RequestState: "all", InputRequests: mcp.InputRequestMap{
		"user_name": ask("name", "string"), "greeting": sampling("Generate a greeting"), "client_roots": &mcp.ListRootsParams{},
	}}, nil
}

func inRounds(_ *mcp.CallToolRequest, said mcp.InputResponseMap, state string) (*mcp.CallToolResult, error) {
	name, second := strings.CutPrefix(state, "second ")
	switch {
	case second:
		return replyText("%s likes %v", name, accepted(said, "step2")["color"]), nil
	case state == "first":
		name, _ := accepted(said, "step1")["name"].(string)
		return needs("step2", ask("color", "string"), "second "+name), nil
	default:
		return needs("step1", ask("name", "string"), "first"), nil
	}
}

func whatTheClientCan(req *mcp.CallToolRequest, said mcp.InputResponseMap, _ string) (*mcp.CallToolResult, error) {
	requests := mcp.InputRequestMap{}
	if c := req.ClientCapabilities(); c != nil && c.Elicitation != nil {
		requests["user_name"] = ask("name", "string")
	}
	if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
		requests["greeting"] = sampling("Generate a greeting")
	}
	if len(said) > 0 || len(requests) == 0 {
		return replyText("it has what it can have"), nil
	}
	return &mcp.CallToolResult{InputRequests: requests}, nil
}
