package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var fixtureSelf = &mcp.Implementation{Name: "conformance-fixture", Version: "1"}

// A fixtureTool is a tool that scenarios of the suite call, which say its name and what it does.
type fixtureTool struct {
	name   string
	schema string // an object of anything if empty
	plain  bool   // it needs nothing of the SDK's session, so that ordinary calls of it go beside
	call   mcp.ToolHandler
}

// newFixture makes the server and returns the plain tools beside.
func newFixture() (*mcp.Server, map[string]mcp.ToolHandler) {
	none := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s := mcp.NewServer(fixtureSelf, &mcp.ServerOptions{
		SubscribeHandler:   none,
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"paris", "parma"}}}, nil
		},
	})
	plain := map[string]mcp.ToolHandler{}
	for _, t := range append(contentTools(), append(sessionTools(s), inputTools()...)...) {
		if t.schema == "" {
			t.schema = `{"type":"object"}`
		}
		s.AddTool(&mcp.Tool{Name: t.name, Description: "Of the conformance suite.", InputSchema: json.RawMessage(t.schema)}, t.call)
		if t.plain {
			plain[t.name] = t.call
		}
	}
	addResources(s)
	addPrompts(s)
	return s, plain
}

// says is a tool whose result never differs.
func says(blocks ...mcp.Content) mcp.ToolHandler {
	return func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: blocks}, nil
	}
}

func text(format string, args ...any) *mcp.TextContent {
	return &mcp.TextContent{Text: fmt.Sprintf(format, args...)}
}

func replyText(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}}
}

// A picture of one pixel, and a sound of no length.
const (
	dotPNG  = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
	hushWAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
)

func bytesOf(encoded string) []byte {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		panic(err)
	}
	return b
}

// schemaOfEverything has the keywords that must come through a listing as they are.
const schemaOfEverything = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "phone": {"type": "string"}, "email": {"type": "string"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]}, "else": {"required": ["email"]},
	"additionalProperties": false
}`

// contentTools answer with every kind of content.
func contentTools() []fixtureTool {
	image := &mcp.ImageContent{Data: bytesOf(dotPNG), MIMEType: "image/png"}
	sound := &mcp.AudioContent{Data: bytesOf(hushWAV), MIMEType: "audio/wav"}
	resource := func(uri string) *mcp.EmbeddedResource {
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource"}}
	}
	fails := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := replyText("this tool fails on purpose")
		r.IsError = true
		return r, nil
	}
	return []fixtureTool{
		{"test_simple_text", "", true, says(text("This is a simple text response for testing."))},
		{"test_image_content", "", true, says(image)},
		{"test_audio_content", "", true, says(sound)},
		{"test_embedded_resource", "", true, says(resource("test://embedded-resource"))},
		{"test_multiple_content_types", "", true, says(text("This is text content"), image, resource("test://embedded-in-multiple"))},
		{"test_error_handling", "", true, fails},
		{"json_schema_2020_12_tool", schemaOfEverything, false, says(text("ok"))},
		{"test_streaming_elicitation", "", false, says(text("only results"))},
		{
			"test_x_mcp_header",
			`{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "level": {"type": "integer"}}}`,
			false, says(text("region and level")),
		},
	}
}

func addResources(s *mcp.Server) {
	for _, r := range []*mcp.ResourceContents{
		{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."},
		{URI: "test://static-binary", MIMEType: "image/png", Blob: bytesOf(dotPNG)},
		{URI: "test://watched-resource", MIMEType: "text/plain", Text: "watched"},
	} {
		s.AddResource(&mcp.Resource{Name: r.URI, URI: r.URI, MIMEType: r.MIMEType},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{r}}, nil
			})
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
				URI: req.Params.URI, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"templateTest":true}`, id),
			}}}, nil
		})
}

func addPrompts(s *mcp.Server) {
	prompt := func(name string, get func(args map[string]string) []mcp.Content, args ...string) {
		p := &mcp.Prompt{Name: name, Description: "Of the conformance suite."}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			result := &mcp.GetPromptResult{}
			for _, content := range get(req.Params.Arguments) {
				result.Messages = append(result.Messages, &mcp.PromptMessage{Role: "user", Content: content})
			}
			return result, nil
		})
	}
	prompt("test_simple_prompt", func(map[string]string) []mcp.Content {
		return []mcp.Content{text("This is a simple prompt for testing.")}
	})
	prompt("test_prompt_with_arguments", func(args map[string]string) []mcp.Content {
		return []mcp.Content{text("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])}
	}, "arg1", "arg2")
	prompt("test_prompt_with_embedded_resource", func(args map[string]string) []mcp.Content {
		contents := &mcp.ResourceContents{URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}
		return []mcp.Content{&mcp.EmbeddedResource{Resource: contents}, text("Please process the embedded resource above.")}
	}, "resourceUri")
	prompt("test_prompt_with_image", func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.ImageContent{Data: bytesOf(dotPNG), MIMEType: "image/png"}, text("Please analyze the image above.")}
	})
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "Of the conformance suite."}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		answer := accepted(req.Params.InputResponses, "user_context")
		if answer == nil {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": ask("context", "string")}}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: text("Context: %v", answer["context"])}}}, nil
	})
}

// refused is an error of the protocol.
func refused(code int64, message string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return &jsonrpc.Error{Code: code, Message: message, Data: raw}
}
