package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/auth"
	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/memory"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/observe"
	"github.com/mcsh-dev/mcsh/preview"
	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/upstream"
)

// Variables that replace --console (on), --no-console (off) and --console-results (on).
const (
	consoleVariable        = "MCSH_CONSOLE"
	consoleResultsVariable = "MCSH_CONSOLE_RESULTS"
)

// consoleFlags configure the pages for people.
type consoleFlags struct {
	on, off, results bool

	flags *pflag.FlagSet // of the command
}

func (c *consoleFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	c.flags = f
	f.BoolVar(&c.on, "console", false, "serve the console, the pages for people, also where a runtime or a container has started the gateway ($"+consoleVariable+"=on)")
	f.BoolVar(&c.off, "no-console", false, "serve no console ($"+consoleVariable+"=off)")
	f.BoolVar(&c.results, "console-results", false, "operators also see the results of the runs of others in the console ($"+consoleResultsVariable+"=on)")
	cmd.MarkFlagsMutuallyExclusive("console", "no-console")
	cmd.MarkFlagsMutuallyExclusive("console-results", "no-console")
}

// resolve takes values from the variables for flags that are not given, and refuses a console that everybody could use.
func (c *consoleFlags) resolve(p *program, l *listenFlags) error {
	given := c.flags.Changed("console") || c.flags.Changed("no-console")
	pages, err1 := onOff(p, consoleVariable)
	results, err2 := onOff(p, consoleResultsVariable)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if pages != "" && !given {
		c.on, c.off = pages == "on", pages == "off"
	}
	if results != "" && !c.flags.Changed("console-results") {
		c.results = results == "on"
	}
	if !c.on || l.auth.enabled() || l.address == "" || l.alone() {
		return nil
	}
	return usageError(authenticate+"; or leave --console out", "--console: others can reach this address, and there is no authentication: they would see and do all that you can")
}

// onOff returns the value of a variable that is on, off or not set.
func onOff(p *program, variable string) (string, error) {
	value := p.env[variable]
	if value != "" && value != "on" && value != "off" {
		return "", configError("set it to on or off", fmt.Errorf("%s=%s: want on or off", variable, texts.Fit(value, 40)))
	}
	return value, nil
}

// listens reports whether the listener of a gateway serves the console: where a person has started it, and people sign in or only
// that person reaches it.
func (c *consoleFlags) listens(l *listenFlags) bool {
	_, inside := containerAddress()
	started := !l.runtime && !l.contained && !inside
	return c.on || !c.off && started && (l.auth.enabled() || l.alone())
}

// newConsole returns the console of a gateway, which follows its runs until ctx is done; nil: it has none.
func newConsole(ctx context.Context, c consoleFlags, s settings, source *controlled, x gatewayParts) (*ui.Console, error) {
	if c.off {
		return nil, nil
	}
	shown := &shown{settings: s, source: source, parts: x}
	trials, protocol := &trials{shown: shown, replies: newReplies(s.shares.runs)}, &noted{pool: x.parts.upstream, changed: func() {}}
	o := ui.Options{
		About: source.Gateway, Results: c.results, Activity: shown, Servers: consoleServers{shown}, Tools: shown, Offers: shown,
		Acted: func(who, path string) {
			x.log.Info("an operator acts in the console", zap.String("caller", who), zap.String("path", path))
		},
		Runs: source, Playground: trials, Protocol: protocol, System: shown, Memory: s.shares.sessions,
		Preview: func(ctx context.Context, data io.Reader, characters int) (string, error) {
			result, err := preview.Preview(ctx, data, preview.Options{Chars: characters})
			return result.Text, err
		},
	}
	if x.logins.store != nil {
		o.Logins = &consoleLogins{shown: shown, begun: map[string]func(){}}
	}
	if x.parts.saved != nil {
		o.Pipelines = &savedShown{x.parts.saved, shown}
	}
	console, err := ui.New(o)
	if err == nil {
		protocol.changed, trials.console = func() { console.Changed("protocol") }, console
		go shown.follow(ctx, console)
	}
	return console, err
}

// otherPaths are the first elements of paths that are not pages.
var otherPaths = []string{"mcp", "healthz", "readyz", "metrics", "oauth", "control", ".well-known"}

// withConsole adds the pages to the paths of h, if there are any.
func (l *listenFlags) withConsole(console *ui.Console, guard *auth.Guard, h http.Handler) http.Handler {
	if console == nil {
		return h
	}
	public, _ := url.Parse(l.auth.public) // it was checked
	below := strings.TrimSuffix(public.Path, "/")
	base := func(*http.Request) string { return below + "/" }
	pages := console.Handler(ui.Door{Base: base, Guard: guard, Issuer: l.auth.people(guard), Public: l.auth.public})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if slices.Contains(otherPaths, first) {
			h.ServeHTTP(w, r)
			return
		}
		if below != "" && strings.HasPrefix(r.URL.Path, below+"/") { // a proxy may leave it out
			http.StripPrefix(below, pages).ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// shown answers for the pages of a gateway.
type shown struct {
	settings settings
	source   *controlled
	parts    gatewayParts
}

// System implements [ui.System].
func (s *shown) System() ui.SystemState {
	build := buildInfo()
	state := ui.SystemState{
		Gateway: s.source.Gateway(), Total: ui.Share{Name: "Budget", Most: int64(s.settings.memory)},
		Build:   []ui.Fact{{Name: "Version", Text: build.Version}, {Name: "Built with", Text: build.Go + ", " + build.Platform}},
		Sandbox: s.sandbox(), Process: process(), Limits: s.limits(), Links: s.links(),
	}
	if build.Revision != "" {
		state.Build = append(state.Build, ui.Fact{Name: "Revision", Text: build.Revision})
	}
	state.Shares = s.settings.shares.shown()
	for _, share := range state.Shares {
		state.Total.Used += share.Used
	}
	if s.parts.kept != nil {
		bytes, memory, count := s.parts.kept.Usage()
		state.Kept = []ui.Fact{{Name: "Runs", Text: texts.Count(count, "run")}, {Name: "Outputs", Text: texts.Bytes(bytes)}, {Name: "In memory", Text: texts.Bytes(memory)}}
	}
	return state
}

// shown returns the shares for people.
func (s shares) shown() []ui.Share {
	share := func(name string, m *memory.Share) ui.Share {
		return ui.Share{Name: name, Used: m.Used(), Most: m.Limit()}
	}
	return []ui.Share{
		share("Results", s.results), share("Bodies", s.bodies), share("Runs", s.runs),
		share("Catalogs", s.catalogs), share("Sessions", s.sessions), share("Schemas", s.schemas),
	}
}

// sandbox describes the backend of commands and what holds it.
func (s *shown) sandbox() []ui.Fact {
	active, err := s.parts.parts.sandbox.state()
	switch {
	case err != nil:
		return []ui.Fact{{Name: "State", Text: "command stages are refused"}, {Name: "Reason", Text: err.Error()}}
	case active == nil:
		return []ui.Fact{{Name: "State", Text: "starts with the first command"}}
	}
	r, load := active.report(), active.pool.Load()
	facts := []ui.Fact{
		{Name: "Backend", Text: r.Backend},
		{Name: "Profile", Text: r.Profile},
		{Name: "Landlock", Text: landlock(r.Landlock)},
		{Name: "Seccomp", Text: yesNo(r.Seccomp)},
		{Name: "Workers", Text: fmt.Sprintf("%d of %d in use, %d wait", load.InUse, load.Max, load.Warm)},
		{Name: "Queue", Text: texts.Count(load.Queued, "run")},
	}
	for _, gap := range r.Gaps {
		facts = append(facts, ui.Fact{Name: "Gap", Text: gap})
	}
	for _, note := range r.Notes {
		facts = append(facts, ui.Fact{Name: "Note", Text: note})
	}
	return facts
}

func landlock(abi int) string {
	if abi == 0 {
		return "no"
	}
	return fmt.Sprintf("ABI %d", abi)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// process describes this process.
func process() []ui.Fact {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []ui.Fact{{Name: "Heap", Text: texts.Bytes(int64(m.HeapAlloc))}, {Name: "From the system", Text: texts.Bytes(int64(m.Sys))}, {Name: "Goroutines", Text: strconv.Itoa(runtime.NumGoroutine())}}
}

// limits lists the limits in force.
func (s *shown) limits() []ui.Limit {
	given, all := s.settings.limits, s.settings.limits.withDefaults()
	return convert(limitTable, func(row limit) ui.Limit {
		return ui.Limit{Name: row.name, Value: row.text(&all), Usage: row.meaning, Changed: !row.field(&given).IsZero()}
	})
}

// text returns the value of a limit for people.
func (r limit) text(l *limits) string {
	if d, ok := r.at(l).(*time.Duration); ok {
		return ui.Duration(*d)
	}
	return r.format(r.field(l).Int())
}

// links lead to what machines read.
func (s *shown) links() []ui.Link {
	if s.source.about.Address == "" {
		return nil
	}
	at := strings.TrimSuffix(s.source.about.Address, "/mcp")
	list := []ui.Link{{Name: "/readyz", Address: at + "/readyz", Usage: "whether the gateway and its servers are ready"}}
	if m := s.parts.monitor; !m.flags.noMetrics && m.flags.metrics == "" {
		list = append(list, ui.Link{Name: "/metrics", Address: at + "/metrics", Usage: "metrics for Prometheus"})
	}
	return list
}

var _ ui.System = (*shown)(nil)

// Servers implements [ui.Activity].
func (s *shown) Servers(ctx context.Context) []control.Server {
	_, ctx = s.pool(ctx)
	view := upstream.ViewOf(ctx)
	return slices.DeleteFunc(s.source.Servers(), func(server control.Server) bool { return !view.Sees(server.Name) })
}

// Runs implements [ui.Activity].
func (s *shown) Runs(ctx context.Context, v control.Viewer, f control.RunFilter) control.RunList {
	return s.source.Runs(ctx, v, f)
}

// Calls implements [ui.Activity].
func (s *shown) Calls() []ui.CallStep {
	return convert(s.parts.monitor.metrics.Traffic(), func(step observe.Step) ui.CallStep { return ui.CallStep(step) })
}

// follow tells the open pages of the console when runs change, until ctx is done.
func (s *shown) follow(ctx context.Context, console *ui.Console) {
	for cursor := uint64(0); ; {
		next, err := s.source.Wait(ctx, cursor)
		if err != nil {
			return
		}
		if cursor != 0 {
			console.Changed("runs")
		}
		cursor = next
	}
}
