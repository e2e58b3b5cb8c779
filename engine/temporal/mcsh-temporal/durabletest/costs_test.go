package durabletest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Flags of [TestCosts].
var (
	measure = flag.Int("measure", 0, "measure the costs of durable runs so often, at full size, and write them to "+costsFile)
	shared  = flag.Bool("shared", false, "note that others use the machine meanwhile")
)

const (
	costsFile = "RESULTS.md"
	mostTime  = time.Hour // of one run
)

// A cost is a quantity, or its ratio to a base that was measured in turn with it.
type cost struct {
	what, unit string
	goal       float64 // of the ratio, or of the quantity that has no base; 0: none
	atLeast    bool    // otherwise at most
	ours, base []float64
}

// values returns what the goal is about, for each time it was measured, in order of size.
func (c *cost) values() []float64 {
	list := slices.Clone(c.ours)
	for i, b := range c.base {
		list[i] /= b
	}
	slices.Sort(list)
	return list
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// line is the line of the table.
func (c *cost) line() string {
	values, unit := c.values(), c.unit
	cells := []string{c.what, fmt.Sprintf("%.4g %s", median(c.ours), c.unit), "", "", "", "", ""}
	if c.base != nil {
		unit = "x"
		cells[2], cells[3] = fmt.Sprintf("%.4g %s", median(c.base), c.unit), fmt.Sprintf("%.3g x", median(values))
	}
	cells[4] = fmt.Sprintf("%.4g to %.4g %s", values[0], values[len(values)-1], unit)
	if c.goal > 0 {
		sign, met := "≤", median(values) <= c.goal
		if c.atLeast {
			sign, met = "≥", median(values) >= c.goal
		}
		cells[5], cells[6] = fmt.Sprintf("%s %g %s", sign, c.goal, unit), map[bool]string{true: "yes", false: "no"}[met]
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// costs are measured in a world.
type costs struct {
	*world
	table []*cost
}

// add adds to a row what was measured once more. Without a base it is 0.
func (c *costs) add(row cost, ours, base float64) {
	i := slices.IndexFunc(c.table, func(known *cost) bool { return known.what == row.what })
	if i < 0 {
		i = len(c.table)
		c.table = append(c.table, &row)
	}
	known := c.table[i]
	known.ours = append(known.ours, ours)
	if base > 0 {
		known.base = append(known.base, base)
	}
	c.Log(strings.TrimSpace(known.line()))
}

// TestCosts measures durable runs, and runs that are spread over workers, with new processes for each side of a comparison. Without
// -measure it does little, so that the measurements keep working.
func TestCosts(t *testing.T) {
	few, many, late, small := 2500, 5000, 2500, 3
	if *measure > 0 {
		few, many, late, small = 10_000, 1_000_000, 40_000, 50
	}
	c := &costs{world: newWorld(t)}
	for range max(*measure, 1) {
		alone := c.alone(many)
		spread := c.memory("spread", many, false)
		c.add(cost{what: fmt.Sprintf("%d items of no work: spread over 1 worker, and in 1 gateway", many), unit: "s", goal: 2.5}, spread, alone)
		c.memory("spread", few, false)
		faster := c.memory("spread, GOGC=400", many, false, "GOGC=400")
		c.add(cost{what: fmt.Sprintf("%d items of no work, spread: by default, and with GOGC=400", many), unit: "s"}, spread, faster)
		c.memory("spread, GOGC=400", few, false, "GOGC=400")
		c.memory("durable", many, true)
		c.memory("durable", few, true)
		one, four := c.workers(1, late), c.workers(4, late)
		row := cost{what: fmt.Sprintf("%d items of 20 ms: 1 worker, and 4, with 8 calls at once each", late), unit: "s", goal: 3.5, atLeast: true}
		c.add(row, one, four)
		c.small(small)
	}
	text := c.markdown()
	t.Log(text)
	if *measure > 0 {
		fine(t, os.WriteFile(costsFile, []byte(text), 0o644))
	}
}

// costServers is the server of the tool that waits: each gateway has its own in its process.
var costServers = object{"demo": object{"builtin": "demo", "sticky": false}}

// costFlags allow runs that are measured.
var costFlags = []string{"--limit", "items=10000000,calls=10000000,run=" + mostTime.String()}

// alone returns how many seconds items take in a gateway that has no workers and no store.
func (c *costs) alone(items int) float64 {
	at := c.serve(costServers, costFlags...)
	defer at.kill()
	return c.items(at, items, 0, false)
}

// workers returns how many seconds items of 20 ms take that are spread over so many workers.
func (c *costs) workers(n, items int) float64 {
	front := c.gatewayOf(costServers, 0, costFlags...)
	defer front.kill()
	for range n {
		defer c.gatewayOf(costServers, 1, costFlags...).kill()
	}
	return c.items(front, items, 20, false)
}

// memory adds the peak RSS of a gateway and its worker, and returns how many seconds the items took.
func (c *costs) memory(how string, items int, durable bool, env ...string) float64 {
	c.env = env
	defer func() { c.env = nil }()
	front, worker := c.gatewayOf(costServers, 0, costFlags...), c.gatewayOf(costServers, 4, costFlags...)
	defer front.kill()
	defer worker.kill()
	took := c.items(front, items, 0, durable)
	for _, p := range []struct {
		name string
		*process
		most float64
	}{{"gateway", front, 100}, {"worker", worker, 150}} {
		c.add(cost{what: fmt.Sprintf("peak RSS of the %s: %d items, %s", p.name, items, how), unit: "MB", goal: p.most}, c.peak(p.process), 0)
	}
	return took
}

// peak returns the most memory that a process has had, in MB.
func (c *costs) peak(p *process) float64 {
	c.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	fine(c.T, err)
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib float64
	_, err = fmt.Sscan(peak, &kib)
	fine(c.T, err)
	return kib * 1024 / 1e6
}

// items calls the tool for so many items, and returns how many seconds that took.
func (c *costs) items(at *process, items, ms int, durable bool) float64 {
	c.Helper()
	a, begun := c.agent(at), time.Now()
	pipeline := fmt.Sprintf(`[{"type":"command","command":"jq","args":["-n","-c","range(%d) | {ms: %d}"]},
		{"type":"tool","server":"demo","name":"slow","for_each":true,"distinct":false,"collect":"lines"},
		{"type":"command","command":"wc","args":["-l"]}]`, items, ms)
	var text string
	var failed bool
	if durable {
		select {
		case r := <-a.await(a.submit(pipeline)):
			fine(c.T, r.err)
			text, failed = r.text, r.failed
		case <-time.After(mostTime):
			c.Fatalf("the run has not ended after %s", mostTime)
		}
	} else {
		var err error
		text, failed, err = a.callFor(mostTime, pipeline, object{"timeout": mostTime.Seconds()})
		fine(c.T, err)
	}
	took := time.Since(begun).Seconds()
	if failed || !slices.Contains(strings.Split(text, "\n"), fmt.Sprint(items)) {
		c.Fatalf("got %.500s, want a line %d", text, items)
	}
	return took
}

// small compares runs of one call that are durable with the same runs that are not, of the same gateway, in turn.
func (c *costs) small(times int) {
	front := c.gatewayOf(costServers, 0, costFlags...)
	defer front.kill()
	defer c.gatewayOf(costServers, 4, costFlags...).kill()
	a := c.agent(front)
	var took [2][]float64
	for range times {
		for i, durable := range []bool{true, false} {
			begun := time.Now()
			text, failed, err := a.call(`[{"type":"tool","server":"demo","name":"slow","args":{"ms":0}}]`, object{"durable": durable})
			fine(c.T, err)
			took[i] = append(took[i], time.Since(begun).Seconds()*1e3)
			if failed || !strings.Contains(text, "waited_ms") {
				c.Fatalf("the run has failed: %s", text)
			}
		}
	}
	c.add(cost{what: "a run of one call: durable, and not", unit: "ms"}, median(took[0]), median(took[1]))
}

// markdown is the whole table.
func (c *costs) markdown() string {
	var b strings.Builder
	machine := ""
	if *shared {
		machine = "\nMeasured on a shared machine, at the same time as other work."
	}
	fmt.Fprintf(&b, costsHead, *measure, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, machine)
	for _, row := range c.table {
		b.WriteString(row.line())
	}
	return b.String()
}

const costsHead = `# Durable runs, measured

Made by ` + "`go -C engine/temporal/mcsh-temporal test ./durabletest -run '^TestCosts$' -measure %d -timeout 12h -v`" + ` with %d CPUs, %s, %s/%s.%s

Processes of their own: Temporal's server on SQLite, gateway and workers, which share a store in a directory. The tool is in the process that
calls it. Sides of a comparison run in turn with new processes. Figures and ratios are medians; the range is that of the ratio, or of a figure
without one. Compare ratios: times are those of one machine, on which all of these processes share the CPUs. *Spread*: an ordinary run, whose
gateway gives items to a worker. *Durable*: the worker does the whole run.

| row | figure | base | ratio | range | goal | met |
|---|---|---|---|---|---|---|
`
