package cli

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// limits bound a run and the process. The operator sets them.
type limits struct {
	stages.Limits
	gateway          gateway.Options  // Runs, CallerRuns, AddressRuns and HTTP
	upstream         upstream.Options // ResultMax, Tools and ToolList
	schemas          schemas.Limits
	conns, addrConns int           // over HTTP at once
	check            time.Duration // processor time of one check of a command
	checkMemory      int64         // bytes
}

// withDefaults returns l with every zero field set to its default.
func (l limits) withDefaults() limits {
	l.Limits = l.Limits.WithDefaults()
	for _, row := range limitTable {
		if field := row.field(&l); field.IsZero() {
			field.SetInt(row.value)
		}
	}
	l.gateway.AddressRuns = cmp.Or(l.gateway.AddressRuns, max(1, l.gateway.Runs-l.gateway.Runs/4))
	return l
}

const defaultResult = 64 << 20

// A limit is a row of the table.
type limit struct {
	name, meaning string
	value         int64             // the default; 0: of [stages.Limits], or derived
	at            func(*limits) any // *int: a number, *int64: bytes, *time.Duration
}

// mostOf are the largest values of limits that no run could use more of with any memory.
var mostOf = map[string]int64{"check-memory": sandbox.Memory}

func (r limit) field(l *limits) reflect.Value { return reflect.ValueOf(r.at(l)).Elem() }

// limitTable lists the limits of --limit.
var limitTable = []limit{
	{"stages", "stages of a pipeline, nested ones included", 0, func(l *limits) any { return &l.Stages }},
	{"nesting", "stages within stages", 0, func(l *limits) any { return &l.Nesting }},
	{"items", "items of one for_each", 0, func(l *limits) any { return &l.Items }},
	{"calls", "tool calls of a run", 0, func(l *limits) any { return &l.Calls }},
	{"run", "time of a run; a call may ask for less", 0, func(l *limits) any { return &l.Run }},
	{"durable-items", "items of one for_each of a durable run", gateway.DefaultDurableItems, func(l *limits) any { return &l.gateway.Durable.Items }},
	{"durable-calls", "tool calls of a durable run", gateway.DefaultDurableItems, func(l *limits) any { return &l.gateway.Durable.Calls }},
	{"durable-run", "time of a durable run; a call may ask for less", int64(gateway.DefaultDurableRun), func(l *limits) any { return &l.gateway.Durable.Run }},
	{"call", "time of one tool call", 0, func(l *limits) any { return &l.Call }},
	{"command", "time in which one command has input to process", 0, func(l *limits) any { return &l.Command }},
	{"input", "arguments of one tool call", 0, func(l *limits) any { return &l.Input }},
	{"result", "result of one tool call, such as a page", defaultResult, func(l *limits) any { return &l.upstream.ResultMax }},
	{"item", "one item of a for_each", 0, func(l *limits) any { return &l.Item }},
	{"attempt", "result of one item whose stage has retries", 0, func(l *limits) any { return &l.Attempt }},
	{"waiting", "finished results that wait for a slower item before them; beyond it no further item starts", 0, func(l *limits) any { return &l.Waiting }},
	{"shared", "results that a run keeps for equal calls; the oldest are evicted", 0, func(l *limits) any { return &l.Shared }},
	{"held", "memory that a run holds", 0, func(l *limits) any { return &l.Held }},
	{"spool", "data of a run that waits on disk for a later stage", 0, func(l *limits) any { return &l.Spool }},
	{"workspace", "bytes that tee writes to the workspace in one run or one call of pipe, with the copies in `.mcsh/audit`", 0, func(l *limits) any { return &l.Workspace }},
	{"workspace-total", "bytes that tee has written to the workspace since its beginning, with the copies; the count survives restarts", 0, func(l *limits) any { return &l.WorkspaceTotal }},
	{"runs", "runs at once in the process", gateway.DefaultRuns, func(l *limits) any { return &l.gateway.Runs }},
	{"caller-runs", "runs at once of one named caller, or of the client on standard input", gateway.DefaultCallerRuns, func(l *limits) any { return &l.gateway.CallerRuns }},
	{"address-runs", "runs at once of one address without authentication, except the loopback address; the rest is reserved for addresses without a run", 0, func(l *limits) any { return &l.gateway.AddressRuns }},
	{"body", "one message over HTTP", gateway.DefaultBody, func(l *limits) any { return &l.gateway.HTTP.Body }},
	{"message", "one message over HTTP other than tools/call; a longer message must name its method within it", gateway.DefaultMessage, func(l *limits) any { return &l.gateway.HTTP.Message }},
	{"sessions", "sessions over HTTP", gateway.DefaultSessions, func(l *limits) any { return &l.gateway.HTTP.Sessions }},
	{"caller-sessions", "sessions of one caller, or of one address without authentication, except the loopback address; a new session ends the least recently used one", gateway.DefaultCallerSessions, func(l *limits) any { return &l.gateway.HTTP.CallerSessions }},
	{"connections", "connections over HTTP at once", defaultConnections, func(l *limits) any { return &l.conns }},
	{"address-connections", "connections over HTTP at once of one address, except the loopback address", defaultAddressConnections, func(l *limits) any { return &l.addrConns }},
	{"check", "processor time for checking the arguments of one command before anything is called", int64(sandbox.DefaultCheck), func(l *limits) any { return &l.check }},
	{"check-memory", "memory of such a check, in the sandbox; at most 512 MiB", sandbox.DefaultCheckMemory, func(l *limits) any { return &l.checkMemory }},
	{"tools", "tools of one server; the gateway reads one page of the list for each hundred of them, and at least 100 pages", upstream.DefaultTools, func(l *limits) any { return &l.upstream.Tools }},
	{"tool-list", "the tool list of one server", upstream.DefaultToolList, func(l *limits) any { return &l.upstream.ToolList }},
	{"schema", "one schema of a tool", schemas.DefaultSchema, func(l *limits) any { return &l.schemas.Schema }},
	{"schema-steps", "steps to compile one schema, and to check arguments once; to describe one tool an eighth of them, to describe all tools of a server twice as many", schemas.DefaultSteps, func(l *limits) any { return &l.schemas.Steps }},
}

func (l *limits) add(cmd *cobra.Command) {
	cmd.Flags().Var(limitFlag{l}, "limit", "a limit, such as items=5000, call=2m or result=128MiB (repeatable): "+limitNames())
	words := convert(limitTable, func(row limit) string { return row.name + "=" })
	_ = cmd.RegisterFlagCompletionFunc("limit", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// limitFlag parses NAME=VALUE[,NAME=VALUE...].
type limitFlag struct{ *limits }

func (f limitFlag) String() string { return "" }
func (f limitFlag) Type() string   { return "NAME=VALUE" }

func (f limitFlag) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=VALUE", part)
		}
		at := slices.IndexFunc(limitTable, func(row limit) bool { return row.name == name })
		if at < 0 {
			return fmt.Errorf("there is no limit %q; they are %s", name, limitNames())
		}
		if err := limitTable[at].set(f.limits, value); err != nil {
			return err
		}
	}
	return nil
}

func limitNames() string {
	return strings.Join(convert(limitTable, func(row limit) string { return row.name }), ", ")
}

// set sets a limit, which must be above zero.
func (r limit) set(l *limits, text string) error {
	var n int64
	var err error
	var form string
	switch r.at(l).(type) {
	case *int:
		form = "a number above zero"
		n, err = strconv.ParseInt(text, 10, 32)
	case *int64:
		form = "a size such as 500KiB, 64MiB or 2GiB"
		err = (*byteSize)(&n).Set(text)
	case *time.Duration:
		form = "a time such as 90s or 10m"
		var d time.Duration
		d, err = time.ParseDuration(text)
		n = int64(d)
	}
	if err != nil || n < 1 {
		return fmt.Errorf("limit %s: %q is not %s", r.name, text, form)
	}
	if most := mostOf[r.name]; most > 0 && n > most {
		return fmt.Errorf("limit %s: %s is more than one command may take: %s", r.name, text, r.format(most))
	}
	r.field(l).SetInt(n)
	return nil
}

// format writes n as a value of the limit, a size in whole units.
func (r limit) format(n int64) string {
	if _, ok := r.at(new(limits)).(*int); ok {
		return strconv.FormatInt(n, 10)
	}
	return whole(n)
}

const (
	memoryVariable = "MCSH_MEMORY"
	maxMemory      = 384 << 20 // the largest default
	minMemory      = 64 << 20  // the smallest that works

	// ownMemory is the memory of the process itself: stacks, tables, buffers of connections.
	ownMemory = 64 << 20
	// gcPercent suits small heaps: the SDK allocates several hundred kilobytes per message, and a collection every 4 MB
	// takes a third of the time of a call. The memory limit bounds large heaps.
	gcPercent = 400
	// durableGCPercent is that of gateways with durable runs, which hold more: a million items take less than 100 MB with it.
	durableGCPercent = 75
)

// maxSchemas bounds the compiled schemas, however much memory there is.
const maxSchemas = 32 << 20

const (
	toolCost     = 1 << 10 // bytes of one listed tool, at least
	compiledCost = 4       // bytes of a compiled schema per byte of its text, at least
)

// shares divide the memory of the process. A nil share has no bound.
type shares struct {
	results, bodies, runs, catalogs, sessions, schemas *memory.Share
}

// newShares divides the memory, in 24ths. The sum exceeds the whole: one share may use what another does not need.
func newShares(total int64) shares {
	b := memory.New(total)
	share := func(name string, part int64) *memory.Share { return b.Share(name, total/24*part) }
	return shares{
		results: share("results", 20), bodies: share("bodies", 6), runs: share("runs", 6),
		catalogs: share("catalogs", 6), sessions: share("sessions", 12), schemas: share("schemas", 3),
	}
}

// used returns the used bytes of each share.
func (s shares) used() map[string]int64 {
	return map[string]int64{
		"results": s.results.Used(), "bodies": s.bodies.Used(), "runs": s.runs.Used(),
		"catalogs": s.catalogs.Used(), "sessions": s.sessions.Used(), "schemas": s.schemas.Used(),
	}
}

func (s *settings) addMemory(cmd *cobra.Command) {
	cmd.Flags().Var(&s.memory, "memory", "memory for kept data: results, messages, sessions, lists of tools "+
		"(default the lesser of 384MiB and a quarter of the machine's or the control group's; $"+memoryVariable+")")
}

// setMemory sets the memory of the process, and the limits that depend on it.
func (p *program) setMemory(s *settings) error {
	if text, ok := p.env[memoryVariable]; ok && s.memory == 0 && text != "" {
		if err := s.memory.Set(text); err != nil {
			return usageError("", "%s=%s: %w", memoryVariable, texts.Fit(text, 40), err)
		}
	}
	if s.memory == 0 {
		s.memory = byteSize(max(minMemory, min(maxMemory, memory.Machine("/")/4)))
	}
	if s.memory < minMemory {
		return usageError("leave it out for what fits the machine", "--memory %s is less than the least that works: %s", s.memory.String(), whole(minMemory))
	}
	s.shares = newShares(int64(s.memory))
	if err := s.limits.fit(s.shares, s.memory); err != nil {
		return err
	}
	if own := int64(s.memory) + ownMemory; own < debug.SetMemoryLimit(-1) { // $GOMEMLIMIT may be lower
		debug.SetMemoryLimit(own)
	}
	return nil
}

// fit lowers defaults to the memory. It refuses a given limit that does not fit.
func (l *limits) fit(s shares, total byteSize) error {
	most := map[string]int64{
		// A growing buffer exists twice.
		"result": s.results.LeaseLimit() / 2, "item": s.results.LeaseLimit() / 2, "input": s.results.LeaseLimit() / 5,
		"held": s.results.LeaseLimit(), "attempt": s.results.LeaseLimit(), "waiting": s.results.LeaseLimit(), "shared": s.results.LeaseLimit(),
		"body": s.bodies.LeaseLimit() / 5, "message": s.bodies.LeaseLimit() / 5,
		"sessions": s.sessions.Limit() / gateway.SessionCost,
		// A list that is fetched again exists twice.
		"tool-list": s.catalogs.LeaseLimit() / 2, "tools": s.catalogs.LeaseLimit() / toolCost,
		"schema": min(s.schemas.Limit(), maxSchemas) / compiledCost,
	}
	defaults := l.withDefaults()
	for _, row := range limitTable {
		room, bounded := most[row.name]
		if !bounded {
			continue
		}
		value, given := row.field(&defaults).Int(), row.field(l)
		switch {
		case value <= room:
		case !given.IsZero():
			return usageError(fmt.Sprintf("lower the limit, or raise --memory to %s or more", whole(needed(value, room, int64(total)))),
				"--limit %s=%s does not fit --memory %s, of which it may have %s", row.name, row.format(value), total.String(), row.format(room))
		default:
			given.SetInt(room)
		}
	}
	return nil
}

// needed returns the total, in whole MiB, whose share would hold value; room is the share of the present total.
func needed(value, room, total int64) int64 {
	return int64(math.Ceil(float64(value)/float64(room)*float64(total)/(1<<20))) << 20
}

// whole formats a size in whole units, rounded down.
func whole(n int64) string {
	if n >= 1<<20 {
		n = n >> 20 << 20
	}
	b := byteSize(n)
	return b.String()
}

// byteSize is a flag such as 64MiB: a number of bytes, or of units of 1024.
type byteSize int64

// sizeUnits are the units, longest suffix first.
var sizeUnits = []struct {
	suffix string
	shift  uint
}{{"gib", 30}, {"mib", 20}, {"kib", 10}, {"g", 30}, {"m", 20}, {"k", 10}, {"b", 0}, {"", 0}}

func (b *byteSize) Set(text string) error {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > 1<<62>>u.shift {
			break
		}
		*b = byteSize(n << u.shift)
		return nil
	}
	return fmt.Errorf("write a number of bytes such as 64MiB or 2GiB")
}

func (b *byteSize) String() string {
	for _, u := range sizeUnits[:3] {
		if n := int64(*b) >> u.shift; n > 0 && n<<u.shift == int64(*b) {
			return fmt.Sprintf("%d%siB", n, strings.ToUpper(u.suffix[:1]))
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *byteSize) Type() string { return "size" }
