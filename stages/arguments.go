package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// arguments builds a call's arguments from what flows in, what the plan says, and the fallback for what neither gives,
// and names the fields of the data that the tool does not take (docs/pipeline.md, tool). none: it takes no field of them.
func arguments(ctx context.Context, tool *Tool, args, fallback []member, data []byte, a about) (_ json.RawMessage, leftOut []string, none bool, _ error) {
	input := bytes.TrimSpace(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	if at := invalidUTF8(input); at >= 0 {
		return nil, nil, false, Errorf(InvalidArguments, "decode the data before, or leave out what is not text",
			"the data for the tool's arguments is not valid UTF-8 at byte %d (line %d)", at+1, 1+bytes.Count(input[:at], []byte("\n")))
	}
	var taken []member
	fields, err := readObject(input)
	switch {
	case a.Kind != ExactText && len(input) == 0:
	case a.Kind != ExactText && err == nil:
		for _, m := range fields {
			if !takes(tool.Input, m.key) {
				leftOut = append(leftOut, m.key)
				continue
			}
			taken = append(taken, member{m.key, literal(ctx, tool, m.key, m.value)})
		}
	default:
		key, err := openArgument(tool, slices.Concat(args, fallback), input)
		if err != nil && len(input) > 0 {
			return nil, nil, false, err
		} else if err == nil {
			taken = []member{{key, bareValue(ctx, tool, key, data, a)}}
		}
	}
	final := encodeObject(merge(fallback, taken, args))
	return final, leftOut, len(leftOut) > 0 && len(leftOut) == len(fields), nil
}

// takes reports whether a field of the data may become an argument. Fixed names count in any case, because
// many servers do not look at it.
func takes(in Input, name string) bool {
	fixed := slices.ContainsFunc(in.Fixed, func(f string) bool { return strings.EqualFold(f, name) })
	return !fixed && (!in.Closed || slices.Contains(in.Properties, name))
}

// openArgument chooses the argument that takes a value which is no object.
func openArgument(tool *Tool, args []member, input []byte) (string, error) {
	in := tool.Input
	if !given(args, "input") && (slices.Contains(in.Properties, "input") || len(in.Properties) == 0 && takes(in, "input")) {
		return "input", nil
	}
	left := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return given(args, name) })
	}
	open := left(in.Required)
	if len(open) == 1 {
		return open[0], nil
	}
	names := open
	if len(names) == 0 {
		names = left(in.Properties)
	}
	if len(names) == 0 {
		names = in.Properties
	}
	hint := "signature: " + tool.Signature
	if len(names) > 0 {
		hint = fmt.Sprintf(`build an object before, for example with jq -c '%s' (signature: %s)`, objectProgram(names, input), tool.Signature)
	}
	if len(open) == 0 && len(in.Required) > 0 {
		hint = "args has every required argument: to call the tool without this input, put jq -n '{}' before it; to use the input, " + hint
	}
	return "", Errorf(InvalidArguments, hint, "the tool takes arguments by name, and it is not clear which one %s is for", texts.Cut(string(input), 80))
}

// objectProgram is a jq program that makes an object of the first name, and of more where the input has more values.
func objectProgram(names []string, input []byte) string {
	var b strings.Builder
	isArray := len(input) > 0 && input[0] == '['
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		key, _ := json.Marshal(name)
		if identifier(name) {
			key = []byte(name)
		}
		if isArray {
			fmt.Fprintf(&b, "%s: .[%d]", key, i)
		} else {
			fmt.Fprintf(&b, "%s: .", key)
		}
	}
	return "{" + b.String() + "}"
}

func identifier(name string) bool {
	for i, c := range name {
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return name != ""
}

// bareValue is data as the value of argument key: the JSON value that it is, else a string. A value such as 17 or [1] is
// given as text where the tool's schema wants a string there.
func bareValue(ctx context.Context, tool *Tool, key string, data []byte, a about) json.RawMessage {
	text := json.RawMessage(a.string(data))
	value := bytes.TrimSpace(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	switch {
	case a.Kind == Values && json.Valid(value), a.Kind != ExactText && wholeJSON(value):
	default:
		if v := literal(ctx, tool, key, appendString(nil, value)); v[0] != '"' {
			return v
		}
		return text
	}
	if tool.Input.Check != nil && !fits(ctx, tool, key, value) && fits(ctx, tool, key, text) {
		return text
	}
	return literal(ctx, tool, key, value)
}

// fits reports whether a value may be the argument key, as far as its schema tells.
func fits(ctx context.Context, tool *Tool, key string, value json.RawMessage) bool {
	wrong, _ := tool.Input.Check(ctx, encodeObject([]member{{key, value}}), true)
	return len(wrong) == 0
}

// literal is a value of the data as argument key: of a string, the number or boolean that its text spells, where the
// argument is of that type and admits no string (docs/pipeline.md, for_each).
func literal(ctx context.Context, tool *Tool, key string, value json.RawMessage) json.RawMessage {
	if len(value) < 2 || value[0] != '"' || bytes.IndexByte([]byte("-0123456789tf"), value[1]) < 0 {
		return value
	}
	spelt := []byte(text(value))
	if !json.Valid(spelt) || bytes.ContainsAny(spelt, " \t\r\n") {
		return value
	}
	types := tool.Input.Declared[key].Types
	var wanted []string
	switch {
	case spelt[0] == 't' || spelt[0] == 'f':
		wanted = []string{"boolean"}
	case bytes.ContainsAny(spelt, ".eE"):
		wanted = []string{"number"}
	default:
		wanted = []string{"integer", "number"}
	}
	if len(types) == 0 {
		if tool.Input.Check != nil && !fits(ctx, tool, key, value) && fits(ctx, tool, key, spelt) {
			return spelt
		}
		return value
	}
	if !slices.Contains(types, "string") && slices.ContainsFunc(wanted, func(t string) bool { return slices.Contains(types, t) }) {
		return spelt
	}
	return value
}

// invalidUTF8 returns the offset of the first byte of b that is not UTF-8, or -1.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i, r := range string(b) {
		if r == utf8.RuneError && !bytes.HasPrefix(b[i:], []byte(string(utf8.RuneError))) {
			return i
		}
	}
	return -1
}
