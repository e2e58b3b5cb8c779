package gateway

//lint:file-ignore SA1019 the older revision is tested with what the newer one deprecates

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessionTools say or ask something while they are called, or change what there is.
func sessionTools(s *mcp.Server) []fixtureTool {
	return []fixtureTool{
		{"test_tool_with_logging", "", false, logging("Tool execution started", "Tool processing data", "Tool execution completed")},
		{"test_logging_tool", "", false, logging("only for those who asked")},
		{"test_tool_with_progress", "", false, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			token := req.Params.GetProgressToken()
			for _, done := range []float64{0, 50, 100} {
				p := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}
				if err := req.Session.NotifyProgress(ctx, p); err != nil {
					return nil, err
				}
			}
			return replyText("%v", token), nil
		}},
		{"test_sampling", "", false, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result, err := req.Session.CreateMessage(ctx, sampling(argument(req, "prompt")))
			if err != nil {
				return nil, err
			}
			said, _ := result.Content.(*mcp.TextContent)
			return replyText("LLM response: %s", said.Text), nil
		}},
		{"test_elicitation", "", false, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			params := ask("username", "string")
			params.Message = argument(req, "message")
			return elicit(ctx, req, params)
		}},
		{"test_elicitation_sep1034_defaults", "", false, asksWith(defaultsSchema)},
		{"test_elicitation_sep1330_enums", "", false, asksWith(enumsSchema)},
		{"test_missing_capability", "", false, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if c := req.ClientCapabilities(); c != nil && c.Sampling != nil {
				return replyText("the client can sample"), nil
			}
			needed := &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}
			return nil, refused(mcp.CodeMissingRequiredClientCapabilities, "the client cannot sample", mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: needed})
		}},
		{"test_trigger_tool_change", "", false, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.AddTool(&mcp.Tool{Name: "test_added", Description: "Added later.", InputSchema: json.RawMessage(`{"type":"object"}`)}, says(text("new")))
			return replyText("a tool was added"), nil
		}},
		{"test_trigger_prompt_change", "", false, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			s.AddPrompt(&mcp.Prompt{Name: "test_added", Description: "Added later."}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{}, nil
			})
			return replyText("a prompt was added"), nil
		}},
	}
}

// argument is an argument of a call, if it is text.
func argument(req *mcp.CallToolRequest, name string) string {
	var args map[string]any
	_ = json.Unmarshal(req.Params.Arguments, &args)
	value, _ := args[name].(string)
	return value
}

// logging is a tool that logs lines.
func logging(lines ...string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, line := range lines {
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
				return nil, err
			}
		}
		return replyText("logged"), nil
	}
}

// asksWith is a tool that asks the client for what a schema says.
func asksWith(schema string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return elicit(ctx, req, &mcp.ElicitParams{Message: "Please fill this in", RequestedSchema: json.RawMessage(schema)})
	}
}

func elicit(ctx context.Context, req *mcp.CallToolRequest, params *mcp.ElicitParams) (*mcp.CallToolResult, error) {
	result, err := req.Session.Elicit(ctx, params)
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(result.Content)
	return replyText("Elicitation result: action=%s, content=%s", result.Action, content), err
}

const defaultsSchema = `{"type": "object", "properties": {
	"name": {"type": "string", "default": "John Doe"},
	"age": {"type": "integer", "default": 30},
	"score": {"type": "number", "default": 95.5},
	"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
	"verified": {"type": "boolean", "default": true}
}}`

const enumsSchema = `{"type": "object", "properties": {
	"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
	"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
	"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
	"untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
	"titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}
}}`

// ask asks the client for one member of a type.
func ask(member, kind string) *mcp.ElicitParams {
	schema := fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%q]}`, member, kind, member)
	return &mcp.ElicitParams{Message: "Please say: " + member, RequestedSchema: json.RawMessage(schema)}
}

func sampling(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: text("%s", prompt)}}}
}
