package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/singleflight"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/markdown"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/stages"
)

// A backend is a way to run commands.
type backend struct {
	name    string
	summary string // in the help of --sandbox

	// driver returns the driver, or the reason that this machine has none.
	driver func(ctx context.Context, p *program, s sandboxSettings) (sandbox.Driver, error)
}

// backends lists the backends in the order in which --sandbox auto tries them.
var backends = []backend{
	{name: "docker", summary: "containers without network, one for each caller", driver: dockerDriver},
	{name: "local", summary: "worker processes on this machine, locked in by the kernel", driver: localDriver},
}

// Values of --sandbox besides the backends.
const (
	backendAuto = "auto"
	backendOff  = "off"
)

func dockerDriver(_ context.Context, _ *program, s sandboxSettings) (sandbox.Driver, error) {
	return docker.New(s.engine()), nil
}

// noEngine reports whether no container engine was found and the settings name none, which deserves no note.
func noEngine(err error, s sandboxSettings) bool {
	return s.host == "" && errors.Is(err, docker.ErrNoEngine)
}

func localDriver(_ context.Context, p *program, s sandboxSettings) (sandbox.Driver, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the sandbox worker: %w", err)
	}
	return local.New(local.Options{
		Worker: workerArgv(self), Scratch: p.scratchDir(), Workspace: s.workspace, Added: s.added.Text(),
	}), nil
}

// An activeBackend is a started backend, with notes why the backends before it are not used.
type activeBackend struct {
	pool  *sandbox.Pool
	notes []string
}

// passOver notes that a backend is not used because of err.
func (o *activeBackend) passOver(b backend, err error) {
	o.notes = append(o.notes, fmt.Sprintf("the %s backend is not used: %v", b.name, err))
}

// report returns the report of the pool, with the notes.
func (o *activeBackend) report() sandbox.Report {
	r := o.pool.Report()
	r.Notes = append(r.Notes, o.notes...)
	return r
}

var errSandboxOff = errors.New("the sandbox is off (--sandbox " + backendOff + ")")

// findBackends returns the rows of the table that a value of --sandbox allows.
func findBackends(name string, table []backend) ([]backend, error) {
	switch name {
	case backendAuto:
		return table, nil
	case backendOff:
		return nil, nil
	}
	if at := slices.IndexFunc(table, func(b backend) bool { return b.name == name }); at >= 0 {
		return table[at : at+1], nil
	}
	return nil, usageError("use one of: "+strings.Join(backendNames(table), ", "), "--sandbox %q: there is no such backend", name)
}

// backendNames returns the values of --sandbox.
func backendNames(table []backend) []string {
	return slices.Concat([]string{backendAuto}, convert(table, func(b backend) string { return b.name }), []string{backendOff})
}

// openFirst opens the first backend that passes its audit. Its error lists the failure of each.
func openFirst(ctx context.Context, p *program, s sandboxSettings, table []backend) (*activeBackend, error) {
	var active activeBackend
	all := errSandboxOff
	for i, b := range table {
		var err error
		if active.pool, err = b.open(ctx, p, s); err == nil {
			return &active, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !noEngine(err, s) {
			active.passOver(b, err)
		}
		if i > 0 {
			err = fmt.Errorf("%w; %w", all, err)
		}
		all = err
	}
	return nil, all
}

// open starts the backend and audits it. It refuses a backend that lacks a requirement of the operator.
func (b backend) open(ctx context.Context, p *program, s sandboxSettings) (*sandbox.Pool, error) {
	driver, err := b.driver(ctx, p, s)
	if err != nil {
		return nil, err
	}
	if s.warm <= 0 {
		s.warm = -1 - s.warm // options have 0 for the backend's default, and -1 for none
	}
	pool, err := sandbox.New(ctx, sandbox.Options{
		Driver: driver, Warm: s.warm, Max: max(s.max, 0), Lasting: s.isolation == isolations[0],
		Check: s.checkCPU, CheckMemory: s.checkMemory, Added: s.added,
	})
	if err != nil {
		return nil, err
	}
	if lacks := pool.Report().Lacks(s.require); len(lacks) > 0 {
		err := fmt.Errorf("the %s backend lacks what --sandbox-require wants: %s", b.name, strings.Join(lacks, ", "))
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// The sandbox worker: its own binary starts five times as fast as this one.
const (
	workerBinary  = "mcsh-worker"
	workerCommand = "worker"
)

// workerArgv returns the worker's binary beside this one, or this binary with the worker command.
func workerArgv(self string) []string {
	own := filepath.Join(filepath.Dir(self), workerBinary)
	if info, err := os.Stat(own); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
		return []string{own}
	}
	return []string{self, workerCommand}
}

// sandboxSettings come from flags and the environment.
type sandboxSettings struct {
	backend   string    // a backend, backendAuto or backendOff
	allowed   []backend // by that
	host      string    // of the container engine; empty: the default socket
	certDir   string    // for an engine with TLS; only from the environment
	image     string    // empty: the image of this release
	isolation string    // of containers and workers
	warm      int       // idle workers in reserve, or backendDefault; 0 for a single run
	max       int       // workers in use, or backendDefault
	require   []string  // names of [sandbox.Requirements]
	workspace string    // absolute, of --workspace, readable by commands; empty: none

	added programs.Added // the operator's commands, of the configuration

	checkCPU    time.Duration // limits of one check of a command; 0: the default
	checkMemory int64
}

// backendDefault leaves a number to the backend.
const backendDefault = -1

// isolations are the scopes of a container and a worker: the runs of one caller, or a single run.
var isolations = []string{"caller", "run"}

// sandboxVariables are flags with their environment variables, of which the first that is set counts. The variables of the
// engine are those of its other clients.
var sandboxVariables = []struct {
	flag      string
	variables []string
}{
	{"sandbox", []string{"MCSH_SANDBOX"}},
	{"sandbox-host", []string{"MCSH_SANDBOX_HOST", "DOCKER_HOST"}},
	{"sandbox-image", []string{"MCSH_SANDBOX_IMAGE"}},
	{"sandbox-isolation", []string{"MCSH_SANDBOX_ISOLATION"}},
	{"sandbox-warm", []string{"MCSH_SANDBOX_WARM"}},
	{"sandbox-max", []string{"MCSH_SANDBOX_MAX"}},
	{"sandbox-require", []string{"MCSH_SANDBOX_REQUIRE"}},
}

// sandboxFlags adds the flags of the sandbox.
func (p *program) sandboxFlags(s *sandboxSettings) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		s.add(cmd)
		p.engineFlags(s)(cmd)
	}
}

func (s *sandboxSettings) add(cmd *cobra.Command) {
	help := convert(backends, func(b backend) string { return b.name + " (" + b.summary + "), " })
	f := cmd.Flags()
	f.StringVar(&s.backend, "sandbox", backendAuto, "where commands run: "+backendAuto+" (the first backend whose audit passes), "+
		strings.Join(help, "")+backendOff+" (no commands)")
	f.StringVar(&s.isolation, "sandbox-isolation", isolations[0], "runs that share a container or worker: "+
		"caller (all runs of one identity, or of one address without authentication; this machine is one) or run (none)")
	f.IntVar(&s.warm, "sandbox-warm", backendDefault,
		fmt.Sprintf("workers that wait for the next run, at most %d (default: the backend's choice)", sandbox.MaxWarm))
	f.IntVar(&s.max, "sandbox-max", backendDefault,
		"workers that runs hold at a time; then runs wait (default: the backend's choice)")
	f.Lookup("sandbox-warm").DefValue, f.Lookup("sandbox-max").DefValue = "", "" // the usage contains it
	f.StringSliceVar(&s.require, "sandbox-require", nil,
		"refuse a backend that lacks one of these, with commas between: "+strings.Join(sandbox.Requirements(), ", "))
	completeFlag(cmd, "sandbox", backendNames(backends)...)
	completeFlag(cmd, "sandbox-isolation", isolations...)
	completeFlag(cmd, "sandbox-require", sandbox.Requirements()...)
}

// engineFlags adds the flags of the container engine, and reads all sandbox flags from the environment.
func (p *program) engineFlags(s *sandboxSettings) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		s.warm, s.max = backendDefault, backendDefault
		f := cmd.Flags()
		f.StringVar(&s.host, "sandbox-host", "", "the container engine, such as unix:///var/run/docker.sock ($DOCKER_HOST)")
		f.StringVar(&s.image, "sandbox-image", "", "the image of sandbox containers (default "+docker.DefaultImage(release())+")")
		cmd.PreRunE = func(*cobra.Command, []string) error {
			on := f.Lookup(sandboxOption) // of a built-in server
			if on != nil && on.Value.String() == "false" && (f.Changed("sandbox-host") || f.Changed("sandbox-image")) {
				return usageError("add --sandbox, or leave them out", "--sandbox-host and --sandbox-image are for --sandbox")
			}
			if p.env["DOCKER_TLS_VERIFY"] != "" {
				s.certDir = p.env["DOCKER_CERT_PATH"]
			}
			return errors.Join(p.fromEnvironment(f), s.check())
		}
	}
}

// fromEnvironment sets the sandbox flags that are not given.
func (p *program) fromEnvironment(f *pflag.FlagSet) error {
	for _, row := range sandboxVariables {
		at := slices.IndexFunc(row.variables, func(name string) bool { return p.env[name] != "" })
		flag := f.Lookup(row.flag)
		if at < 0 || flag == nil || flag.Changed || flag.Value.Type() == "bool" { // of a built-in server
			continue
		}
		if err := f.Set(row.flag, p.env[row.variables[at]]); err != nil {
			return usageError("fix or unset the variable", "$%s stands for --%s: %w", row.variables[at], row.flag, err)
		}
	}
	return nil
}

// check refuses invalid settings before a backend starts.
func (s *sandboxSettings) check() (err error) {
	if s.backend != "" { // commands for the engine alone have no backend
		if s.allowed, err = findBackends(s.backend, backends); err != nil {
			return err
		}
	}
	for _, name := range s.require {
		if !sandbox.IsRequirement(name) {
			return usageError("use some of: "+strings.Join(sandbox.Requirements(), ", "),
				"--sandbox-require %q: there is no such requirement", name)
		}
	}
	if s.isolation != "" && !slices.Contains(isolations, s.isolation) {
		return usageError("use one of: "+strings.Join(isolations, ", "),
			"--sandbox-isolation %q: there is no such isolation", s.isolation)
	}
	if s.max == 0 || s.max < backendDefault || s.warm < backendDefault {
		return usageError("give a number of workers above zero; --sandbox-warm may be 0",
			"--sandbox-max or --sandbox-warm is too small")
	}
	if s.warm > sandbox.MaxWarm {
		return usageError("each takes memory of this machine while nobody uses it: give a smaller number",
			"--sandbox-warm %d: at most %d workers may wait for the next run", s.warm, sandbox.MaxWarm)
	}
	if s.image == "" {
		s.image = docker.DefaultImage(release())
	}
	return nil
}

// unreleased matches the version of a build between two releases.
var unreleased = lazy.Regexp(`\+|[-.]\d{14}-[0-9a-f]{12}$`)

// release returns the version in the image's name; all unreleased builds share one name.
func release() string {
	v := version()
	if unreleased().MatchString(v) {
		return ""
	}
	return v
}

// buildCommand returns the command that builds the image of the settings.
func (s *sandboxSettings) buildCommand() string {
	command := "mcsh sandbox build"
	if s.host != "" {
		command += " --sandbox-host " + s.host
	}
	if s.image != "" && s.image != docker.DefaultImage(release()) {
		command += " --sandbox-image " + s.image
	}
	return command
}

// The pause before another attempt to start a failed backend doubles between these bounds.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// closeWait is how long Close waits for a backend that is starting and ignores its context. Its workers and containers
// notice the end of the process.
const closeWait = 5 * time.Second

// A lazySandbox starts its backend for the first command: many pipelines have none, and the audit of a backend takes
// longer than such a pipeline. After a failure and a pause the next command tries again.
type lazySandbox struct {
	start func() (*activeBackend, error)
	ended <-chan struct{} // closed when no backend may start any more; nil: never
	end   func()          // cancels a start in progress

	starts singleflight.Group

	mu     sync.Mutex // guards the fields below
	active *activeBackend
	err    error         // of the last start
	pause  time.Duration // after the last failure
	again  time.Time     // the earliest next start
	closed bool
}

var errSandboxClosed = errors.New("the sandbox is closed")

// get returns the active backend, or the reason that there is none. A caller that gives up does not cancel the start:
// others wait for it too.
func (l *lazySandbox) get(ctx context.Context) (*activeBackend, error) {
	if active, err := l.settled(); active != nil || err != nil {
		return active, err
	}
	select {
	case end := <-l.starts.DoChan("", l.attempt):
		return end.Val.(*activeBackend), end.Err
	case <-ctx.Done():
		return nil, fmt.Errorf("the sandbox is still starting: %w", context.Cause(ctx))
	case <-l.ended:
		return nil, errSandboxClosed
	}
}

// getSoon waits at most startWait.
func (l *lazySandbox) getSoon(ctx context.Context) (*activeBackend, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startWait, fmt.Errorf("it has taken more than %v; try again later", startWait))
	defer cancel()
	return l.get(ctx)
}

// settled returns the active backend, or the reason not to start one now. Both are nil if it is time to start one.
func (l *lazySandbox) settled() (*activeBackend, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, errSandboxClosed
	case l.active == nil && !time.Now().Before(l.again):
		return nil, nil
	}
	return l.active, l.err
}

// attempt starts the backend, unless an attempt has just ended.
func (l *lazySandbox) attempt() (any, error) {
	if active, err := l.settled(); active != nil || err != nil {
		return active, err
	}
	active, err := l.start()
	l.mu.Lock()
	l.active, l.err = active, err
	if err != nil {
		l.pause = min(max(2*l.pause, firstPause), lastPause)
		l.again = time.Now().Add(l.pause)
	}
	closed := l.closed
	l.mu.Unlock()
	if closed && active != nil {
		_ = active.pool.Close() // no caller is left for the error
		return (*activeBackend)(nil), errSandboxClosed
	}
	return active, err
}

func (l *lazySandbox) Plan(caller, owner, workersOf string) stages.CommandPlan {
	return &lazyPlan{sandbox: l, caller: caller, owner: owner, workersOf: workersOf}
}

// Markdown is a [fetch.Markdown]. Without a sandbox it converts in this process and refuses large pages.
func (l *lazySandbox) Markdown(ctx context.Context, page, base string) (string, error) {
	active, err := l.getSoon(ctx)
	if err != nil {
		return markdown.Bounded(ctx, page, base)
	}
	return active.pool.Markdown(ctx, page, base)
}

// Describe implements [gateway.Sandbox].
func (l *lazySandbox) Describe() (sandbox.Report, error) {
	active, err := l.getSoon(context.Background())
	if err != nil {
		return sandbox.Report{}, err
	}
	return active.report(), nil
}

// state returns the result of the last start, without waiting. Both are nil before it.
func (l *lazySandbox) state() (*activeBackend, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active, l.err
}

func noCommands(err error) *stages.Error {
	return stages.Errorf(stages.DisallowedCommand,
		"mcsh doctor tells the operator of this server more; tool and preview stages work without",
		"no command can run here: %w", err)
}

// Close stops the backend.
func (l *lazySandbox) Close() error {
	l.mu.Lock()
	l.closed = true
	active := l.active
	l.mu.Unlock()
	l.end()
	if active != nil {
		return active.pool.Close()
	}
	select {
	case <-l.starts.DoChan("", l.attempt): // it starts nothing any more, and waits for an attempt in progress
		return nil
	case <-time.After(closeWait):
		return fmt.Errorf("closing the sandbox: its backend was starting, and has not stopped within %v", closeWait)
	}
}

// sandboxLine describes the sandbox in one line.
func sandboxLine(r sandbox.Report) string {
	seccomp := "no"
	if r.Seccomp {
		seccomp = "yes"
	}
	return fmt.Sprintf("%s, profile %s, Landlock ABI %d, seccomp %s", r.Backend, r.Profile, r.Landlock, seccomp)
}

// A lazyPlan starts the backend at the first check of a command.
type lazyPlan struct {
	sandbox   *lazySandbox
	caller    string
	owner     string
	workersOf string

	mu   sync.Mutex
	plan stages.CommandPlan // nil before the backend has started; guarded by mu
}

func (p *lazyPlan) begin(active *activeBackend) stages.CommandPlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan == nil {
		p.plan = active.pool.Plan(p.caller, p.owner, p.workersOf)
	}
	return p.plan
}

func (p *lazyPlan) Check(ctx context.Context, c stages.Command) (stages.Traits, error) {
	active, err := p.sandbox.getSoon(ctx)
	if err != nil {
		return stages.Traits{}, noCommands(err)
	}
	return p.begin(active).Check(ctx, c)
}

func (p *lazyPlan) Open(ctx context.Context) (stages.Session, error) {
	active, err := p.sandbox.get(ctx)
	if err != nil {
		return nil, noCommands(err)
	}
	return p.begin(active).Open(ctx)
}

func (p *lazyPlan) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan == nil {
		return nil
	}
	return p.plan.Close()
}
