package gateway

//lint:file-ignore SA1019 the newer revision deprecates sampling, and clients of the older one have it

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

const methodSample = "sampling/createMessage"

// samples reports whether a client has a model that servers may ask.
func samples(c *mcp.ClientCapabilities) bool { return c.Sampling != nil }

// methodOf returns the method of a question.
func methodOf(q mcp.InputRequest) string {
	if _, ok := q.(*mcp.CreateMessageWithToolsParams); ok {
		return methodSample
	}
	return methodElicit
}

// sampleQuestion is for the client's model. Nothing of the client's context goes with it, and no tools.
func sampleQuestion(q stages.Question) (inquiry, error) {
	var asked mcp.CreateMessageWithToolsParams
	if err := json.Unmarshal(q.Params, &asked); err != nil {
		return inquiry{}, errors.New("the parameters are not those of " + methodSample)
	}
	switch {
	case asked.Tools != nil || asked.ToolChoice != nil:
		return inquiry{}, errors.New("a model cannot be given tools here")
	case len(asked.Messages) == 0 || asked.MaxTokens < 1:
		return inquiry{}, errors.New("messages or maxTokens are missing")
	}
	for _, m := range asked.Messages {
		if m == nil || !plainContent(m.Content) {
			return inquiry{}, errors.New("the messages have other content than texts, images and audio")
		}
	}
	params := &mcp.CreateMessageWithToolsParams{
		Messages: asked.Messages, MaxTokens: asked.MaxTokens, StopSequences: asked.StopSequences, Temperature: asked.Temperature,
		ModelPreferences: asked.ModelPreferences, SystemPrompt: askedBy(q, "asks a model", asked.SystemPrompt),
	}
	return inquiry{params, nil, readSampled}, nil
}

// plainContent reports whether content is only texts, images and audio, and cleans the texts.
func plainContent(content []mcp.Content) bool {
	for _, c := range content {
		switch c := c.(type) {
		case *mcp.TextContent:
			c.Text = texts.Plain(c.Text, true)
		case *mcp.ImageContent, *mcp.AudioContent:
		default:
			return false
		}
	}
	return len(content) > 0
}

// readSampled checks the answer of a model.
func readSampled(answer json.RawMessage) (json.RawMessage, error) {
	var result mcp.CreateMessageWithToolsResult
	if err := json.Unmarshal(answer, &result); err != nil || result.Role != "assistant" || result.Model == "" || !plainContent(result.Content) {
		return nil, errors.New("the answer is not that of a model")
	}
	result.Meta = nil
	return json.Marshal(&result)
}

// putSDK puts a question to the client of a session of the older era, on the stream of the call that ctx belongs to.
func putSDK(ctx context.Context, s *mcp.ServerSession, q inquiry) (json.RawMessage, error) {
	var answer any
	var err error
	switch params := q.request.(type) {
	case *mcp.ElicitParams:
		answer, err = s.Elicit(ctx, params)
	case *mcp.CreateMessageWithToolsParams:
		answer, err = s.CreateMessageWithTools(ctx, params)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}
