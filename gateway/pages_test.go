package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// listed is how many items the lists of these tests have.
const listed = 45

// items writes the items from one on, up to n of them, as a JSON array. The ids need all of their digits.
func items(from, n int) string {
	var list []string
	for i := from; i < min(from+n, listed); i++ {
		list = append(list, fmt.Sprintf(`{"id":9007199254740993%02d,"x":1.50}`, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// number reads an argument that may be missing.
func number(args map[string]any, name string, missing int) int {
	if n, err := strconv.Atoi(fmt.Sprint(args[name])); err == nil {
		return n
	}
	return missing
}

// ended writes a value, or null behind the last item.
func ended(next int, value string) string {
	if next >= listed {
		return "null"
	}
	return value
}

// pagedLists are lists as APIs in use page them, ten items at a time.
func pagedLists() []mcptest.Tool {
	list := func(name, properties string, do func(args map[string]any) string) mcptest.Tool {
		return mcptest.Tool{
			Name: name, ReadOnly: true, Schema: `{"type":"object","properties":{` + properties + `},"additionalProperties":false}`,
			Do: func(args map[string]any) (string, error) { return do(args), nil },
		}
	}
	return []mcptest.Tool{
		list("by_page", `"page":{"type":"integer","minimum":1},"per_page":{"type":"integer"}`, func(args map[string]any) string {
			return items((number(args, "page", 1)-1)*10, 10)
		}),
		list("by_offset", `"limit":{"type":"integer"},"offset":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":0}`, func(args map[string]any) string {
			return fmt.Sprintf(`{"total":%d,"rows":%s}`, listed, items(number(args, "offset", 0), 10))
		}),
		list("by_cursor", `"cursor":{"type":"string"}`, func(args map[string]any) string {
			from := number(args, "cursor", 0)
			return fmt.Sprintf(`{"ok":true,"members":%s,"response_metadata":{"next_cursor":%s}}`, items(from, 10), ended(from+10, strconv.Quote(strconv.Itoa(from+10))))
		}),
		list("by_relay", `"first":{"type":"integer"},"after":{"type":["string","null"]}`, func(args map[string]any) string {
			from := number(args, "after", 0)
			nodes := strings.ReplaceAll(strings.ReplaceAll(items(from, 10), `{"id"`, `{"node":{"id"`), `1.50}`, `1.50}}`)
			return fmt.Sprintf(`{"data":{"all":{"edges":%s,"pageInfo":{"hasNextPage":%v,"endCursor":"%d"}}}}`, nodes, from+10 < listed, from+10)
		}),
		list("by_url", `"page":{"type":"number"}`, func(args map[string]any) string {
			page := number(args, "page", 1)
			next := fmt.Sprintf(`"https://api.example.com/things?page=%d&size=10"`, page+1)
			return fmt.Sprintf(`{"count":%d,"next":%s,"results":%s}`, listed, ended(page*10, next), items((page-1)*10, 10))
		}),
		list("by_last_id", `"starting_after":{"type":"string"}`, func(args map[string]any) string {
			id := fmt.Sprint(args["starting_after"])
			from := 0
			if len(id) > 2 && id != "<nil>" {
				from, _ = strconv.Atoi(id[len(id)-2:])
				from++
			}
			return fmt.Sprintf(`{"data":%s,"has_more":%v}`, items(from, 10), from+10 < listed)
		}),
	}
}

// TestPages pages lists of every kind through gateway, server and sandbox: all items arrive, each digit of
// them.
func TestPages(t *testing.T) {
	w := newWorld(t, pagedLists()...)
	all := strings.ReplaceAll(items(0, listed), "},{", "},\n{") + "\n"
	tests := []struct {
		tool, paginate string
		calls          int
	}{
		{"by_page", `true`, 6},
		{"by_offset", `true`, 6},
		{"by_cursor", `true`, 5},
		{"by_relay", `true`, 5},
		{"by_url", `true`, 5},
		{"by_last_id", `{"next":".data[-1].id","while":".has_more"}`, 5},
		{"by_relay", `{"next":".data.all.pageInfo.endCursor","while":".data.all.pageInfo.hasNextPage","items":".data.all.edges[].node"}`, 5},
	}
	for _, test := range tests {
		t.Run(test.tool, func(t *testing.T) {
			stage := fmt.Sprintf(`{"type":"tool","server":"shop","name":%q,"paginate":%s}`, test.tool, test.paginate)
			before := w.shop.Calls(test.tool)
			text := runText(t, w, "["+stage+"]")
			if !strings.HasSuffix(text, all) {
				t.Errorf("got %s\nwant %s", text, all)
			}
			if calls := w.shop.Calls(test.tool) - before; calls != test.calls {
				t.Errorf("%d calls, want %d", calls, test.calls)
			}
		})
	}
}

// TestPagesEarlyStop: a reader that has enough ends the paging, and the call that runs. The tool does not answer the third.
func TestPagesEarlyStop(t *testing.T) {
	w := newWorld(t, mcptest.Tool{
		Name: "endless", ReadOnly: true, Schema: `{"type":"object","properties":{"page":{"type":"integer"}}}`,
		Raw: func(ctx context.Context, args json.RawMessage) (string, error) {
			var page struct{ Page int }
			if err := json.Unmarshal(args, &page); err != nil {
				return "", err
			}
			if page.Page > 2 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return fmt.Sprintf(`{"content":[{"type":"text","text":"[%d]"}]}`, page.Page), nil
		},
	})
	text := runText(t, w, `[{"type":"tool","server":"shop","name":"endless","paginate":true,"collect":"lines"},
		{"type":"command","command":"head","args":["-n","1"]}]`)
	if !strings.HasSuffix(text, "1\n") || w.shop.Calls("endless") > 3 {
		t.Errorf("got %q after %d calls, want 1 after at most 3", text, w.shop.Calls("endless"))
	}
	within(t, "no call runs", func() bool { return w.shop.Running() == 0 })
}

// runText runs a pipeline and returns the text of the reply.
func runText(t *testing.T, w *world, pipeline string) string {
	t.Helper()
	text, result := w.execute(t, pipeline)
	if result.IsError {
		t.Fatal(text)
	}
	return text
}

// wrongPages is one row of testdata/wrong_pages.json: a paginate with a mistake, and what an agent reads.
type wrongPages struct {
	Paginate json.RawMessage `json:"paginate"`
	Reply    string          `json:"reply"`
}

// TestWrongPages: the error of a mistake in a paginate names the field and says what to write there; the stage that it
// proposes is right.
func TestWrongPages(t *testing.T) {
	const file = "testdata/wrong_pages.json"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows []wrongPages
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, pagedLists()...)
	deps := stages.Deps{Tools: w.pool, Commands: sharedSandbox(t), Schemas: schemas.Stages()}
	for i, row := range rows {
		plan := fmt.Sprintf(`[{"type":"tool","server":"shop","name":"by_cursor","paginate":%s}]`, row.Paginate)
		_, errs := stages.Compile(t.Context(), []byte(plan), deps)
		got := gateway.PlanErrorText(errs)
		if os.Getenv("UPDATE") != "" {
			rows[i].Reply = got
		} else if diff := cmp.Diff(row.Reply, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", row.Paginate, diff)
		}
		if len(errs) == 0 || strings.Contains(got, "stage looks like") || strings.Contains(got, `"args"`) {
			t.Errorf("%s: nothing to do about it, or nonsense:\n%s", row.Paginate, got)
		}
		for _, e := range errs {
			if len(errs) > 1 || e.Fix == nil {
				continue
			}
			if _, wrong := stages.Compile(t.Context(), []byte("["+string(e.Fix)+"]"), deps); wrong != nil {
				t.Errorf("%s: what is proposed is wrong too: %v", row.Paginate, wrong)
			}
		}
	}
	if os.Getenv("UPDATE") != "" {
		writeJSONRows(t, file, rows)
	}
}
