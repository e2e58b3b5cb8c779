// Package strictjson decodes one JSON object into a struct and refuses what the struct does not know: unknown,
// repeated and differently capitalised names, values of the wrong type, and anything after the object. Its messages are
// meant for the person or agent who wrote the object. It knows nothing of tools or configuration.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decode decodes data into the struct that v points to. The struct's fields are matched by the names in their json
// tags, exactly; fields without one are not settable. A member that is null counts as absent; empty data and null count
// as {}. Integers may be written as 3.0 or 3e0. A time.Duration is a string such as "1.5s" or a number of seconds.
// What names a member in messages, such as "argument" or "option".
func Decode(what string, data []byte, v any) error {
	fields := fieldsOf(v)
	members, err := Members(what, data)
	if err != nil {
		return err
	}
	known := make([]string, 0, len(fields))
	for _, f := range fields {
		known = append(known, f.name)
	}
	for _, m := range members {
		i := slices.Index(known, m.Name)
		if i < 0 {
			return fmt.Errorf("unknown %s %q%s", what, shorten(m.Name), suggest(m.Name, known))
		}
		if string(m.Value) == "null" {
			continue
		}
		if err := assign(fields[i].value, m.Value); err != nil {
			return fmt.Errorf("%s %q: %w", what, m.Name, err)
		}
	}
	return nil
}

// A Member is one name and value of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of the object data in their order. A repeated name is an error.
func Members(what string, data []byte) ([]Member, error) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if data[0] != '{' {
		return nil, fmt.Errorf("want a JSON object of %ss, got %s", what, shorten(string(data)))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("reading %ss: %w", what, err)
	}
	var list []Member
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("reading %ss: %w", what, early(err))
		}
		m := Member{Name: key.(string)} // inside an object every other token is a string
		if err := dec.Decode(&m.Value); err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", what, shorten(m.Name), early(err))
		}
		if seen[m.Name] {
			return nil, fmt.Errorf("%s %q is given twice", what, shorten(m.Name))
		}
		seen[m.Name] = true
		list = append(list, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("reading %ss: %w", what, early(err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("there is more after the object of %ss", what)
	}
	return list, nil
}

// early gives the end of the input the meaning that it has inside an object.
func early(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Names returns the names that Decode accepts for the struct v or the struct that v points to, in their order.
func Names(v any) []string {
	if reflect.TypeOf(v).Kind() != reflect.Pointer {
		p := reflect.New(reflect.TypeOf(v))
		v = p.Interface()
	}
	var names []string
	for _, f := range fieldsOf(v) {
		names = append(names, f.name)
	}
	return names
}

// A Field is a member that Decode accepts for a struct.
type Field struct {
	Name  string
	Usage string // the tag "usage": one line for people
	Type  reflect.Type
}

// Fields describes the members that Decode accepts for the struct that v points to, in their order.
func Fields(v any) []Field {
	var list []Field
	for _, f := range fieldsOf(v) {
		list = append(list, Field{f.name, f.usage, f.value.Type()})
	}
	return list
}

type field struct {
	name, usage string
	value       reflect.Value
}

func fieldsOf(v any) []field {
	s := reflect.ValueOf(v)
	if s.Kind() != reflect.Pointer || s.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("strictjson: internal error: want a pointer to a struct, got %T", v))
	}
	s = s.Elem()
	var list []field
	for i := range s.NumField() {
		tag := s.Type().Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		if name != "" && name != "-" {
			list = append(list, field{name, tag.Get("usage"), s.Field(i)})
		}
	}
	return list
}

// assign decodes raw, which is not null, into v.
func assign(v reflect.Value, raw json.RawMessage) error {
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if err := assign(p.Elem(), raw); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	got := shorten(string(raw))
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := duration(raw)
		if err != nil {
			return err
		}
		v.SetInt(int64(d))
	case v.CanInt():
		n, ok := integer(raw)
		if !ok || v.OverflowInt(n) {
			return fmt.Errorf("want an integer, got %s", got)
		}
		v.SetInt(n)
	default:
		err := json.Unmarshal(raw, v.Addr().Interface())
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("want %s, got %s", describe(v.Type()), got)
		}
		return err
	}
	return nil
}

// integer reads a JSON number without a fraction, however it is written.
func integer(raw json.RawMessage) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	const exact = 1 << 53 // beyond, a float64 no longer tells neighbours apart
	f, err := strconv.ParseFloat(string(raw), 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) <= exact
}

func duration(raw json.RawMessage) (time.Duration, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	} else if s, err := strconv.ParseFloat(string(raw), 64); err == nil && math.Abs(s) < math.MaxInt64/float64(time.Second) {
		return time.Duration(s * float64(time.Second)), nil
	}
	return 0, fmt.Errorf(`want a duration such as "1.5s" or a number of seconds, got %s`, shorten(string(raw)))
}

// describe names a Go type in the words of JSON.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Slice:
		return "an array whose elements are each " + describe(t.Elem())
	case reflect.Map:
		return "an object whose values are each " + describe(t.Elem())
	}
	return "another type"
}

// shorten cuts a value for a message.
func shorten(s string) string {
	const longest = 60
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "..."
}
