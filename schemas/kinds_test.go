package schemas_test

import (
	"context"
	"encoding/json"

	"github.com/mcsh-dev/mcsh/stages"
)

// The kinds of these tests have a field of every shape that the table of stages has. Their schemas do not change when
// the language grows.
type (
	callStage struct {
		Server   string          `json:"server" jsonschema:"minLength=1" jsonschema_description:"the server; see list_all_tools"`
		Name     string          `json:"name" jsonschema:"minLength=1" jsonschema_description:"the tool"`
		Args     json.RawMessage `json:"args,omitempty" jsonschema_description:"its arguments"`
		Paginate *pages          `json:"paginate,omitempty" jsonschema_description:"get all pages"`
		Timeout  float64         `json:"timeout,omitempty" jsonschema:"exclusiveMinimum=0,default=60" jsonschema_description:"seconds"`
		mapping
		inert
	}
	commandStage struct {
		Command string          `json:"command" jsonschema:"minLength=1"`
		Args    stages.Args     `json:"args,omitempty" jsonschema_description:"its arguments; one string is one argument"`
		Inputs  stages.Branches `json:"inputs,omitempty"`
		mapping
		inert
	}
	previewStage struct {
		Chars int `json:"chars,omitempty" jsonschema:"minimum=100,maximum=100000,default=3000"`
		inert
	}
	eachStage struct {
		Stages stages.List `json:"stages"`
		inert
	}
	branchStage struct {
		Branches stages.Branches `json:"branches"`
		inert
	}
	mapping struct {
		ForEach     bool   `json:"for_each,omitempty" jsonschema:"default=false"`
		Concurrency int    `json:"concurrency,omitempty" jsonschema:"minimum=1,maximum=64"`
		OnError     string `json:"on_error,omitempty" jsonschema:"enum=fail,enum=skip,enum=collect,default=fail"`
	}
	pages struct {
		Arg string `json:"arg,omitempty"`
		Max int    `json:"max,omitempty" jsonschema:"minimum=1,default=100"`
	}
	inert struct{}
)

func (inert) Compile(context.Context, stages.Scope) (*stages.Step, error) {
	return new(stages.Step), nil
}

func (p *pages) UnmarshalJSON(data []byte) error {
	type plain pages
	return json.Unmarshal(data, (*plain)(p))
}

func testKinds() []stages.Kind {
	return []stages.Kind{
		{Name: "tool", Summary: "calls a tool", New: func() stages.Stage { return new(callStage) }},
		{Name: "command", Summary: "runs a command", New: func() stages.Stage { return new(commandStage) }},
		{Name: "preview", Summary: "shows the shape", New: func() stages.Stage { return new(previewStage) }},
		{Name: "for_each", Summary: "runs stages per item", New: func() stages.Stage { return new(eachStage) }},
		{Name: "parallel", Summary: "runs branches", New: func() stages.Stage { return new(branchStage) }},
	}
}
