package stages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	paths "path"
	"strconv"
	"strings"
)

// An actKey stands for what a stage does that may change something: the call of a tool with its literal arguments, or
// the appending to a file. Empty: it does nothing of that kind, or again the same (a file that is replaced).
type actKey string

func actKeyOf(stage map[string]any) actKey {
	var what any
	switch stage["type"] {
	case "tool":
		args, _ := stage["args"].(map[string]any)
		if len(args) == 0 {
			args = nil
		}
		what = []any{"tool", stage["server"], stage["name"], plainNumbers(args)}
	case "tee":
		file, _ := stage["path"].(string)
		if stage["append"] != true {
			return ""
		}
		what = []any{"tee", paths.Clean(file)}
	default:
		return ""
	}
	text, err := json.Marshal(what) // sorts the names
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return actKey(hex.EncodeToString(sum[:16]))
}

// plainNumbers writes equal numbers alike, for 1, 1.0 and 1e0 are the same to a tool. Whole ones keep all their digits.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		plain := make(map[string]any, len(v))
		for name, member := range v {
			plain[name] = plainNumbers(member)
		}
		return plain
	case []any:
		plain := make([]any, len(v))
		for i, element := range v {
			plain[i] = plainNumbers(element)
		}
		return plain
	case json.Number:
		return plainNumber(v)
	}
	return value
}

func plainNumber(n json.Number) json.Number {
	if n == "-0" {
		return "0"
	}
	if !strings.ContainsAny(string(n), ".eE") {
		return n
	}
	f, err := n.Float64()
	switch {
	case err != nil: // it is too large
		return n
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		return json.Number(strconv.FormatInt(int64(f), 10))
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
}

// written is a step as it was written, with the one name of the file that it saves.
func (s *Step) written() map[string]any {
	stage := decoded(s.raw)
	if stage != nil && s.file != "" {
		stage["path"] = s.file
	}
	return stage
}

// acts lists what a step and the steps within it, inputs too, do that may change something.
func (s *Step) acts() (keys []actKey) {
	if s.mapped != nil {
		return s.mapped.acts()
	}
	if s.Effect == Changes {
		keys = appendAct(keys, s.written())
	}
	for _, n := range s.Nested {
		for _, inner := range n.Steps {
			keys = append(keys, inner.acts()...)
		}
	}
	return keys
}

// acted lists what a stage, and those within it, have done that took effect, or may have.
func (m *Meter) acted() (keys []actKey) {
	for inner := range m.all() {
		if inner.took.Load() > 0 {
			keys = appendAct(keys, inner.step.written())
		}
	}
	return keys
}

// actsIn lists what a stage as it was written may do, at any depth.
func actsIn(raw json.RawMessage) (keys []actKey) {
	for stage := range objectsIn(decoded(raw)) {
		keys = appendAct(keys, stage)
	}
	return keys
}

func appendAct(keys []actKey, stage map[string]any) []actKey {
	if key := actKeyOf(stage); key != "" {
		keys = append(keys, key)
	}
	return keys
}
