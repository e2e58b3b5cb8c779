package gateway

import (
	_ "embed"
	"encoding/json"
)

// Descriptions and input schemas of the published tools. Each sentence of a description answers a problem that agents had.
var (
	//go:embed texts/execute_pipeline.md
	executeText string
	//go:embed texts/durable.md
	durableText string // behind executeText, where runs can be durable
	//go:embed texts/list_all_tools.md
	listText string
	//go:embed texts/get_tool_details.md
	detailsText string
	//go:embed texts/list_available_shell_commands.md
	commandsText string
)

var (
	listSchema = json.RawMessage(`{"type":"object","properties":{
"query":{"type":"string"},
"server":{"type":["string","array"],"items":{"type":"string"}},
"detail":{"enum":["names","brief","full"]},
"limit":{"type":"integer","minimum":1},
"cursor":{"type":"string"}},
"additionalProperties":false}`)
	detailsSchema = json.RawMessage(`{"type":"object","properties":{
"server":{"type":"string"},"tool_name":{"type":"string"},
"tools":{"type":"array","items":{"type":"string"}},
"max_output":{"type":"integer"}},
"additionalProperties":false}`)
	commandsSchema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
)
