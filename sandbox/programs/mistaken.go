package programs

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// substitutes are commands that people expect from a shell, and what replaces them here.
var substitutes = []struct{ of, use string }{
	{"cat less more", "leave the stage out: the data is passed on by itself"},
	{"echo printf", "to begin with a text, use jq: {\"type\":\"command\",\"command\":\"jq\",\"args\":[\"-nr\",\"\\\"text\\\"\"]}"},
	{"seq", "use jq: {\"type\":\"command\",\"command\":\"jq\",\"args\":[\"-n\",\"range(1;11)\"]}"},
	{"xargs", "set \"for_each\": true on the stage that is to run once for every item"},
	{"parallel", "set \"for_each\": true, and \"concurrency\", on the stage that is to run once for every item"},
	{"find ls fd", "there are no files; call a server's tool that lists what you need"},
	{"tee", "use the stage {\"type\":\"tee\",\"path\":…}, where a workspace is set; to look at the data use {\"type\":\"preview\"}"},
	{"sponge", "leave the stage out: there are no files to overwrite"},
	{"perl", "use jq for JSON, awk or sed -E for lines, grep -P for Perl's regular expressions"},
	{"python python3", "use jq for JSON, awk for lines, bc for numbers"},
	{"ruby php", "use jq for JSON, awk or sed -E for lines"},
	{"node", "use jq for JSON"},
	{"sh bash zsh", "no shell runs here: make every command a stage of its own"},
	{"curl wget", "commands have no network; call a server's tool in a tool stage"},
	{"timeout", "set \"timeout\" on the stage"},
	{"time", "leave it out: the report has the time of every stage"},
	{"sudo", "leave it out"},
	{"env export", "commands have no environment to speak of; give values with jq --arg or awk -v"},
	{"diff", "use jq to compare JSON values, or sort and uniq -u to compare lines"},
	{"md5sum sha1sum shasum", "use sha256sum"},
	{"expr", "use bc, or jq -n '1 + 2'"},
	{"dc", "use bc"},
	{"yq", "use jq; there is no YAML reader"},
	{"mlr", "use jq -R -s fromcsv for CSV, jq for JSON"},
	{"csvcut", "use jq -R -s fromcsv, then jq 'map({name})'"},
	{"xmllint", "use grep -oP, or sed"},
	{"od xxd hexdump", "use base64"},
	{"strings", "use grep -aoE '[[:print:]]{4,}'"},
	{"split csplit", "set \"for_each\": true on the stage that is to see one item at a time"},
	{"test", "use jq: if … then error(\"why\") else . end"},
	{"true", "leave the stage out"},
	{"rm cp mv mkdir touch", "there are no files"},
	{"watch", "run the pipeline again"},
	{"expand", "use sed 's/\\t/    /g'"},
	{"unexpand", "use sed 's/    /\\t/g'"},
	{"look", "use grep '^prefix'"},
	{"fmt", "use fold -s -w 80"},
	{"pr", "use column, or paste - -"},
}

// substitute returns what replaces a command, empty if that is not known.
func substitute(name string) string {
	for _, row := range substitutes {
		if slices.Contains(strings.Fields(row.of), name) {
			return row.use
		}
	}
	return ""
}

// renamed are commands that are here under another name, with arguments to put first.
var renamed = map[string][]string{
	"egrep": {"grep", "-E"}, "fgrep": {"grep", "-F"}, "ggrep": {"grep"}, "pcregrep": {"grep", "-P"},
	"ripgrep": {"rg"}, "ag": {"rg"}, "ack": {"rg"},
	"gawk": {"awk"}, "mawk": {"awk"}, "nawk": {"awk"}, "gsed": {"sed"}, "gojq": {"jq"}, "jaq": {"jq"},
	"ghead": {"head"}, "gtail": {"tail"}, "gsort": {"sort"}, "gdate": {"date"}, "sha256": {"sha256sum"},
}

// stage is a command stage as it is written in a pipeline, or those of its members that are wrong.
type stage struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
}

// fix writes members of a stage that would be right.
func fix(s stage) json.RawMessage { return json.RawMessage(texts.JSON(s)) }

func disallowed(hint, format string, args ...any) *stages.Error {
	err := stages.Errorf(stages.DisallowedCommand, hint, format, args...)
	err.Field = "command"
	return err
}

// unknownCommand explains why name is not a command, and what to write instead.
func unknownCommand(name string, args []string) *stages.Error {
	trimmed := strings.TrimSpace(name)
	if trimmed == "" {
		return disallowed("commands: "+strings.Join(names(), " "), "the command is empty")
	}
	if len(trimmed) <= maxArgBytes && strings.ContainsAny(trimmed, " \t\n|;&<>`$()'\"") {
		return commandLine(trimmed, args)
	}
	plain := strings.ToLower(path.Base(trimmed))
	if offered(plain) {
		err := disallowed("write "+texts.JSON(plain), "command %s is not written plainly: commands have no path and are lower case", texts.Quote(name))
		err.Fix = fix(stage{Command: plain})
		return err
	}
	if to, ok := renamed[plain]; ok {
		err := disallowed("use "+to[0], "command %s is available as %s", texts.Quote(name), to[0])
		err.Fix = fix(stage{Command: to[0], Args: append(slices.Clone(to[1:]), args...)})
		return err
	}
	if use := substitute(plain); use != "" {
		return disallowed(use, "command %s is not available", texts.Quote(name))
	}
	if near := nearest.List(plain, names(), 3); len(near) > 0 {
		return disallowed("did you mean "+strings.Join(near, " or ")+"?", "command %s is not available", texts.Quote(name))
	}
	return disallowed("commands: "+strings.Join(names(), " "), "command %s is not available", texts.Quote(name))
}

func names() []string {
	var ns []string
	for _, p := range All() {
		if !p.FilesOnly {
			ns = append(ns, p.Name)
		}
	}
	return ns
}

// commandLine takes apart a whole command line that was given as the command.
func commandLine(line string, args []string) *stages.Error {
	commands, rest := splitLine(line)
	if filter := filterLine(line, args, commands, rest); filter != nil {
		return filter
	}
	var fixed []stage
	for _, words := range commands {
		if len(words) == 0 {
			continue
		}
		name := strings.ToLower(path.Base(words[0]))
		if name == "cat" && len(commands) > 1 {
			continue // it only fetches data, and that arrives by itself
		}
		if to, ok := renamed[name]; ok {
			name, words = to[0], append(slices.Clone(to), words[1:]...)
		}
		fixed = append(fixed, stage{"command", name, words[1:]})
	}
	if n := len(fixed); n > 0 {
		fixed[n-1].Args = append(fixed[n-1].Args, args...)
	}
	switch {
	case rest != "":
		return disallowed("no shell reads the command: make every command a stage of its own, and leave out files, redirections and variables",
			"command %s contains %s, which only a shell understands", texts.Quote(line), texts.Quote(rest))
	case len(fixed) == 0:
		return disallowed("commands: "+strings.Join(names(), " "), "command %s is not available", texts.Quote(line))
	}
	for _, s := range fixed {
		if !offered(s.Command) {
			err := unknownCommand(s.Command, s.Args)
			err.Msg += fmt.Sprintf(", and command %s would need a shell", texts.Quote(line))
			return err
		}
	}
	if len(commands) > 1 {
		short := texts.JSON(fixed)
		if len(short) > 2000 {
			short = `with the name in "command" and the rest in "args"`
		}
		return disallowed("no shell reads the command: write one stage for each, "+short,
			"command %s is several commands", texts.Quote(line))
	}
	return argumentsToo(line, fixed[0])
}

// argumentsToo refuses a command line that is one command, with the stage that it should be.
func argumentsToo(line string, fixed stage) *stages.Error {
	err := disallowed("give the arguments apart", "command %s holds its arguments too", texts.Quote(line))
	err.Fix = fix(stage{Command: fixed.Command, Args: fixed.Args})
	return err
}

// filterOptions is how many words may stand before a filter of jq.
const filterOptions = 8

// filterLine takes "jq .orders | length" for what it is: the text behind jq is a filter without quotes, in which a bar,
// parentheses and variables are jq's own. It returns nil where a shell would have made something else of the line, as
// it does with redirections and with names of commands behind a bar. Whether the text is a filter is found out when it is
// sent.
func filterLine(line string, args []string, commands [][]string, rest string) *stages.Error {
	name, text, _ := strings.Cut(line, " ")
	if to, ok := renamed[name]; ok {
		name = to[0]
	}
	p, ok := Find(name)
	if !ok || name != "jq" || !strings.Contains("()$", rest) || rest == "" && !slices.ContainsFunc(commands, noCommand) {
		return nil
	}
	var options []string
	for more := true; more && len(options) < filterOptions; {
		text = strings.TrimSpace(text)
		all := slices.Concat(options, []string{text}, args)
		if withinBounds(name, all) != nil {
			return nil
		}
		if p, err := p.read(all); err == nil && len(p.operands()) > 0 && p.operands()[0].value == text { // no option's value
			return argumentsToo(line, stage{Command: name, Args: all})
		}
		var word string
		word, text, more = strings.Cut(text, " ")
		options = append(options, word)
	}
	return nil
}

// noCommand reports whether words begin with anything but the name of a command, of this place or another.
func noCommand(words []string) bool {
	if len(words) == 0 {
		return true
	}
	name := strings.ToLower(path.Base(words[0]))
	_, other := renamed[name]
	return !offered(name) && !other && substitute(name) == ""
}

// shellPart matches blanks, an operator, or a part of a word, which may be quoted.
var shellPart = lazy.Regexp("^(?:\\s+|\\|\\||&&|>>|<<|[|&;<>()$`]|'[^']*'|\"(?:[^\"\\\\]|\\\\(?s:.))*\"|\\\\(?s:.)?|[^\\s|&;<>()$`'\"\\\\]+)")

// splitLine splits a command line into commands at "|", and into words as a shell does with simple quotes. rest is
// the first thing in it that only a shell could carry out, if there is one.
func splitLine(line string) (commands [][]string, rest string) {
	var words []string
	var word []byte // nil between words
	end := func() {
		if word != nil {
			words, word = append(words, string(word)), nil
		}
	}
	for line != "" {
		part := shellPart().FindString(line)
		switch {
		case part == "": // a quote that is not closed
			return nil, line[:1]
		case part == "|":
			end()
			commands, words = append(commands, words), nil
		case strings.TrimSpace(part) == "":
			end()
		case strings.ContainsAny(part[:1], "|&;<>()$`"):
			return nil, part
		default:
			word = append(slices.Grow(word, 1), unquoted(part)...) // which is a word even where it is empty
		}
		line = line[len(part):]
	}
	end()
	return append(commands, words), ""
}

// unquoted takes away the quotes and backslashes that a shell takes away.
func unquoted(part string) string {
	switch part[0] {
	case '\'':
		return part[1 : len(part)-1]
	case '"':
		return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`").Replace(part[1 : len(part)-1])
	case '\\':
		return part[1:]
	}
	return part
}

// offered reports whether there is a program of that name, with or without a workspace.
func offered(name string) bool {
	p, ok := Find(name)
	return ok && !p.FilesOnly
}
