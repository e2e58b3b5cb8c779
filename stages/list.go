package stages

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// List is a list of stages that is not decoded yet; [Scope.List] compiles it.
type List []json.RawMessage

// Branches are named lists of stages, in the order in which they were written: of a parallel stage or a command.
type Branches []Branch

// Branch is one named list of stages.
type Branch struct {
	Name   string
	Stages List
}

// UnmarshalJSON decodes an object of lists, keeping the order of its keys.
func (b *Branches) UnmarshalJSON(data []byte) error {
	members, err := parseObject(data)
	if err != nil {
		return err
	}
	*b = nil
	seen := map[string]bool{}
	for _, m := range members {
		if seen[m.key] {
			return fmt.Errorf("%q is given twice", m.key)
		}
		seen[m.key] = true
		var list List
		if err := json.Unmarshal(m.value, &list); err != nil {
			return fmt.Errorf("%q must be an array of stages", m.key)
		}
		*b = append(*b, Branch{Name: m.key, Stages: list})
	}
	return nil
}

// Args are the arguments of a command. One string is taken as one argument, because models write "args": "map(.a)".
type Args []string

// UnmarshalJSON accepts an array of strings, or one string.
func (a *Args) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		*a = make(Args, 1)
		return json.Unmarshal(data, &(*a)[0])
	}
	return json.Unmarshal(data, (*[]string)(a))
}
