package ui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

// Words are what plans are written with.
type Words interface {
	Servers(ctx context.Context) []Word
	Tools(ctx context.Context, server string) []Word
	// Tool returns the schema of the arguments of a tool, and the jq paths of what it has returned.
	Tool(ctx context.Context, server, name string) (input json.RawMessage, paths []string)
	Commands() []Word
}

// A Word is something that can be written at a place.
type Word struct {
	Name   string
	Detail string // in a few words
	Info   string // a sentence or more
	Insert string // as JSON; empty: the name as a string
}

// maxWords bounds the words that are proposed at once.
const maxWords = 200

// option is a Word in the form that the editor reads.
type option struct {
	Label  string `json:"label"`
	Detail string `json:"detail,omitempty"`
	Info   string `json:"info,omitempty"`
	Insert string `json:"insert,omitempty"`
}

// A spot is where the cursor is in a plan that need not be whole.
type spot struct {
	open   []level
	string string // what is written of the string at the cursor
	within bool   // the cursor is in a string
}

// A level is an object or an array around the cursor.
type level struct {
	bracket byte
	start   int
	key     string // the member whose value follows, in an object
	value   bool   // the cursor is at the value of the key
}

// spotOf finds out where the end of a text is.
func spotOf(before string) (s spot) {
	begin := -1 // of the string
	for i := 0; i < len(before); i++ {
		c := before[i]
		if begin >= 0 {
			switch c {
			case '\\':
				i++
			case '"':
				s.string, begin = before[begin:i], -1
				if n := len(s.open); n > 0 && s.open[n-1].bracket == '{' && !s.open[n-1].value {
					s.open[n-1].key = s.string
				}
			}
			continue
		}
		n := len(s.open)
		switch {
		case c == '"':
			begin = i + 1
		case c == '{' || c == '[':
			s.open = append(s.open, level{bracket: c, start: i})
		case n == 0:
		case c == '}' || c == ']':
			s.open = s.open[:n-1]
		case c == ':':
			s.open[n-1].value = true
		case c == ',':
			s.open[n-1].value = false
		}
	}
	if s.within = begin >= 0; s.within {
		s.string = before[begin:]
	}
	return s
}

// stageLists are the members that hold stages.
var stageLists = []string{"stages", "branches", "inputs"}

// list reports whether the level i holds stages.
func (s spot) list(i int) bool {
	if i < 0 || s.open[i].bracket != '[' {
		return false
	}
	return i == 0 || s.open[i-1].key == "stages" || i > 1 && slices.Contains(stageLists[1:], s.open[i-2].key)
}

// stage returns the level of the innermost stage around the cursor; -1: there is none.
func (s spot) stage() int {
	for i := len(s.open) - 1; i > 0; i-- {
		if s.open[i].bracket == '{' && s.list(i-1) {
			return i
		}
	}
	return -1
}

var stringMember = lazy.Regexp(`"(type|server|name|command)"\s*:\s*"([^"\\]*)"`)

// written are the strings in a stage that begins at an offset of a text, as far as they are written.
func written(text string, start int) map[string]string {
	found, depth := map[string]string{}, 0
	rest := text[start:min(len(text), start+64<<10)]
	end := len(rest)
	for i, quoted := 0, false; i < len(rest); i++ {
		switch c := rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				end, i = i, len(rest)
			}
		}
	}
	for _, m := range stringMember().FindAllStringSubmatch(rest[:end], -1) {
		if _, there := found[m[1]]; !there {
			found[m[1]] = m[2]
		}
	}
	return found
}

// complete proposes what can be written where before ends in text.
func complete(ctx context.Context, w Words, text, before string) []option {
	if !strings.HasPrefix(text, before) {
		text = before
	}
	s := spotOf(before)
	n, at := len(s.open), s.stage()
	switch {
	case n == 0:
		return nil
	case s.list(n-1) && !s.within:
		return options(kindWords())
	case at < 0:
		return nil
	}
	stage := written(text, s.open[at].start)
	top := s.open[n-1]
	switch {
	case at == n-1 && !top.value:
		return options(fieldWords(stage["type"], text[s.open[at].start:]))
	case at == n-1:
		return options(valueWords(ctx, w, stage, top.key))
	case at == n-2 && s.open[at].key == "args" && stage["server"] != "":
		input, _ := w.Tool(ctx, stage["server"], stage["name"])
		args, _ := fieldsOf(input)
		if !top.value {
			return options(memberWords(args.Fields))
		}
		return options(choiceWords(args.Fields, top.key))
	case at == n-2 && s.open[at].key == "args" && stage["command"] == "jq" && s.within:
		return pathOptions(ctx, w, s, text, at)
	}
	return nil
}

// valueWords are what a member of a stage can be.
func valueWords(ctx context.Context, w Words, stage map[string]string, key string) []Word {
	words := map[string]func() []Word{
		"type":    kindNames,
		"server":  func() []Word { return w.Servers(ctx) },
		"name":    func() []Word { return w.Tools(ctx, stage["server"]) },
		"command": w.Commands,
	}[key]
	if words != nil {
		return words()
	}
	return choiceWords(kindFields(stage["type"]), key)
}

var jqPath = lazy.Regexp(`[.\w\[\]]*$`)

// pathOptions proposes jq paths into what the tool before the stage returns.
func pathOptions(ctx context.Context, w Words, s spot, text string, at int) []option {
	before := text[:s.open[at].start]
	begin := strings.LastIndexByte(before, '{')
	if begin < 0 || !strings.Contains(before[begin:], "}") {
		return nil
	}
	if args := strings.LastIndex(before[:begin], `{"type"`); args >= 0 && strings.Contains(before[args:begin], `"args"`) {
		begin = args // the arguments are an object of their own
	}
	tool := written(text, begin)
	if tool["server"] == "" {
		return nil // it calls no tool
	}
	_, paths := w.Tool(ctx, tool["server"], tool["name"])
	typed := jqPath().FindString(s.string)
	front := strings.TrimSuffix(s.string, typed)
	var list []option
	for _, path := range paths {
		if strings.HasPrefix(path, typed) && len(list) < maxWords {
			list = append(list, option{Label: front + path, Detail: "seen in results"})
		}
	}
	return list
}

// options writes words for the editor, bounded.
func options(words []Word) []option {
	list := []option{}
	for _, w := range words[:min(len(words), maxWords)] {
		list = append(list, option{texts.Cut(w.Name, 200), texts.Fit(w.Detail, 80), texts.Fit(w.Info, 400), w.Insert})
	}
	return list
}

// memberWords are members of an object.
func memberWords(fields []schemas.Field) (list []Word) {
	for _, f := range fields {
		w := Word{Name: f.Name, Detail: f.Type(), Info: f.Description, Insert: texts.JSON(f.Name) + ": " + emptyOf(f)}
		if f.Required {
			w.Detail += ", required"
		}
		list = append(list, w)
	}
	return list
}

// emptyOf is what somebody writes into.
func emptyOf(f schemas.Field) string {
	return map[string]string{"string": `""`, "object": "{}", "array": "[]"}[strings.Join(f.Types, " ")]
}

// choiceWords are the values of a member that takes only some.
func choiceWords(fields []schemas.Field, name string) (list []Word) {
	i := slices.IndexFunc(fields, func(f schemas.Field) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	values := fields[i].Choices
	if len(values) == 0 && slices.Contains(fields[i].Types, "boolean") {
		values = []string{"true", "false"}
	}
	for _, value := range values {
		list = append(list, Word{Name: plainText(json.RawMessage(value)), Insert: value})
	}
	return list
}

// kindWords are the kinds of stages, each with the fields that it must have.
func kindWords() (list []Word) {
	for _, k := range stages.Kinds() {
		insert := `{"type": ` + texts.JSON(k.Name)
		for _, f := range kindFields(k.Name) {
			if f.Required && f.Name != "type" {
				insert += ", " + texts.JSON(f.Name) + ": " + emptyOf(f)
			}
		}
		list = append(list, Word{Name: k.Name, Detail: k.Summary, Insert: insert + "}"})
	}
	return list
}

// kindNames are the kinds of stages, by name alone.
func kindNames() []Word {
	words := kindWords()
	for i := range words {
		words[i].Insert = ""
	}
	return words
}

// fieldWords are the fields that a stage does not have yet.
func fieldWords(kind, stage string) []Word {
	return memberWords(slices.DeleteFunc(slices.Clone(kindFields(kind)), func(f schemas.Field) bool {
		return strings.Contains(stage[:min(len(stage), 2000)], texts.JSON(f.Name)+":")
	}))
}

// published has the fields of each kind of stage, from the JSON Schema of execute_pipeline.
var published = sync.OnceValue(func() map[string][]schemas.Field {
	var doc struct {
		Defs struct {
			Stage struct{ OneOf []json.RawMessage }
		} `json:"$defs"`
	}
	all := map[string][]schemas.Field{}
	if json.Unmarshal(schemas.ExecutePipeline(stages.Kinds(), schemas.Options{}), &doc) != nil {
		return all
	}
	for _, kind := range doc.Defs.Stage.OneOf {
		said, _ := fieldsOf(kind) // the schema is ours
		for _, f := range said.Fields {
			if f.Name == "type" {
				all[plainText(json.RawMessage(f.Choices[0]))] = said.Fields
			}
		}
	}
	return all
})

// kindFields are the fields of a kind of stage; of no kind: type alone.
func kindFields(kind string) []schemas.Field {
	if fields := published()[kind]; fields != nil {
		return fields
	}
	return []schemas.Field{{Name: "type", Required: true, Types: []string{"string"}}}
}
