package stdio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/upstream/rpc"
)

// inherited are the variables that a program gets without being named in its configuration. Others are not passed on: an
// environment often holds secrets, and some servers print theirs.
var inherited = []string{"PATH", "HOME", "LANG", "TERM", "USER", "SHELL", "LOGNAME"}

// A Command is a local program that speaks MCP on its standard streams.
type Command struct {
	Name string   // a program: looked up in PATH, or a path if it has a slash
	Args []string // without the program's name
	Dir  string   // working directory; empty: this process's

	Env map[string]string // variables of its own

	// Lookup returns the values of PATH, HOME, LANG, TERM, USER, SHELL and LOGNAME, which every program gets. It is not
	// called for other variables. A nil Lookup returns none.
	Lookup func(name string) (string, bool)

	Where string // where it is configured, such as "mcp.json:7", for messages
}

// environ is the whole environment of the program.
func (c *Command) environ() []string {
	var env []string
	for _, name := range inherited {
		if _, own := c.Env[name]; own || c.Lookup == nil {
			continue
		}
		if v, ok := c.Lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range c.Env {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	return env
}

// find returns the path of the program. exec.LookPath is not used because it reads this process's environment.
func (c *Command) find() (string, error) {
	if err := c.directory(); err != nil {
		return "", err
	}
	if strings.ContainsRune(c.Name, '/') {
		path := c.Name
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		path, err := filepath.Abs(path)
		if err == nil {
			err = executable(path)
		}
		if err != nil {
			return "", &rpc.DialError{
				Hint: c.argsHint("give the path of a program that exists and may be run" + c.at()),
				Err:  fmt.Errorf("command %q: %w", c.Name, bare(err)),
			}
		}
		return path, nil
	}
	var dirs []string
	for _, variable := range c.environ() {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			dirs = filepath.SplitList(path)
		}
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, c.Name)
		if filepath.IsAbs(path) && executable(path) == nil {
			return path, nil
		}
	}
	hint := "install it, or give its whole path as command" + c.at()
	if name := nearest.Name(c.Name, programs(dirs)); name != "" {
		hint = fmt.Sprintf("did you mean %q? Else %s", name, hint)
	}
	return "", &rpc.DialError{Hint: c.argsHint(hint), Err: fmt.Errorf("command %q not found in PATH (%s)", c.Name, strings.Join(dirs, ":"))}
}

// argsHint returns the hint for a command that includes its arguments, or the given one.
func (c *Command) argsHint(hint string) string {
	if words := strings.Fields(c.Name); len(words) > 1 {
		return fmt.Sprintf(`"command" is the program alone, %q; its arguments belong in "args"`, words[0]) + c.at()
	}
	return hint
}

// directory checks the working directory. The kernel's error would sound as if the program were missing.
func (c *Command) directory() error {
	if c.Dir == "" {
		return nil
	}
	info, err := os.Stat(c.Dir)
	if err == nil && !info.IsDir() {
		err = errors.New("is not a directory")
	}
	if err == nil {
		return nil
	}
	return &rpc.DialError{Hint: "create that directory, or fix cwd" + c.at(), Err: fmt.Errorf("cwd %q: %w", c.Dir, bare(err))}
}

func (c *Command) at() string {
	if c.Where == "" {
		return ""
	}
	return " (" + c.Where + ")"
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("is a directory")
	case info.Mode()&0o111 == 0:
		return errors.New("is not executable")
	}
	return nil
}

// bare removes the operation and the path from an error: the message has them already.
func bare(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// programs lists the files in the directories of PATH, as far as they can be read.
func programs(dirs []string) []string {
	var names []string
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}
	return names
}
