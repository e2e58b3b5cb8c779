package quality

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Set is data like what tools return.
type Set struct {
	Name  string
	Data  string
	Lines bool     // one document a line
	Text  bool     // no JSON
	Maps  []string // paths of objects whose keys are data

	// Again has the paths where a structure begins again that is known from another path.
	Again map[string]string
}

//go:embed recorded
var recorded embed.FS

// Sets returns the data sets: the same in every run.
func Sets() []Set {
	rng := func() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }
	return []Set{
		{Name: "issues", Data: issues(rng())},
		{Name: "pokemon", Data: pokemon(rng())},
		{Name: "pods", Data: pods(rng())},
		{Name: "events", Data: events(rng()), Lines: true},
		{Name: "map of users", Data: users(rng()), Maps: []string{`."users"`}},
		{Name: "unions", Data: unions(rng())},
		{Name: "geo", Data: geo(rng())},
		{Name: "late field", Data: late()},
		{Name: "search results", Data: search(rng())},
		{Name: "file tree", Data: tree(rng()), Again: map[string]string{`."children"[]`: ""}},
		{Name: "metrics", Data: metrics(rng())},
		{Name: "tools of grafana", Data: read("grafana_tools.json"), Maps: schemaMaps(`[]`)},
		{Name: "tools of notion", Data: read("notion_tools.json"), Maps: schemaMaps(`[]`)},
		{Name: "tools of playwright", Data: read("playwright_tools.json"), Maps: schemaMaps(`."tools"[]`)},
		{Name: "orders.csv", Data: orders(rng()), Text: true},
		{Name: "app.log", Data: log(rng()), Text: true},
		{Name: "page snapshot", Data: read("page_snapshot.txt"), Text: true},
		{Name: "page tree", Data: read("page_tree.txt"), Text: true},
	}
}

// schemaMaps are the maps in the schemas of tools.
func schemaMaps(tool string) []string {
	return []string{tool + `."inputSchema"."properties"`}
}

func read(name string) string {
	data, err := recorded.ReadFile("recorded/" + name)
	if err != nil {
		panic(fmt.Sprint("a recorded result is missing: ", err)) // it is part of the program
	}
	return string(data)
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// often returns v in so many of a hundred cases, else other.
func often(rng *rand.Rand, percent int, v, other any) any {
	if rng.IntN(100) < percent {
		return v
	}
	return other
}

var words = strings.Fields("stage leak timeout cancel buffer parse schema upload worker session index cache token render " +
	"plugin path error retry budget stream window filter socket header cursor batch queue deadline build file")

func sentence(rng *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = words[rng.IntN(len(words))]
	}
	return strings.Join(list, " ")
}

func hex(rng *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%016x", rng.Uint64())
	}
	return b.String()[:n]
}

func uuid(rng *rand.Rand) string {
	return hex(rng, 8) + "-" + hex(rng, 4) + "-" + hex(rng, 4) + "-" + hex(rng, 4) + "-" + hex(rng, 12)
}

func moment(rng *rand.Rand) string {
	return fmt.Sprintf("2024-%02d-%02dT%02d:%02d:%02dZ", 1+rng.IntN(12), 1+rng.IntN(28), rng.IntN(24), rng.IntN(60), rng.IntN(60))
}

func many(n int, make func(i int) any) []any {
	list := []any{}
	for i := range n {
		list = append(list, make(i))
	}
	return list
}
