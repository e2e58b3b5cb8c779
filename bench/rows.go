package main

import (
	"context"
	"slices"
	"time"
)

// A row is one comparison.
type row struct {
	name      string
	baseline  string                           // what mcsh is compared with
	goals     []goal                           // figures without a goal are there to be read
	reference string                           // the ratio of the Python gateway of the same idea, where it is known
	long      bool                             // too long to be repeated: measured once in five runs
	needs     []string                         // programs of the baseline
	lacks     func(ctx context.Context) string // why it cannot be measured, if so

	open opener
}

// An opener gets both sides of a comparison ready.
type opener func(ctx context.Context, b *bench) (pair, error)

// A goal is a bound on a figure's ratio to its baseline, or on its value where it has no baseline.
type goal struct {
	figure  string
	limit   float64
	atLeast bool // otherwise at most
	worst   bool // of all runs, not of their median
}

func most(figure string, limit float64) goal  { return goal{figure: figure, limit: limit} }
func never(figure string, above float64) goal { return goal{figure: figure, limit: above, worst: true} }

func least(figure string, limit float64) goal {
	return goal{figure: figure, limit: limit, atLeast: true}
}

// sizes say how much work a row does.
type sizes struct {
	calls   int           // tool calls one after another
	chains  int           // pipelines with commands, one after another
	latency time.Duration // of the tool that takes its time
	items   int           // items for that tool
	many    int           // items of which only the first are wanted
	lines   int           // items of a command
	quick   int           // items of a tool that answers at once
	big     int64         // bytes through mcsh run
	bulk    int64         // bytes of the largest result of a tool
	piped   int64         // bytes through the commands of one chain
	shape   int64         // bytes to preview
	files   int           // of a tree
	small   int           // files to read
	edited  int           // bytes of a file
	entries int           // of one directory
}

func fullSizes() sizes {
	return sizes{
		calls: 500, chains: 50, latency: 20 * time.Millisecond, items: 1000, many: 10_000, lines: 500, quick: 20_000,
		big: 1 << 30, bulk: 50 << 20, piped: 100 << 20, shape: 200 << 20,
		files: 50_000, small: 10_000, edited: 10e6, entries: 1_000_000,
	}
}

const (
	direct   = "the same call by a go-sdk client"
	reading  = "the same resource, read by a go-sdk client"
	sdk32    = "the same calls by a go-sdk client, 32 in flight"
	shell    = "the same programs in a pipe of bash, with C jq and GNU grep"
	rss      = "gateway's peak RSS"
	held     = 64e6 // what the gateway may hold while any amount passes it
	pooled   = "goroutines that take items from a channel and call the same function"
	sequence = "as many processes started with os/exec, 8 at a time"
)

// rows is the table.
func rows() []row {
	list := []row{
		{
			name: "one call, in memory", baseline: direct, open: callInMemory,
			goals: []goal{most("p50", 3), most("CPU", 3)},
		},
		{
			name: "one call, stdio", baseline: direct, open: callOver(overStdio),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one call, HTTP with sessions", baseline: direct, reference: "110x", open: callOver(overHTTP(sessionEra)),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one call, stateless HTTP", baseline: direct, open: callOver(overHTTP(statelessEra)),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one exposed tool, stdio", baseline: direct, open: exposedOver(overStdio),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one exposed tool, HTTP with sessions", baseline: direct, open: exposedOver(overHTTP(sessionEra)),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one exposed tool, stateless HTTP", baseline: direct, open: exposedOver(overHTTP(statelessEra)),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one resource, stdio", baseline: reading, open: readOver(overStdio),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one resource, HTTP with sessions", baseline: reading, open: readOver(overHTTP(sessionEra)),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "one resource, stateless HTTP", baseline: reading, open: readOver(overHTTP(statelessEra)),
			goals: []goal{most("p50", 2), most("CPU", 2)},
		},
		{
			name: "tool and a new jq, HTTP with sessions", baseline: direct, reference: "145x", open: callChain(sessionEra),
			goals: []goal{most("p50", 4)},
		},
		{
			name: "tool and a new jq, stateless HTTP", baseline: direct, open: callChain(statelessEra),
			goals: []goal{most("p50", 4)},
		},
		{
			name: "tool and a new jq, grep, sort, head, HTTP with sessions", baseline: direct, reference: "80x",
			open:  callChain(sessionEra, command("grep", "1"), command("sort", "-r"), command("head", "-n", "3")),
			goals: []goal{most("p50", 6)},
		},
		{
			name: "tool and a new jq, grep, sort, head, stateless HTTP", baseline: direct,
			open:  callChain(statelessEra, command("grep", "1"), command("sort", "-r"), command("head", "-n", "3")),
			goals: []goal{most("p50", 6)},
		},
		{
			name: "for_each of 200 calls of 20 ms, HTTP with sessions", baseline: sdk32, open: eachOver(overHTTP(sessionEra), 200, 32),
			goals: []goal{most("p50", 1.05)},
		},
		{
			name: "for_each of 200 calls of 20 ms, stateless HTTP", baseline: sdk32, open: eachOver(overHTTP(statelessEra), 200, 32),
			goals: []goal{most("p50", 1.05)},
		},
		{name: "head -n 3 behind for_each, 8 at once", baseline: promise, open: earlyStop(8), goals: []goal{never("calls", 1)}},
		{name: "head -n 3 behind for_each, 32 at once", baseline: promise, open: earlyStop(32), goals: []goal{never("calls", 1)}},
		{
			name: "for_each of sha256sum, by processes", baseline: sequence, needs: []string{"sha256sum"}, open: eachProcess("sha256sum", "--binary"),
			goals: []goal{most("time", 1.5), most("CPU", 1.5)},
		},
		{
			name: "for_each of jq, by processes", baseline: sequence, needs: []string{"jq"}, open: eachProcess("jq", "-c", ".id"),
			goals: []goal{most("time", 1.5), most("CPU", 1.5)},
		},
		{
			name: "for_each of tr, by one call", baseline: "one direct call of a tool over HTTP, for all the lines", reference: "7,000x to 8,700x", open: eachCall("tr", "a-z", "A-Z"),
			goals: []goal{most("time", 30)},
		},
		{
			name: "for_each of jq, by one call", baseline: "one direct call of a tool over HTTP, for all the lines", reference: "7,000x to 8,700x", open: eachCall("jq", "-c", ".id"),
			goals: []goal{most("time", 30)},
		},
		{
			name: "engine, one stage an item", baseline: pooled, open: engine(1),
			goals: []goal{most("allocations/item", 20)},
		},
		{
			name: "engine, three stages an item", baseline: pooled, open: engine(3),
			goals: []goal{most("allocations/item", 40)},
		},
		{
			name: "stream: grep, cut, tail", baseline: shell, long: true, needs: shellNeeds, open: stream(
				command("grep", "error"), command("cut", "-d,", "-f1,3"), command("tail", "-n", "1")),
			goals: []goal{never(rss, held), least("MB/s", 0.5)},
		},
		{
			name: "stream: jq, grep, tail", baseline: shell, long: true, needs: shellNeeds, open: stream(
				command("jq", "-c", "{id, level, ms}"), command("grep", "error"), command("tail", "-n", "1")),
			goals: []goal{never(rss, held), least("MB/s", 0.8)},
		},
		{
			name: "stream: jq, grep, head", baseline: shell, long: true, needs: shellNeeds, open: stream(
				command("jq", "-c", "{id, level, ms}"), command("grep", "error"), command("head", "-n", "3")),
			goals: []goal{never(rss, held)},
		},
		{
			name: "stream: one array, jq, tail", baseline: "64 MB, for an array of any size", long: true, open: oneArray(".[] | .ms"),
			goals: []goal{never(jailedRSS, 1), never(rss, held)},
		},
		{
			name: "2,000 pipelines that wait at once", baseline: "the time that the tool takes", long: true, open: atOnceRuns(2000),
			goals: []goal{most("time", 1.5)},
		},
		{
			name: "10,000 idle sessions", baseline: "30 KB each, and 503 for one more", long: true, open: openSessions,
			goals: []goal{most(perSession, 1), least(oneMore, 1)},
		},
		{
			name: "20 MB, its first line, HTTP", baseline: "the same call by a go-sdk client, which receives all", reference: "0.8x",
			open: firstLine(20 << 20), goals: []goal{most("p50", 0.6), never(rss, held)},
		},
		{
			name: "stream: window, tail", baseline: "tail alone, without a look at the data", long: true, needs: shellNeeds,
			open: stream(step{"type": "preview"}, command("tail", "-n", "1")), goals: []goal{never(rss, held)},
		},
		{
			name: "stream that is kept: grep", baseline: "the same without keeping what comes out", open: recorded(command("grep", "-v", "nowhere")),
			goals: []goal{least("MB/s", 0.6)},
		},
		{
			name: "preview of one JSON array", baseline: tokens, long: true, open: shape(true),
			goals: []goal{least("MB/s of CPU", 4), never(peakMemory, held)},
		},
		{
			name: "preview of JSON lines", baseline: tokens, long: true, open: shape(false),
			goals: []goal{least("MB/s of CPU", 4), never(peakMemory, held)},
		},
	}
	return slices.Concat(list, paceRows(), upstreamRows(), replicaRows(), sandboxRows(), fileRows(), pipeRows())
}
