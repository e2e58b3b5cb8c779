package shell

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Rules bound the commands of a line.
type rules struct {
	allow []string // patterns: names, or beginnings of names with "*"; nil: everything that is not denied
	deny  []string // likewise, in lower case

	dialects []syntax.LangVariant
}

// newRules returns nil without patterns.
func newRules(allow, deny []string) (*rules, error) {
	if allow == nil && deny == nil {
		return nil, nil
	}
	r := &rules{}
	var err error
	if r.allow, err = patterns("allow", allow); err != nil {
		return nil, err
	}
	r.deny, err = patterns("deny", deny)
	for i, p := range r.deny {
		r.deny[i] = strings.ToLower(p)
	}
	return r, err
}

// patterns splits a list at commas. An empty list is an error: to take it for no list would allow everything.
func patterns(option string, list []string) ([]string, error) {
	if list != nil && len(list) == 0 {
		return nil, fmt.Errorf("option %s is empty: name a command, or leave the option out", option)
	}
	var all []string
	for _, entry := range list {
		for p := range strings.SplitSeq(entry, ",") {
			p = strings.TrimSpace(p)
			if p == "" || strings.ContainsAny(p, " \t\n") || strings.Contains(strings.TrimSuffix(p, "*"), "*") {
				return nil, fmt.Errorf("option %s: %q is no pattern: want the name of a command such as \"git\", or its beginning with a star such as \"git*\"; patterns do not see arguments",
					option, texts.Cut(p, 60))
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// dialects are the languages in which a shell's lines are parsed; all must agree that a line may run. sh and dash can be either: sh
// is what the system has, and new releases of dash know more of bash.
var dialects = map[string][]syntax.LangVariant{
	"sh":   {syntax.LangPOSIX, syntax.LangBash},
	"dash": {syntax.LangPOSIX, syntax.LangBash},
	"bash": {syntax.LangBash},
}

// speak chooses the dialects of a shell. A link is the program that it leads to, as far as that is here.
func (r *rules) speak(shell string) error {
	r.dialects = dialects[path.Base(shell)]
	real, err := filepath.EvalSymlinks(shell)
	if err == nil && dialects[path.Base(real)] == nil && path.Base(real) != "busybox" || r.dialects == nil {
		return fmt.Errorf("options allow and deny are for sh, dash and bash, whose lines are parsed: %s is another shell", texts.Cut(shell, 60))
	}
	return nil
}

// describe returns sentences for agents, with a space before each; empty: everything runs.
func (r *rules) describe() string {
	if r == nil {
		return ""
	}
	text := ""
	if r.allow != nil {
		text += " Allowed commands: " + texts.Fit(strings.Join(r.allow, ", "), maxDescribed) + "."
	}
	if r.deny != nil {
		text += " Denied commands: " + texts.Fit(strings.Join(r.deny, ", "), maxDescribed) + "."
	}
	return text
}

const maxDescribed = 500 // bytes of a list

// matches reports whether a pattern matches a name. A pattern without a slash is for the last part of a path.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		part := name
		if !strings.ContainsRune(p, '/') {
			part = path.Base(name)
		}
		beginning, star := strings.CutSuffix(p, "*")
		return p == part || star && strings.HasPrefix(part, beginning)
	})
}

// climbs reports whether a name leads out of a directory. Then no pattern for paths says where to.
func (r *rules) climbs(name string) bool {
	return slices.Contains(strings.Split(name, "/"), "..") &&
		slices.ContainsFunc(slices.Concat(r.allow, r.deny), func(p string) bool { return strings.ContainsRune(p, '/') && strings.HasSuffix(p, "*") })
}

// permits says why a command may not run.
func (r *rules) permits(name string) error {
	base := path.Base(name)
	lower := strings.ToLower(name) // some file systems take both cases for one
	shown := texts.Quote(name)
	switch {
	case name == "" || name[0] == '-' || strings.ContainsRune(name, '=') || slices.Contains(reserved, name):
		return fmt.Errorf("%s is not the name of a command", shown)
	case matches(r.deny, lower):
		return fmt.Errorf("%s is denied", shown)
	case matches(runOthers, lower) && !r.listed(name) && !r.listed(base):
		return fmt.Errorf("%s can run other commands: it needs its own name in allow, without a star%s", shown, r.beside(base))
	case r.climbs(name):
		return fmt.Errorf("%s has \"..\" in it, and a pattern is a beginning of paths: give the path without it", shown)
	case r.allow != nil && !matches(r.allow, name):
		return fmt.Errorf("%s is not allowed", shown)
	}
	return nil
}

// listed reports whether the operator names something, without a star.
func (r *rules) listed(name string) bool { return slices.Contains(r.allow, name) }

// beside adds, where there are only denied commands, that a list of allowed ones must have the others too.
func (r *rules) beside(name string) string {
	if r.allow != nil {
		return ""
	}
	return fmt.Sprintf("; to keep all others allowed: --allow '*,%s'", texts.Cut(name, 60))
}

// mayAssign says why a variable may not be assigned.
func (r *rules) mayAssign(name string) error {
	if !identifier().MatchString(name) {
		return fmt.Errorf("%s is not the name of a variable", texts.Quote(name))
	}
	if matches(guarded, name) && !r.listed(name) {
		return fmt.Errorf("the variable %s decides what runs: it needs its own name in allow%s", texts.Quote(name), r.beside(name))
	}
	return nil
}

// Why a form is refused.
var (
	errForm = errors.New("only plain commands, pipes, lists, loops, conditions and substitutions can be checked, without arrays, aliases, functions and computed numbers")

	errFunction   = errors.New(`functions are not allowed: write their commands out, or allow must have "function" and their names`)
	errArray      = errors.New("arrays cannot be checked: use plain variables or a loop over words")
	errArithmetic = errors.New("arithmetic can be checked only with numbers in it, without variables")
	errNotASCII   = errors.New("the line has characters beyond ASCII outside quotes: put quotes around them")
	errBackquotes = errors.New("backquotes cannot be checked: write $(…)")
)

// reserved are words that are no commands. A shell that knows them where the parser does not would run what follows.
var reserved = strings.Fields("if then else elif fi do done case esac for while until in select function coproc { } ! [[ ]]")

// function is the entry of allow for declarations of functions.
const function = "function"

// runOthers are the builtins that take text for commands or change what a name means, and the programs whose purpose is to run
// others. Each needs an entry of its own.
var runOthers = strings.Fields(`
	. source eval exec command builtin trap alias unalias enable hash bind complete compgen compopt fc history jobs let declare
	typeset local nameref shopt caller
	env xargs sh ash dash bash rbash ksh* mksh zsh fish csh tcsh busybox toybox nice nohup timeout time setsid stdbuf chroot unshare nsenter
	ionice chrt taskset flock watch parallel genv gtimeout gxargs gnice gnohup gstdbuf
	bash-static posh yash coreutils run-parts bwrap fakeroot gosu su-exec sudo sudoedit su doas runuser setpriv pkexec run0 systemd-run script scriptlive expect strace ltrace
	gdb setarch linux32 linux64 i386 x86_64 uname26 prlimit choom numactl ld.so ld-linux* ld-musl* entr start-stop-daemon daemon at batch crontab`)

// guarded are the variables that decide what a command is, or whose values shells evaluate.
var guarded = strings.Fields(`
	PATH LD_* DYLD_* IFS ENV BASH* PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND SHELLOPTS EXECIGNORE GCONV_PATH
	LANG LC_* LANGUAGE LOCPATH NLSPATH RANDOM SRANDOM SECONDS LINENO HIST* OPTIND OPTERR EPOCH* FUNC* COMP* DIRSTACK GROUPS PIPESTATUS MAPFILE TMOUT EUID UID PPID`)
