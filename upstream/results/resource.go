package results

import (
	"encoding/json"
	"slices"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// CheckContents refuses the result of a request for a resource or a prompt that is no JSON object, a question, or without the list
// that is wanted. "" wants none.
func CheckContents(raw json.RawMessage, noun, list string) error {
	r, err := decodeResult(raw)
	if err != nil {
		return invalid("a result", err)
	}
	if asks, inputs := r.requestedInputs(); asks || r.ResultType == "input_required" {
		return stages.Errorf(stages.ToolError, "use another one", "the %s asks for input from a person (%s), which the gateway cannot give", noun, inputs)
	}
	if list != "" && !rpc.HasList(raw, list) {
		return Fault("the server sent a result that is not valid: %s is not a list of objects", list)
	}
	return nil
}

// OfResource makes pipeline data of the result of resources/read: one text is its text; several contents, or blobs, are one JSON object
// each. In the blocks are the URIs for clients of the gateway, unless outwards is nil.
func OfResource(raw json.RawMessage, outwards func(block []byte) []byte) (res stages.Result, err error) {
	var list []json.RawMessage
	texts, single, many := true, json.RawMessage(nil), false
	rpc.Members(raw, func(name, value []byte) {
		if rpc.Name(name) != "contents" {
			return
		}
		rpc.Elements(value, func(one []byte) {
			if many = len(list) >= maxBlocks; many {
				return
			}
			list = append(list, one)
			single = nil
			rpc.Members(one, func(name, value []byte) {
				if rpc.Name(name) == "text" && value[0] == '"' {
					single = value
				}
			})
			texts = texts && single != nil
		})
	})
	switch {
	case many:
		return res, stages.Errorf(stages.LimitExceeded, askForLess, "%w", errManyBlocks)
	case len(list) == 0:
		return stages.Result{None: true}, nil
	case len(list) == 1 && texts:
		return stages.Result{Data: rpc.Unquote(single)}, nil
	}
	return objects(list, texts, outwards), nil
}

// objects are contents as one JSON object each.
func objects(list []json.RawMessage, texts bool, outwards func(block []byte) []byte) stages.Result {
	res := stages.Result{Kind: stages.Values}
	var lines [][]byte
	for _, one := range list {
		lines = append(lines, oneLine(one))
		if !texts {
			block := slices.Concat([]byte(`{"type":"resource","resource":`), one, []byte(`}`))
			if outwards != nil {
				block = outwards(block)
			}
			res.Blocks = append(res.Blocks, block)
		}
	}
	res.Data, res.Spans = joinLines(lines)
	return res
}
