package programs

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

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

// stage is a command stage as it is written in a pipeline.
type stage struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
}

// member is one of the members of a stage's JSON.
type member struct {
	name  string
	value any
}

// fix writes members of a stage that would be right.
func fix(members ...member) json.RawMessage {
	var parts []string
	for _, m := range members {
		parts = append(parts, texts.JSON(m.name)+":"+texts.JSON(m.value))
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

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
	if strings.ContainsAny(trimmed, " \t\n|;&<>`$()'\"") {
		return commandLine(trimmed, args)
	}
	plain := strings.ToLower(path.Base(trimmed))
	if offered(plain) {
		err := disallowed("write "+texts.JSON(plain), "command %s is not written plainly: commands have no path and are lower case", texts.Quote(name))
		err.Fix = fix(member{"command", plain})
		return err
	}
	if to, ok := renamed[plain]; ok {
		err := disallowed("use "+to[0], "command %s is available as %s", texts.Quote(name), to[0])
		err.Fix = fix(member{"command", to[0]}, member{"args", append(slices.Clone(to[1:]), args...)})
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
	for _, p := range table {
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
		return disallowed("no shell reads the command: write one stage for each, "+shortJSON(fixed),
			"command %s is several commands", texts.Quote(line))
	}
	return argumentsToo(line, fixed[0])
}

// argumentsToo refuses a command line that is one command, with the stage that it should be.
func argumentsToo(line string, fixed stage) *stages.Error {
	err := disallowed("give the arguments apart", "command %s holds its arguments too", texts.Quote(line))
	err.Fix = fix(member{"command", fixed.Command}, member{"args", fixed.Args})
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
	for range filterOptions {
		text = strings.TrimSpace(text)
		all := slices.Concat(options, []string{text}, args)
		if withinBounds(name, all) != nil {
			return nil
		}
		if p.filters(all, text) {
			return argumentsToo(line, stage{"command", name, all})
		}
		word, behind, more := strings.Cut(text, " ")
		if !more {
			break
		}
		options, text = append(options, word), behind
	}
	return nil
}

// filters reports whether args are right, and text is the filter among them and no option's value.
func (p Program) filters(args []string, text string) bool {
	parsed, err := p.read(args)
	return err == nil && len(parsed.operands()) > 0 && parsed.operands()[0].value == text
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

// shortJSON writes v as JSON unless that is too long for a hint.
func shortJSON(v any) string {
	if s := texts.JSON(v); len(s) <= 2000 {
		return s
	}
	return "with the name in \"command\" and the rest in \"args\""
}

// splitLine splits a command line into commands at "|", and into words as a shell does with simple quotes. rest is
// the first thing in it that only a shell could carry out, if there is one.
func splitLine(line string) (commands [][]string, rest string) {
	var words []string
	var word strings.Builder
	inWord := false
	end := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n', '\r':
			end()
		case '|':
			if strings.HasPrefix(line[i:], "||") {
				return nil, "||"
			}
			end()
			commands, words = append(commands, words), nil
		case ';', '&', '<', '>', '`', '(', ')':
			return nil, operatorAt(line[i:])
		case '$':
			return nil, "$"
		case '\\':
			if i++; i < len(line) {
				word.WriteByte(line[i])
				inWord = true
			}
		case '\'', '"':
			n := closing(line[i+1:], c)
			if n < 0 {
				return nil, string(c)
			}
			word.WriteString(unescape(line[i+1:i+1+n], c))
			inWord = true
			i += n + 1
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	end()
	return append(commands, words), ""
}

// operatorAt returns the operator that s begins with.
func operatorAt(s string) string {
	for _, op := range []string{"&&", ">>", "<<"} {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return s[:1]
}

// closing returns where the quote c ends in s, or -1.
func closing(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && c == '"' {
			i++
		} else if s[i] == c {
			return i
		}
	}
	return -1
}

// unescape takes away the backslashes that a shell takes away inside of double quotes.
func unescape(s string, c byte) string {
	if c == '\'' {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`").Replace(s)
}

// offered reports whether there is a program of that name, with or without a workspace.
func offered(name string) bool {
	p, ok := Find(name)
	return ok && !p.FilesOnly
}
