package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// album is a tool whose result has many long texts around an image.
func album() mcptest.Tool {
	return mcptest.Tool{Name: "album", ReadOnly: true, Raw: func(context.Context, json.RawMessage) (string, error) {
		blocks := []string{`{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="}`}
		for i := range 40 {
			text := strings.Repeat(fmt.Sprintf("é line of text %d\\n", i), 100)
			blocks = append(blocks, `{"type":"text","text":"`+text+`"}`)
		}
		blocks = append(blocks, `{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"`+strings.Repeat("note ", 1000)+`"}}`)
		return `{"content":[` + strings.Join(blocks, ",") + `]}`, nil
	}}
}

// TestBudgetBesideWindow: an output that would fit by itself is not said to be longer than the budget.
func TestBudgetBesideWindow(t *testing.T) {
	w := newWorld(t, album())
	texts, _ := w.call(t, "execute_pipeline", map[string]any{"max_output": 1000, "pipeline": json.RawMessage(
		`[{"type":"command","command":"jq","args":["-nr","\"x\" * 900"]},{"type":"preview"},{"type":"command","command":"tail","args":["-n","+1"]}]`,
	)})
	got := texts[len(texts)-1]
	if !strings.HasPrefix(got, "The output has 901 characters (text, 1 line), more than the ") || !strings.Contains(got, " that the blocks above leave of max_output (1000). ") {
		t.Errorf("got %q", got)
	}
}

// TestShapeOnce: two previews that see the same shape print it once.
func TestShapeOnce(t *testing.T) {
	w := newWorld(t)
	texts, _ := w.call(t, "execute_pipeline", map[string]any{"pipeline": json.RawMessage(
		`[{"type":"command","command":"jq","args":["-n","-c","range(300) | {id: ., name: \"n\\(.)\"}"]},{"type":"preview"},` +
			`{"type":"command","command":"jq","args":["-c","."]},{"type":"preview"},{"type":"command","command":"wc","args":["-l"]}]`,
	)})
	got := strings.Join(texts, "")
	if strings.Count(got, "=== PREVIEW") != 1 || !strings.Contains(got, "Stage 4 sees the same as stage 2.") {
		t.Errorf("got %s", got)
	}
}

// TestBudgetOfAllText: no reply has more text than max_output allows, and it says what is left out.
func TestBudgetOfAllText(t *testing.T) {
	w := newWorld(t, album())
	long := strings.Repeat("x", 50_000)
	windows, lines := "", parttest.Times(1000, 3000) // the windows all see something else
	for i := range 20 {
		windows += fmt.Sprintf(`{"type":"command","command":"head","args":["-n","%d"]},{"type":"preview","chars":9000},`, lines-1-i)
	}
	rows := `{"type":"command","command":"jq","args":["-n","-c","range(` + strconv.Itoa(lines) + `) | {id: ., name: \"é\\(.)\", (\"k\\(. % 700)\"): 1}"]},`
	for _, tt := range []struct{ name, pipeline, mode, want string }{
		{"windows", `[` + rows + windows + `{"type":"command","command":"wc","args":["-l"]}]`, "run", "not fit in the reply"},
		{"windows and output", `[` + rows + windows + `{"type":"command","command":"tail","args":["-n","+1"]}]`, "run", "more than max_output allows"},
		{"text blocks", `[{"type":"tool","server":"shop","name":"album"}]`, "run", "This text block has "},
		{"plan", `[{"type":"command","command":"jq","args":["-n","\"` + long + `\""]}` + strings.Repeat(`,{"type":"command","command":"sort"}`, 60) + `]`, "check", "not fit in the reply"},
		{"mistakes", `[{"type":"x"}` + strings.Repeat(`,{"type":"comand","command":"jq"}`, 60) + `]`, "run", "more mistakes that do not fit"},
		{"error", `[{"type":"command","command":"jq","args":["-n","error(\"` + strings.Repeat("x", 20_000) + `\")"]}]`, "run", "COMMAND_FAILED"},
	} {
		budgets := []int{1, 300, 1500}
		if parttest.Night() {
			budgets = []int{1, 50, 300, 700, 1500, 4000}
		}
		for _, budget := range budgets {
			texts, result := w.call(t, "execute_pipeline", map[string]any{
				"pipeline": json.RawMessage(tt.pipeline), "mode": tt.mode, "max_output": budget,
			})
			got := strings.Join(texts, "")
			for _, block := range result.Content {
				if r, ok := block.(*mcp.EmbeddedResource); ok {
					got += r.Resource.Text
				}
			}
			if n := utf8.RuneCountInString(got); n > budget || n == 0 {
				t.Errorf("%s, budget %d: %d characters", tt.name, budget, n)
			}
			if budget >= 1500 && !strings.Contains(got, tt.want) {
				t.Errorf("%s, budget %d: the reply lacks %q:\n%s", tt.name, budget, tt.want, got)
			}
			if _, ok := result.Content[0].(*mcp.ImageContent); tt.name == "text blocks" && !ok {
				t.Errorf("budget %d: the image is gone: %T", budget, result.Content[0])
			}
		}
	}
}

// TestCountOfMistakesLeftOut: those shown and those counted are all.
func TestCountOfMistakesLeftOut(t *testing.T) {
	w := newWorld(t)
	got, _ := w.execute(t, `[{"type":"x"}`+strings.Repeat(`,{"type":"x"}`, 49)+`]`, "max_output", 2000)
	shown := strings.Count(got, "INVALID_PIPELINE")
	if want := fmt.Sprintf("and %d more mistakes that ", 50-shown); shown == 0 || !strings.Contains(got, want) {
		t.Errorf("%d mistakes are shown, want also %q:\n%s", shown, want, got)
	}
}
