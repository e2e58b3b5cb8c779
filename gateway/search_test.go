//go:build !race

package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// TestSearchQueries holds the ranking to queries over the tools of 18 real servers. The score is the mean over all
// queries of 1/rank of the first wanted tool. All the queries were written from the tool lists. Those of search_blind.json
// have never been used to improve the ranking. Nor has any query of search_fresh.json, but its score was seen for three
// tables of synonyms before the last of them was kept.
func TestSearchQueries(t *testing.T) {
	listings := searchedServers(t)
	for file, least := range map[string]float64{"search.json": 0.91, "search_heldout.json": 0.87, "search_more.json": 0.81, "search_blind.json": 0.62, "search_fresh.json": 0.67} {
		var queries []struct {
			Query string
			Want  []string
		}
		readJSON(t, "testdata/"+file, &queries)
		sum := 0.0
		for _, q := range queries {
			found := gateway.Search(listings, q.Query)
			at := slices.IndexFunc(found, func(f gateway.ListedTool) bool { return slices.Contains(q.Want, f.Server+"/"+f.Tool.Name) })
			if at >= 0 {
				sum += 1 / float64(at+1)
			}
			if at != 0 {
				var first []string
				for _, f := range found[:min(3, len(found))] {
					first = append(first, f.Server+"/"+f.Tool.Name)
				}
				t.Logf("%q: %v at %d, after %v", q.Query, q.Want, at+1, first)
			}
		}
		if score := sum / float64(len(queries)); score < least {
			t.Errorf("%s: %d queries score %.3f, want at least %.2f", file, len(queries), score, least)
		} else {
			t.Logf("%s: %.3f", file, score)
		}
	}
}

// TestSearchNames holds the ranking to plain queries: the words of a tool's name find it.
func TestSearchNames(t *testing.T) {
	listings := searchedServers(t)
	first, all := 0, 0
	for _, server := range listings {
		for _, tool := range server.Tools {
			found := gateway.Search(listings, strings.NewReplacer("_", " ", "-", " ").Replace(tool.Name))
			if all++; len(found) > 0 && found[0].Tool.Name == tool.Name {
				first++
			} else if !slices.ContainsFunc(found[:min(3, len(found))], func(f gateway.ListedTool) bool { return f.Tool.Name == tool.Name }) {
				t.Logf("%s is not among the first three", tool.Name)
			}
		}
	}
	if float64(first) < 0.95*float64(all) {
		t.Errorf("%d of %d tools come first for the words of their name", first, all)
	}
	t.Logf("%d of %d", first, all)
}

// searchedServers are the recorded servers and those of search_tools.json.
func searchedServers(t testing.TB) []upstream.Listing {
	t.Helper()
	servers, _ := recordedServers(t)
	var more map[string][]struct {
		Name, Description string
		InputSchema       json.RawMessage
	}
	readJSON(t, "testdata/search_tools.json", &more)
	for server, tools := range more {
		var list []mcptest.Tool
		for _, r := range tools {
			list = append(list, mcptest.Tool{Name: r.Name, Description: r.Description, Schema: string(r.InputSchema)})
		}
		servers[server] = mcptest.New(list...)
	}
	return mcptest.Pool(t, servers).Catalog(t.Context())
}

// BenchmarkSearch searches 5,000 tools with the descriptions of real ones.
func BenchmarkSearch(b *testing.B) {
	listings := searchedServers(b)
	known, all := len(listings), 0
	for _, l := range listings {
		all += len(l.Tools)
	}
	for i := 0; all < 5000; i++ {
		l := listings[i%known]
		l.Server = fmt.Sprint(l.Server, i/known)
		all += len(l.Tools)
		listings = append(listings, l)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(gateway.Search(listings, "close an issue of a repository")) < 100 {
			b.Fatal("it finds too little")
		}
	}
}
