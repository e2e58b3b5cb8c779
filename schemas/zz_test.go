package schemas_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

func BenchmarkZDescribe(b *testing.B) {
	all := recordedTools(b)
	n := 0
	for b.Loop() {
		for _, tools := range all {
			for _, tool := range tools {
				schemas.Describe(schemas.NewSteps(context.Background(), 1<<18), tool.Name, tool.InputSchema)
				n++
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/tool")
}

func BenchmarkZCheck(b *testing.B) {
	schema := json.RawMessage(`{"type":"object","properties":{"owner":{"type":"string"},"state":{"enum":["open","closed"],"default":"open"},"labels":{"type":"array","items":{"type":"string"}},"number":{"type":"integer"}},"required":["owner","number"]}`)
	check := schemas.NewCache(1<<20, nil, schemas.Limits{}).Check(schema)
	args := json.RawMessage(`{"owner":"a","number":5,"state":"open","labels":["a","b"]}`)
	for b.Loop() {
		check(context.Background(), args, false)
	}
}

func BenchmarkZStage(b *testing.B) {
	shapes := schemas.NewShapes(stages.Kinds())
	stage := []byte(`{"type":"tool","server":"github","name":"get_issue","args":{"owner":"a","repo":"b"}}`)
	big := []byte(`{"type":"tool","server":"github","name":"get_issue","args":{"owner":["` + strings.Repeat(`abcdefg","`, 10000) + `"],"repo":"b"}}`)
	b.Run("small", func(b *testing.B) {
		for b.Loop() {
			shapes.CheckShape("tool", stage)
		}
	})
	b.Run("big", func(b *testing.B) {
		for b.Loop() {
			shapes.CheckShape("tool", big)
		}
	})
}
