package cli

import (
	"regexp"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// A rewording replaces words for authors of stages by those for authors of lines, who have neither members of a stage nor inputs.
type rewording struct {
	of  func() *regexp.Regexp
	use string
}

// hintWords are for hints.
var hintWords = []rewording{
	{
		lazy.Regexp(`there are no files; to tell sources apart, .*`),
		"a command is not given the names of its files: call once for each file",
	},
	{lazy.Regexp(`(?:, others with|; for many,) "inputs": .*`), ""},
	{lazy.Regexp(`add "inputs": .*`), "give the value itself: grep -e PATTERN, jq --argjson NAME JSON"},
	{lazy.Regexp(`named inputs are for .*`), "a file of that name is called from ./ on: ./@b"},
	{lazy.Regexp(`the workspace's directory on`), "the current directory on"},
	{lazy.Regexp(`or raise "timeout" of this stage`), "or ask the operator for more time: --limit command"},
	{lazy.Regexp(`, or a smaller "concurrency"`), ", or fewer calls at a time"},
	{lazy.Regexp(`a preview stage`), "head"},
	{lazy.Regexp(`\b(put|to|let) (the|a) stage (before|that)\b`), "$1 $2 command $3"},
	{lazy.Regexp(`\b(make it|to) the next stage\b`), "$1 the next command"},
	{lazy.Regexp(`: a stage before,`), ": a command before,"},
	{lazy.Regexp(`the JSON of a stage`), "the JSON of a line"},
}

// refused begins the detail of a refusal whose reason is all of the rest.
const refused = `^(\S+: (?:-\S+ is|@include and @load are) not available: |awk: "(?s:.*)": )`

// detailWords are for details. Those quote the caller's data and the words of programs, which stay as they are: each pattern
// matches a whole sentence of ours around a quotation, or its beginning.
var detailWords = []rewording{
	{
		lazy.Regexp(refused + `it is about files, and a command sees nothing but what the stage before it wrote$`),
		"${1}rg and fd search directories",
	},
	{
		lazy.Regexp(refused + `(it|getline <) reads a file, and a command sees nothing but what the stage before it wrote$`),
		"${1}$2 reads a file besides the command's input",
	},
	{
		lazy.Regexp(refused + `(it writes a|a redirection writes to a) file, and a command writes only to the next stage$`),
		"${1}$2 file, and a command writes only to the next command",
	},
	{
		lazy.Regexp(refused + `it waits for a file to grow, and a stage's input ends$`),
		"${1}it waits for a file to grow, and a command's input ends",
	},
	{
		lazy.Regexp(`^(\S+: -\S+ "(?s:.*)" is not available: )there are no files, only named inputs such as @b$`),
		"${1}it takes no file here",
	},
	{
		lazy.Regexp(`^(\S+ was still busy after \S+), its "timeout" \(limit command; `),
		"$1, the time of one command (limit command; ",
	},
	{lazy.Regexp(`^(\S+ used more processor time than) its "timeout" of `), "$1 one command has: "},
}

// reword returns a text of the stages in the words of lines.
func reword(text string, words []rewording) string {
	for _, row := range words {
		text = row.of().ReplaceAllString(text, row.use)
	}
	return text
}
