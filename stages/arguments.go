package stages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// arguments builds a call's arguments from what flows in, what the plan says, and the fallback for what neither gives,
// and names the fields of the data that the tool does not take (pipeline.md §3).
func arguments(tool *Tool, args, fallback []member, input []byte) (json.RawMessage, []string, error) {
	input = bytes.TrimSpace(bytes.TrimPrefix(input, []byte(byteOrderMark)))
	if at := invalidUTF8(input); at >= 0 {
		return nil, nil, Errorf(InvalidArguments, "decode the data before, or leave out what is not text",
			"the data for the tool's arguments is not valid UTF-8 at byte %d (line %d)", at+1, 1+bytes.Count(input[:at], []byte("\n")))
	}
	var merged object
	var leftOut []string
	for _, m := range fallback {
		merged.set(m.key, m.value)
	}
	fields, err := parseObject(input)
	switch {
	case len(input) == 0:
	case err == nil:
		for _, m := range fields {
			if !takes(tool.Input, m.key) {
				leftOut = append(leftOut, m.key)
				continue
			}
			merged.set(m.key, m.value)
		}
	default:
		key, err := openArgument(tool, slices.Concat(args, fallback), input)
		if err != nil {
			return nil, nil, err
		}
		merged.set(key, bareValue(tool, key, input))
	}
	for _, m := range args {
		merged.set(m.key, m.value)
	}
	final := encodeObject(merged.members)
	return final, leftOut, checkFinal(tool, final)
}

// takes reports whether a field of the data may become an argument. Fixed names count whatever their case, because
// many servers do not look at it.
func takes(in Input, name string) bool {
	fixed := slices.ContainsFunc(in.Fixed, func(f string) bool { return strings.EqualFold(f, name) })
	return !fixed && (!in.Closed || slices.Contains(in.Properties, name))
}

func checkFinal(tool *Tool, final json.RawMessage) error {
	if tool.Input.Check == nil {
		return nil
	}
	if problems := tool.Input.Check(final, false); len(problems) > 0 {
		return Errorf(InvalidArguments, "signature: "+tool.Signature, "%s; the arguments were %s",
			strings.Join(problems, "; "), shortened(string(final), 200))
	}
	return nil
}

// openArgument chooses the argument that takes a value which is no object.
func openArgument(tool *Tool, args []member, input []byte) (string, error) {
	in := tool.Input
	if !given(args, "input") && (slices.Contains(in.Properties, "input") || len(in.Properties) == 0 && takes(in, "input")) {
		return "input", nil
	}
	var open []string
	for _, name := range in.Required {
		if !given(args, name) {
			open = append(open, name)
		}
	}
	if len(open) == 1 {
		return open[0], nil
	}
	names := open
	if len(names) == 0 {
		names = in.Properties
	}
	hint := "signature: " + tool.Signature
	if len(names) > 0 {
		hint = fmt.Sprintf(`build an object before, for example with jq -c '%s' (signature: %s)`, objectProgram(names, input), tool.Signature)
	}
	return "", Errorf(InvalidArguments, hint, "the tool takes arguments by name, and it is not clear which one %s is for", shortened(string(input), 80))
}

func given(args []member, name string) bool {
	for _, m := range args {
		if m.key == name {
			return true
		}
	}
	return false
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

// bareValue is input as the value of argument key: the JSON value that it is, else a string. A value such as 17 or
// [1] is given as text where the tool's schema wants a string there: a line of text has no type of its own.
func bareValue(tool *Tool, key string, input []byte) json.RawMessage {
	text := json.RawMessage(appendString(nil, input))
	if !json.Valid(input) {
		return text
	}
	if check := tool.Input.Check; check != nil {
		only := func(v json.RawMessage) bool { return len(check(encodeObject([]member{{key, v}}), true)) == 0 }
		if !only(input) && only(text) {
			return text
		}
	}
	return input
}
