package stages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// pagingPage is the document whose tables this file makes.
const pagingPage = "../docs/paging.md"

// TestPagingPage compares the tables of the document with the conventions, and with what paginate makes of the tools of
// real servers. UPDATE=1 writes them.
func TestPagingPage(t *testing.T) {
	data, err := os.ReadFile(pagingPage)
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	for name, table := range map[string]string{"conventions": conventionsTable(), "tools": recordedTable(t)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		head, rest, ok := strings.Cut(want, begin)
		_, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the %s", pagingPage, name)
		}
		want = head + begin + table + end + tail
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(pagingPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(data) {
		t.Errorf("%s is not what the code says; UPDATE=1 writes it: (-want +got)\n%s", pagingPage, cmp.Diff(want, string(data)))
	}
}

func conventionsTable() string {
	var b strings.Builder
	names, counts := stages.PageArguments()
	for i, name := range names {
		names[i] = "`" + name + "`"
		if counts[i] != "" {
			names[i] += " (counts " + counts[i] + ")"
		}
	}
	quoted := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	fmt.Fprintf(&b, "| part | names, in order of preference |\n|---|---|\n")
	fmt.Fprintf(&b, "| argument | %s |\n", strings.Join(names, ", "))
	fmt.Fprintf(&b, "| next | %s |\n", quoted(stages.NextNames()))
	fmt.Fprintf(&b, "| items, beside next | %s |\n", quoted(stages.ItemNames()))
	return b.String()
}

// pagingLike matches arguments of lists that come in parts.
var pagingLike = regexp.MustCompile(`(?i)^(page(idx|_?size)?|per_?page|start_cursor|start|limit|offset|skip)$`)

// otherForms are the object forms for arguments that no convention names.
var otherForms = []struct{ arg, form string }{
	{"start_cursor", `{"arg":"start_cursor"}`},
	{"pageIdx", `{"arg":"pageIdx","start":0}`},
}

// packages are where the recorded servers come from: several servers have one name.
var packages = map[string]string{
	"chromedt": "npm chrome-devtools-mcp", "dbhub": "npm @bytebase/dbhub", "git": "npm @cyanheads/git-mcp-server",
	"github": "npm @modelcontextprotocol/server-github", "grafana": "Go grafana/mcp-grafana", "mongodb": "npm mongodb-mcp-server",
	"notion": "npm @notionhq/notion-mcp-server",
}

// recordedTable says of every recorded tool with a paging argument how it is paged.
func recordedTable(t *testing.T) string {
	t.Helper()
	var hints map[string]map[string][]string
	data, err := os.ReadFile("testdata/annotated.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &hints); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../schemas/testdata/tools/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded tools: %v", err)
	}
	var b strings.Builder
	b.WriteString("| server, by its package | tool | `paginate` |\n|---|---|---|\n")
	total, paged := 0, 0
	for _, file := range files {
		server := strings.TrimSuffix(filepath.Base(file), ".json")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tools []struct {
			Name        string
			InputSchema json.RawMessage
		}
		if err := json.Unmarshal(data, &tools); err != nil {
			t.Fatal(err)
		}
		for _, recorded := range tools {
			total++
			said, err := schemas.Describe(schemas.NewSteps(t.Context(), 1<<20), recorded.Name, recorded.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			in := said.Input
			in.Check = schemas.NewCache(1<<20, nil, schemas.Limits{}).Check(recorded.InputSchema)
			reads := slices.Contains(hints[server]["reads"], recorded.Name)
			w := newWorld()
			w.tools["list"] = &tool{info: stages.Tool{
				Server: "demo", Name: recorded.Name, Input: in, Signature: recorded.Name,
				Annotated: reads || slices.Contains(hints[server]["changes"], recorded.Name), ReadOnly: reads,
			}}
			if how := w.howPaged(t, in); how != "" {
				paged++
				name, ok := packages[server]
				if !ok {
					t.Fatalf("the package of %s is not named", server)
				}
				fmt.Fprintf(&b, "| %s | %s | %s |\n", name, recorded.Name, how)
			}
		}
	}
	fmt.Fprintf(&b, "\nOf %d tools of %d servers %d have an argument that looks like paging; the others return everything at once.\n", total, len(files), paged)
	return b.String()
}

// howPaged says how the tool "list" is paged; nothing, if it has no argument that looks like it.
func (w *world) howPaged(t *testing.T, in stages.Input) string {
	t.Helper()
	try := func(form string) (*stages.Pipeline, []*stages.Error) {
		return stages.CompileFed(t.Context(), []byte(`[{"type":"tool","server":"demo","name":"list","paginate":`+form+`}]`), w.deps())
	}
	p, errs := try("true")
	if errs == nil {
		_, by, _ := strings.Cut(p.Plan().Stages[0].Does, "by ")
		by, _, _ = strings.Cut(by, ",")
		return "`true`, by `" + by + "`"
	}
	if !slices.ContainsFunc(in.Properties, pagingLike.MatchString) && !strings.Contains(errs[0].Msg, "again and again") {
		return ""
	}
	for _, other := range otherForms {
		if !slices.Contains(in.Properties, other.arg) {
			continue
		}
		if _, errs := try(other.form); errs == nil {
			return "`" + other.form + "`"
		}
	}
	names, _ := stages.PageArguments()
	pages := func(name string) bool {
		return slices.Contains(names, name) || name == "start_cursor" || name == "pageIdx"
	}
	switch {
	case slices.ContainsFunc(in.Properties, pages):
		return "no: the server does not say that it only reads"
	case slices.ContainsFunc(in.Properties, pagingLike.MatchString):
		return "no: it returns one part, of the requested size"
	}
	return ""
}
