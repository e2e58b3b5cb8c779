package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/pipelines"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/servers"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/store"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/config"
	"github.com/mcsh-dev/mcsh/upstream/pins"
	"github.com/mcsh-dev/mcsh/upstream/state"
	"github.com/mcsh-dev/mcsh/workspace"
)

// settings are the command line's settings for the parts.
type settings struct {
	configs   []string
	noBuiltin bool
	root      string
	readOnly  bool
	pin       bool // hold back tools that are new or have changed
	look      bool // compare tools with those of state, and change nothing there
	expose    exposeFlags
	pipelines []string    // directories of saved pipelines
	store     storeFlags  // of saved pipelines, runs and sign-ins that gateways share
	shared    store.Store // that store, once mcsh serve has opened it; nil: there is none
	durable   durableFlags
	allowSave allowSaveFlag
	workspace string // where stages save files; empty: nowhere
	toolhive  toolhiveFlags
	login     loginFlags
	state     string
	keeps     bool // save tool lists and shapes in state
	refresh   bool // ignore saved tool lists
	sandbox   sandboxSettings
	host      servers.Host // of built-in servers
	instance  string       // identifies a gateway that serves
	group     groupFlag    // that it serves

	signIns upstream.SignIns // for clients that can show an address; nil: none

	files []*config.File // of the configuration, once addCommands has read them

	// tools reports tools that are new or have changed; nil: not reported.
	tools func(pins.Change)

	// changed reports changes of the sources, which only long-running commands follow; nil: none.
	changed func(upstream.Change)

	serverLog func(upstream.LogLine) // writes to our log what servers write to theirs; nil: nothing

	memory byteSize // for kept data; 0: by the size of the machine
	shares shares   // of memory
	limits limits   // the user of the command line is the operator
}

// configVariable replaces --config: files separated as in PATH.
const configVariable = "MCSH_CONFIG"

// builtinVariable with the value "off" replaces --no-builtin.
const builtinVariable = "MCSH_BUILTIN"

// sources lists the sources of servers; each returns those of the settings, or none. All are used together. Of two servers
// with the same name that no configuration names, the one of the first source counts.
var sources = []func(ctx context.Context, p *program, s settings) ([]upstream.Source, error){configSources, toolhiveSources, defaultSources, pipeSources}

// openSources opens the rows of the table.
func (p *program) openSources(ctx context.Context, s settings) ([]upstream.Source, error) {
	value := cmp.Or(p.env[builtinVariable], "on")
	if value != "on" && value != "off" {
		return nil, configError("off leaves the built-in servers out; on, or nothing, keeps them", fmt.Errorf("%s=%s: want on or off", builtinVariable, texts.Fit(value, 40)))
	}
	s.noBuiltin = s.noBuiltin || value == "off"
	s.host = p.host(s.sandbox, s.host)
	var list []upstream.Source
	for _, open := range sources {
		more, err := open(ctx, p, s)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// addConfigured adds the flags of the servers that somebody has configured or started.
func (s *settings) addConfigured(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.configs, "config", nil, "file with MCP servers, as clients have them (repeatable; default: $"+configVariable+", else the user's)")
	s.toolhive.add(cmd)
	s.login.add(cmd)
}

// addSources adds the flags of the sources.
func (s *settings) addSources(cmd *cobra.Command) {
	s.addConfigured(cmd)
	s.addPipelines(cmd)
	f := cmd.Flags()
	f.BoolVar(&s.noBuiltin, "no-builtin", false, "without a configuration: no built-in servers either ($"+builtinVariable+"=off)")
	f.StringVar(&s.root, "root", "", "without a configuration: the directory of the filesystem server (default: the current one)")
	f.BoolVar(&s.readOnly, "read-only", false, "call only tools that are annotated or declared read-only")
	f.BoolVar(&s.pin, "pin", false, "hold back tools that are new or have changed since the first list of their server, until mcsh tools accept ($"+pinVariable+"=on)")
}

// configFiles returns the configuration files: the named ones, or else the user's if it exists.
func (p *program) configFiles(s settings) []string {
	if len(s.configs) > 0 {
		return s.configs
	}
	if named := slices.DeleteFunc(filepath.SplitList(p.env[configVariable]), func(path string) bool { return path == "" }); len(named) > 0 {
		return named
	}
	if path := p.userFile(); path != "" && !s.noBuiltin && s.root == "" {
		if _, err := os.Stat(path); err == nil {
			return []string{path}
		}
	}
	return nil
}

// openConfigs returns the configuration files, the same ones once [program.addCommands] has read them.
func (p *program) openConfigs(s settings) []*config.File {
	if s.files != nil {
		return s.files
	}
	return convert(p.configFiles(s), func(path string) *config.File { return &config.File{Path: path, Lookup: p.lookup} })
}

func configSources(ctx context.Context, p *program, s settings) ([]upstream.Source, error) {
	s.files = p.openConfigs(s)
	if len(s.files) == 0 {
		return nil, nil
	}
	store, err := p.openLogins(ctx, s)
	if err != nil {
		return nil, err
	}
	return convert(s.files, func(f *config.File) upstream.Source {
		f.Builtins, f.Options, f.Proxy = configBuiltins(s.host), builtinOptions(), http.ProxyFromEnvironment
		f.ClientMetadataURL = cmp.Or(s.login.clientMetadata, p.env[clientMetadataVariable])
		if store != nil {
			f.Logins = store
		}
		return f
	}), nil
}

// defaultSources returns the servers of a machine without a configuration.
func defaultSources(_ context.Context, p *program, s settings) ([]upstream.Source, error) {
	switch configured := len(p.configFiles(s)) > 0; {
	case configured && s.root != "":
		return nil, usageError(`write {"builtin": "filesystem", "root": "DIR"} into the configuration`,
			"--root belongs to the built-in servers, which a configuration replaces")
	case configured, s.noBuiltin:
		return nil, nil
	}
	var list upstream.Static
	for _, d := range defaultServers(s) {
		dial, err := configBuiltins(s.host)[d.builtin](d.options)
		if err != nil {
			return nil, configError("fix the flag that says so, or name the servers you want in a configuration", err)
		}
		list = append(list, upstream.Server{Name: d.builtin, Dial: dial, Allow: d.allow, Found: true, InProcess: true, Sticky: true})
	}
	return []upstream.Source{list}, nil
}

// stateVariable replaces --state.
const stateVariable = "MCSH_STATE"

// stateOff disables the state.
const stateOff = "off"

// addState adds --state, and enables the state.
func (s *settings) addState(cmd *cobra.Command) {
	s.keeps = true
	s.addStateFlag(cmd)
}

// addStateFlag adds --state for commands that use nothing there but sign-ins.
func (s *settings) addStateFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.state, "state", "", "directory where tool lists and the shapes of results are kept, or "+stateOff+
		" (default: a directory of ours in $XDG_STATE_HOME or ~/.local/state; $"+stateVariable+")")
}

// openState opens the state directory. It fails if a named directory cannot be opened; without the default one it prints
// a note.
func (p *program) openState(s settings) (*state.Dir, error) {
	path, named := p.statePath(s)
	if path == "" {
		return nil, nil
	}
	dir, err := state.Open(path)
	switch {
	case err == nil:
		return dir, nil
	case named:
		return nil, configError("name a directory that can be written, or --state "+stateOff, err)
	}
	fmt.Fprintf(p.stderr, "mcsh: nothing is kept for the next start (--state %s if this is intended): %v\n", stateOff, err)
	return nil, nil
}

// statePath returns the state directory, or "" without one, and whether it was named.
func (p *program) statePath(s settings) (path string, named bool) {
	path = cmp.Or(s.state, p.env[stateVariable])
	named = path != ""
	if home := p.stateHome(); !named && home != "" {
		path = filepath.Join(home, "mcsh")
	}
	if !s.keeps || path == stateOff {
		return "", named
	}
	return path, named
}

// stateHome returns the directory in which programs of this user keep state, or "" without a home directory.
func (p *program) stateHome() string {
	if dir := p.env["XDG_STATE_HOME"]; filepath.IsAbs(dir) {
		return dir
	}
	if home := p.env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state")
	}
	return ""
}

// scratchDirs are the candidates for temporary files. A container with a read-only root often has only the last, which is
// memory.
var scratchDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// scratchDir returns $TMPDIR, or the first writable candidate, or "".
func (p *program) scratchDir() string {
	if p.env["TMPDIR"] != "" {
		return p.env["TMPDIR"]
	}
	for _, dir := range scratchDirs {
		made, err := os.MkdirTemp(dir, "mcsh-try-")
		if err == nil {
			_ = os.Remove(made) // an empty directory
			return dir
		}
	}
	return ""
}

// startWait is how long a check waits for the sandbox.
const startWait = 30 * time.Second

// dependencies are the servers, commands and files of pipelines. Each starts on first use.
type dependencies struct {
	upstream *upstream.Pool
	sandbox  *lazySandbox
	pipes    *pipes
	files    *files
	saved    *pipelines.Set // nil: there are none
	limits   limits
	shares   shares
}

// open assembles the parts, which start nothing after ctx has ended. reading bounds the time to read the configuration.
func (p *program) open(ctx, reading context.Context, s settings) (*dependencies, error) {
	if err := p.addCommands(reading, &s); err != nil {
		return nil, err
	}
	saved, err := openFiles(s)
	if err != nil {
		return nil, err
	}
	if saved != nil {
		s.sandbox.workspace = saved.dir.Root()
	}
	s.sandbox.checkCPU, s.sandbox.checkMemory = s.limits.check, s.limits.checkMemory
	s.limits.SpoolDir = p.scratchDir()
	commands, lines := p.newSandbox(ctx, s.sandbox), p.newPipes(ctx, s, false)
	s.host = servers.Host{Markdown: commands.Markdown, Pipes: lines.start, Results: s.limits.withDefaults().upstream.ResultMax}
	tools, err := p.openUpstream(reading, s)
	if err != nil {
		return nil, errors.Join(err, commands.Close(), lines.close(), saved.close())
	}
	x := &dependencies{upstream: tools, files: saved, limits: s.limits, shares: s.shares, sandbox: commands, pipes: lines}
	if x.saved, err = p.openPipelines(ctx, s, x.base(), tools.Generation); err != nil {
		return nil, errors.Join(err, x.close())
	}
	if x.saved != nil {
		tools.Beside(func(ctx context.Context) []string { return x.saved.Servers(ctx, pipelines.Operator()) })
	}
	return x, nil
}

// newSandbox returns a sandbox that starts with its first command, and not after ctx has ended.
func (p *program) newSandbox(ctx context.Context, s sandboxSettings) *lazySandbox {
	starting, end := context.WithCancel(ctx)
	return &lazySandbox{
		ended: starting.Done(), end: end,
		start: func() (*activeBackend, error) { return openFirst(starting, p, s, s.allowed) },
	}
}

// openUpstream reads the sources and returns the pool of their servers.
func (p *program) openUpstream(ctx context.Context, s settings) (*upstream.Pool, error) {
	if err := p.addCommands(ctx, &s); err != nil {
		return nil, err
	}
	list, err := p.openSources(ctx, s)
	if err != nil {
		return nil, err
	}
	dir, err := p.openState(s)
	if err != nil {
		return nil, err
	}
	o := s.limits.upstream
	if err := p.addPins(s, dir, &o); err != nil {
		return nil, err
	}
	o.State, o.Refresh, o.Sources, o.ClientVersion = dir, s.refresh, list, version()
	o.ReadOnly, o.CallTimeout, o.Instance, o.Expose = s.readOnly, s.limits.Call, s.instance, s.expose.tools
	o.Results, o.Catalogs = s.shares.results, s.shares.catalogs
	o.Schemas = schemas.NewCache(maxSchemas, s.shares.schemas, s.limits.schemas)
	o.OnChange, o.Log, o.SignIns = s.changed, s.serverLog, s.signIns
	if s.shared != nil {
		o.Shapes = state.NewShared(s.shared)
	}
	pool := upstream.NewPool(o)
	if err := pool.Load(ctx); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) { // an interrupted read is not a wrong configuration
			return nil, errors.Join(err, pool.Close())
		}
		return nil, errors.Join(wrongConfig(err), pool.Close())
	}
	return pool, nil
}

// deps returns the dependencies of the engine, for plans of the operator.
func (x *dependencies) deps() stages.Deps {
	d := x.base()
	if x.saved != nil {
		d.Tools = x.saved.Offer(d, pipelines.Operator())
	}
	return d
}

// base returns the dependencies of the engine without saved pipelines.
func (x *dependencies) base() stages.Deps {
	d := stages.Deps{Tools: x.upstream, Commands: x.sandbox, Schemas: schemas.Stages(), Limits: x.limits.Limits, Memory: x.shares.results}
	if x.files != nil {
		d.Files = x.files
	}
	return d
}

// close stops all servers and workers, and returns after their processes have ended.
func (x *dependencies) close() error {
	return errors.Join(x.upstream.Close(), x.sandbox.Close(), x.pipes.close(), x.files.close())
}

// files saves data of stages in the directory of --workspace.
type files struct{ dir *workspace.Dir }

var _ stages.Files = files{}

// openFiles opens the workspace; nil: the settings name none.
func openFiles(s settings) (*files, error) {
	if s.workspace == "" {
		return nil, nil
	}
	if s.readOnly {
		return nil, usageError("leave one of them out", "--workspace is where stages save files, and with --read-only they save nothing")
	}
	dir, err := workspace.Open(s.workspace)
	if err != nil {
		return nil, configError("give --workspace a directory that exists", err)
	}
	return &files{dir}, nil
}

func (s *settings) addWorkspace(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.workspace, "workspace", "", "directory that tee stages save files in, and commands read files of (default: none)")
	_ = cmd.MarkFlagDirname("workspace") // the flag exists
}

func (f files) FileName(path string) (string, error) {
	name, err := f.dir.SaveName(path)
	return name, fileError(err)
}

func (f files) SaveFile(ctx context.Context, file stages.SavedFile, in io.Reader) (io.ReadCloser, error) {
	saved, err := f.save(ctx, file, in, workspace.SaveOptions{})
	if err != nil {
		return nil, err
	}
	return saved, nil
}

// save saves a file with more options.
func (f files) save(ctx context.Context, file stages.SavedFile, in io.Reader, o workspace.SaveOptions) (*workspace.Saved, error) {
	o.Append, o.Max, o.Charge = file.Append, file.Max, file.Charge
	saved, err := f.dir.Save(ctx, file.Path, in, o)
	if errors.Is(err, workspace.ErrOversize) {
		allowed := byteSize(file.Max)
		e := stages.Errorf(stages.LimitExceeded, `add "confirm_oversize": true if so much is meant to be saved; nothing was`,
			"the data for %q is more than %s", file.Path, allowed.String())
		e.Err = err
		return nil, e
	}
	return saved, fileError(err)
}

// fileError converts an error of the workspace. Other errors come from the data.
func fileError(err error) error {
	e, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		return err
	}
	code := stages.InvalidArguments
	switch {
	case errors.Is(err, syscall.ENOSPC):
		code = stages.LimitExceeded
	case e.Kind == workspace.PathEscape:
		code = stages.Denied
	case e.Kind == workspace.IoError:
		code = stages.Internal
	}
	return &stages.Error{Code: code, Msg: e.Msg, Hint: e.Hint, Err: err}
}

func (f *files) close() error {
	if f == nil {
		return nil
	}
	return f.dir.Close()
}
