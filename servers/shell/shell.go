// Package shell is an MCP server with one tool, which runs a command line in a shell. Patterns can bound the commands of a line:
// a parser finds them all, and a line whose commands are not certain is refused. The package knows nothing of containers:
// the composition root provides the [Runner] of a sandbox.
package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/servers/tool"
)

// Options are the settings of the server. The zero value runs everything in the current directory.
type Options struct {
	WorkingDir string        `json:"working_dir" usage:"where commands run (default: the current directory)"`
	Timeout    time.Duration `json:"timeout" usage:"of a command line, in seconds or such as 2m; at most 24h (default 30s)"`
	Shell      string        `json:"shell" usage:"the program that runs command lines; with patterns sh, dash or bash (default /bin/sh)"`
	Allow      []string      `json:"allow" usage:"patterns of allowed commands, such as 'ls*,cat*'; all others are denied"`
	Deny       []string      `json:"deny" usage:"patterns of denied commands, such as 'rm*'; they win over allowed ones"`
	NoStderr   bool          `json:"no_stderr" usage:"leave out what commands write to standard error"`
	Env        []string      `json:"env" usage:"a variable that commands get besides PATH, HOME and LANG, or a glob such as 'GO*' or '*'"`
	MaxOutput  int           `json:"max_output" usage:"bytes of output that a result holds, of its beginning and its end; at most 4 MiB (default 1 MiB)"`
	Sandbox    bool          `json:"sandbox" usage:"run each command line in a container, with the working directory and without a network"`
	Verbose    bool          `json:"verbose" usage:"log every command line and its exit code to standard error"`

	Environ map[string]string `json:"-"` // the variables of this process
	Log     io.Writer         `json:"-"` // of verbose; nil: nowhere

	// Contain returns the Runner of a sandbox whose commands see dir; nil: there is no sandbox.
	Contain func(dir string) (Runner, error) `json:"-"`
}

const (
	defaultShell   = "/bin/sh"
	defaultTimeout = 30 * time.Second
	longestTimeout = 24 * time.Hour
	defaultOutput  = 1 << 20
	mostOutput     = 4 << 20 // 13 times as much is a result of control characters, which a gateway still accepts
	maxLine        = 64 << 10
)

// A Runner runs programs.
type Runner interface {
	// Run runs argv, with the environment env and nothing to read, to its end, and returns its exit code: -1 if a signal ended
	// it. It waits for all that the program has started, and ends it when ctx ends; it then returns the cause. Any other error
	// but [ErrCut] means that the program did not start. Calls may be concurrent; nothing is written to stdout and stderr
	// after Run. A nil stderr is dropped.
	Run(ctx context.Context, argv, env []string, stdout, stderr io.Writer) (code int, err error)

	// Close frees what is kept between runs. A later Run takes it again.
	Close() error
}

// ErrCut is the error of a program that has ended, with the exit code, and whose output was not read to its end.
var ErrCut = errors.New("a process that the command left behind held it open")

// New makes the server.
func New(o Options) (*tool.Opened, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &server{options: o}
	var err error
	if s.rules, err = newRules(o.Allow, o.Deny); err != nil {
		return nil, err
	}
	if s.env, err = o.environment(); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	srv, err := tool.Open(tool.Server{
		Name: "shell", Title: "Command lines", Instructions: "Runs command lines in " + s.options.WorkingDir + "." + s.rules.describe(),
		Tools: []tool.Tool{s.executeCommand()},
	})
	if err != nil {
		return nil, err
	}
	srv.Begin = s.begin
	return srv, nil
}

// begin is [tool.Opened.Begin]: the end of the last session frees the runner.
func (s *server) begin() (end func() error) {
	s.sessions.Add(1)
	return sync.OnceValue(func() error {
		if s.sessions.Add(-1) > 0 {
			return nil
		}
		return s.runner.Close()
	})
}

// check fills in the defaults.
func (o *Options) check() error {
	switch {
	case o.Timeout < 0 || o.Timeout > longestTimeout:
		return fmt.Errorf("option timeout is %v, want at most %v, or 0 for %v", o.Timeout, longestTimeout, defaultTimeout)
	case o.MaxOutput < 0 || o.MaxOutput > mostOutput:
		return fmt.Errorf("option max_output is %d, want 1 to %d, or 0 for %d", o.MaxOutput, mostOutput, defaultOutput)
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxOutput = cmp.Or(o.MaxOutput, defaultOutput)
	o.Shell = cmp.Or(o.Shell, defaultShell)
	dir, err := filepath.Abs(o.WorkingDir)
	if err != nil {
		return fmt.Errorf("option working_dir: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("option working_dir: %s is not a directory", dir)
	}
	o.WorkingDir = dir
	return nil
}

// environment returns the variables of commands. With patterns PATH has no relative directory: a command there would be a file
// of the working directory. The characters are then UTF-8: in others a backslash or a quote can be a part of a character.
func (o *Options) environment() ([]string, error) {
	for _, glob := range o.Env {
		if _, err := path.Match(glob, ""); err != nil || strings.ContainsRune(glob, '=') {
			return nil, fmt.Errorf("option env: %q is not the name of a variable, nor a glob such as \"GO*\"", texts.Cut(glob, 60))
		}
	}
	var env []string
	for name, value := range o.Environ {
		own := name == "PATH" || name == "HOME" // a container has its own
		named := name == "LANG" || own || slices.ContainsFunc(o.Env, func(glob string) bool {
			ok, err := path.Match(glob, name)
			return ok && err == nil
		})
		switch bounded := len(o.Allow)+len(o.Deny) > 0; {
		case bounded && name == "PATH":
			value = absolute(value)
		case bounded && slices.Contains(characters, name) && value != "" && !locale().MatchString(value):
			value = "C.UTF-8"
		}
		if named && !(own && o.Sandbox) {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

// characters are the variables that choose the encoding of characters.
var characters = []string{"LANG", "LC_ALL", "LC_CTYPE"}

// locale matches locales in which every byte of ASCII is a character.
var locale = lazy.Regexp(`^(?:C|POSIX|[\w-]+\.(?i:utf-?8)(?:@\w+)?)$`)

// absolute returns a PATH without its relative directories.
func absolute(list string) string {
	var dirs []string
	for _, dir := range filepath.SplitList(list) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

type server struct {
	options Options
	rules   *rules // nil: everything runs
	env     []string
	shell   string // the path of the program
	runner  Runner

	sessions atomic.Int32 // that have begun and not ended
	logging  sync.Mutex   // one line at a time
}

// prepare finds the shell and the runner.
func (s *server) prepare() (err error) {
	o := s.options
	s.shell = o.Shell
	if !o.Sandbox {
		s.runner = local{dir: o.WorkingDir}
		if s.shell, err = find(o.Shell, o.Environ["PATH"]); err != nil {
			return fmt.Errorf("option shell: %w", err)
		}
	}
	if s.rules != nil {
		if err := s.rules.speak(s.shell); err != nil {
			return err
		}
	}
	switch {
	case !o.Sandbox && s.rules != nil && absolute(o.Environ["PATH"]) == "": // shells then look in the working directory
		return errors.New("options allow and deny: PATH has no absolute directory to find commands in: " +
			"set it, such as to /usr/bin:/bin")
	case !o.Sandbox:
		return nil
	case o.Contain == nil:
		return errors.New("option sandbox: there is no container engine here")
	}
	s.runner, err = o.Contain(o.WorkingDir)
	if err != nil {
		return fmt.Errorf("option sandbox: %w", err)
	}
	return nil
}

// find returns the path of a program. exec.LookPath is not used because it reads the environment.
func find(name, list string) (string, error) {
	candidates := []string{name}
	if !strings.ContainsRune(name, '/') {
		candidates = nil
		for _, dir := range filepath.SplitList(absolute(list)) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	for _, file := range candidates {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return filepath.Abs(file)
		}
	}
	return "", fmt.Errorf("there is no program %q", texts.Cut(name, 60))
}
