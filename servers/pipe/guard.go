package pipe

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/workspace"
)

// programs are the commands that run in the sandbox, whose table checks their arguments.
var programs = []string{"awk", "cut", "fd", "grep", "head", "jq", "ls", "rg", "sed", "sort", "tail", "tr", "uniq", "wc"}

// others are the commands that are no programs, by what they do.
var others = map[string]role{"tee": saves, "cd": navigates, "pwd": navigates}

type role int

const (
	unknown role = iota
	runs
	saves
	navigates
)

func (s *server) roleOf(name string) role {
	if slices.Contains(s.programs, name) {
		return runs
	}
	return others[name]
}

const useTee = "Use tee to write files instead."

// instead says what to use for commands that people try.
var instead = map[string]string{
	"rm": useTee, "cp": useTee, "mv": useTee, "dd": useTee, "touch": useTee, "truncate": useTee, "install": useTee,
	"ln": useTee, "mkdir": "tee makes the directories of its file.",
	"cat": "Name the file behind a command (rg ERROR app.log), or use head and tail.", "tac": "Use sed -n '1!G;h;$p'.",
	"less": "Use head and tail.", "more": "Use head and tail.", "find": "Use fd PATTERN DIR.",
	"tree": "Use fd or ls -R.", "egrep": "Use grep -E.", "fgrep": "Use grep -F.",
	"echo": "Save text with the tool write.", "printf": "Save text with the tool write.", "vi": "Use sed and tee.",
	"ed": "Use sed and tee.", "perl": "Use awk, sed or jq.", "python": "Use awk, sed or jq.",
	"python3": "Use awk, sed or jq.",
	"xargs":   "Name the files behind a command, or search a directory with rg.",
	"env":     "There is no environment: write the command itself.", "sudo": "Write the command itself.",
	"sh": "Write the pipeline itself.", "bash": "Write the pipeline itself.", "eval": "Write the pipeline itself.",
	"exec": "Write the command itself.", "command": "Write the command itself.",
	"gawk": "Use awk.", "mawk": "Use awk.", "ripgrep": "Use rg.", "fdfind": "Use fd.",
	"curl": "There is no network here.", "wget": "There is no network here.",
}

// guard accepts the commands of a line, as far as it knows them: the engine checks the arguments of programs. Names of
// files begin in dir.
func (s *server) guard(commands []Command, dir string, oversize bool) *Failure {
	tees := 0
	for i := range commands {
		c := &commands[i]
		switch s.roleOf(c.Name) {
		case navigates:
			if len(commands) > 1 {
				return refuse(NavInPipe, "Call it alone, then the pipeline.", "'%s' stands in a pipeline.", c.Name)
			}
		case saves:
			if tees++; tees > 1 {
				return refuse(DisallowedArgument, "Save the other file in another call.", "a line saves one file.")
			}
			if i == 0 {
				return refuse(DisallowedCommand, "Put it behind a command, or save text with the tool write.",
					"'tee' has no input: it is the first command.")
			}
			if err := c.tee(dir, oversize, s.dir); err != nil {
				return err
			}
		case unknown:
			use, ok := instead[c.Name]
			if !ok {
				use = "Use one of " + strings.Join(s.programs, ", ") + " and tee in pipes; pwd and cd alone."
			}
			return refuse(DisallowedCommand, use, "%s is not allowed.", quoted(c.Name))
		}
	}
	return nil
}

// tee reads the arguments of a tee.
func (c *Command) tee(dir string, oversize bool, d *workspace.Dir) *Failure {
	const use = "Write tee FILE, or tee -a FILE to append."
	save := &Save{Oversize: oversize}
	var files []string
	for i, arg := range c.Args {
		switch {
		case arg == "--":
			files = append(files, c.Args[i+1:]...)
		case arg == "-a" || arg == "--append":
			save.Append = true
			continue
		case strings.HasPrefix(arg, "-"):
			return refuse(DisallowedArgument, use, "tee: %s is not an option that is offered here.", quoted(arg))
		default:
			files = append(files, arg)
			continue
		}
		break
	}
	if len(files) != 1 {
		return refuse(DisallowedArgument, use, "tee: %d files are named, want one.", len(files))
	}
	var err *Failure
	save.Path, err = target(files[0], dir, d)
	c.Save = save
	return err
}

// target returns the name of a file to save that is named in dir.
func target(name, dir string, d *workspace.Dir) (string, *Failure) {
	if !path.IsAbs(name) && name != "" && dir != "." {
		name = dir + "/" + name
	}
	rel, err := d.SaveName(name)
	if err != nil {
		return "", placed(err)
	}
	return rel, nil
}

// placed makes a Failure of an error of the workspace.
func placed(err error) *Failure {
	e, ok := errors.AsType[*workspace.Error](err)
	if !ok {
		e = workspace.Errorf(workspace.IoError, "", "%w", err)
	}
	f := &Failure{Code: string(e.Kind), Detail: e.Msg + ".", Use: "Name a path below the root."}
	if e.Hint != "" {
		f.Use = sentence(e.Hint)
	}
	switch {
	case e.Kind == workspace.PathEscape || errors.Is(err, workspace.ErrPrivate):
		f.Code, f.Reason = Violation, PathEscape
	case e.Kind == workspace.InvalidArgument:
		f.Code, f.Reason = Violation, DisallowedArgument
	}
	return f
}

// sentence writes a hint as one.
func sentence(hint string) string { return strings.ToUpper(hint[:1]) + hint[1:] + "." }
