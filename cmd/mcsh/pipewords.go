package main

import (
	"regexp"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// pipeWords replace words for authors of stages by those for authors of lines, who have neither members of a stage nor inputs.
var pipeWords = []struct {
	of  func() *regexp.Regexp
	use string
}{
	{lazy.Regexp(`it is about files, and a command sees nothing but what the stage before it wrote`), "rg and fd search directories"},
	{lazy.Regexp(`reads a file, and a command sees nothing but what the stage before it wrote`), "reads a file besides the command's input"},
	{lazy.Regexp(`there are no files, only named inputs such as @b`), "only the command's input can be a file"},
	{lazy.Regexp(`there are no files; to tell sources apart, .*`), "a command is not given the names of its files: call once for each file"},
	{lazy.Regexp(`(?:, others with|; for many,) "inputs": .*`), ""},
	{lazy.Regexp(`add "inputs": .*`), "give the value itself: grep -e PATTERN, jq --argjson NAME JSON"},
	{lazy.Regexp(`named inputs are for .*`), "a file of that name is called from ./ on: ./@b"},
	{lazy.Regexp(`the workspace's directory on`), "the current directory on"},
	{lazy.Regexp(`, its "timeout" \(limit command; `), ", the time of one command (limit command; "},
	{lazy.Regexp(`than its "timeout" of`), "than one command has:"},
	{lazy.Regexp(`or raise "timeout" of this stage`), "or ask the operator for more time: --limit command"},
	{lazy.Regexp(`, or a smaller "concurrency"`), ", or fewer calls at a time"},
	{lazy.Regexp(`a preview stage`), "head"},
	{lazy.Regexp(`an earlier stage`), "an earlier command"},
	{lazy.Regexp(`\b(what|put|to|is) (the|a) stage (before|that)\b`), "$1 $2 command $3"},
	{lazy.Regexp(`\b(make it|to) the next stage\b`), "$1 the next command"},
	{lazy.Regexp(`: a stage before,`), ": a command before,"},
	{lazy.Regexp(`\ba stage's input\b`), "a command's input"},
	{lazy.Regexp(`the JSON of a stage`), "the JSON of a line"},
}

// forLine returns a message in the words of lines.
func forLine(text string) string {
	for _, row := range pipeWords {
		text = row.of().ReplaceAllString(text, row.use)
	}
	return text
}
