package ui

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// Bounds of the mistakes that are shown of a plan.
const (
	maxProblems = 50
	maxFixes    = 1 << 20 // bytes of all fixes: each is a whole plan
)

// A problem is a mistake of a plan, in the form that the editor reads.
type problem struct {
	At       string `json:"at"` // JSON pointer
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	Severity string `json:"severity"`
	Fix      *fix   `json:"fix,omitempty"`

	Where string `json:"-"` // for people
	Code  string `json:"-"`
}

// A fix is the text of a plan without a mistake.
type fix struct {
	Label string `json:"label"`
	Text  string `json:"text"`
	Whole bool   `json:"whole"`
}

// problems are the mistakes of a plan with that text.
func problems(text string, errs []*stages.Error) (list []problem) {
	room := maxFixes
	for _, e := range errs[:min(len(errs), maxProblems)] {
		stage := stagePointer([]byte(text), string(e.Place))
		p := problem{At: stage + fieldPointer(e), Message: texts.Fit(e.Msg, 2000), Hint: texts.Fit(e.Hint, 2000), Severity: "error", Where: "The plan", Code: string(e.Code)}
		if e.Place != "" {
			p.Where = "Stage " + texts.Fit(string(e.Place), 80)
		}
		from, to, found := spanOf([]byte(text), stage)
		if e.Place != "" && found && len(text) <= room {
			if p.Fix = fixOf(text, from, to, e); p.Fix != nil {
				room -= len(p.Fix.Text)
			}
		}
		list = append(list, p)
	}
	return list
}

// fieldPointer is the place of a mistake within its stage.
func fieldPointer(e *stages.Error) string {
	field := e.Field
	switch {
	case field != "":
	case e.Code == stages.UnknownTool:
		field = "name"
	case e.Code == stages.UnknownServer:
		field = "server"
	}
	pointer := ""
	for part := range strings.SplitSeq(strings.NewReplacer("[", ".", "]", "").Replace(field), ".") {
		if part != "" {
			pointer += "/" + escaped(part)
		}
	}
	return pointer
}

func escaped(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// stagePointer is the JSON pointer of the stage at a place: "3.users.1" is "/2/branches/users/0".
func stagePointer(text []byte, place string) (pointer string) {
	if place == "" {
		return ""
	}
	parts := strings.Split(place, ".")
	for i := 0; i < len(parts); i++ {
		name := ""
		if n, err := strconv.Atoi(parts[i]); err == nil {
			if i > 0 {
				pointer += "/stages"
			}
			pointer += "/" + strconv.Itoa(n-1)
			continue
		}
		for _, member := range []string{"/branches/", "/inputs/"} {
			if _, _, there := spanOf(text, pointer+member+escaped(parts[i])); there {
				name = member + escaped(parts[i])
			}
		}
		if i+1 == len(parts) || name == "" {
			return pointer
		}
		n, _ := strconv.Atoi(parts[i+1])
		pointer += name + "/" + strconv.Itoa(n-1)
		i++
	}
	return pointer
}

// spanOf returns the bytes of the value that a JSON pointer names.
func spanOf(text []byte, pointer string) (from, to int, found bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	for _, part := range strings.Split(pointer, "/")[1:] {
		if !enter(d, strings.NewReplacer("~1", "/", "~0", "~").Replace(part)) {
			return 0, 0, false
		}
	}
	var value json.RawMessage
	if d.Decode(&value) != nil {
		return 0, 0, false
	}
	to = int(d.InputOffset())
	return to - len(value), to, true
}

// enter reads up to the value of a member or an element of the next value.
func enter(d *json.Decoder, name string) bool {
	open, err := d.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return false
	}
	for i := 0; d.More(); i++ {
		key := strconv.Itoa(i)
		if open == json.Delim('{') {
			token, err := d.Token()
			if err != nil {
				return false
			}
			key, _ = token.(string)
		}
		if key == name {
			return true
		}
		if d.Decode(new(json.RawMessage)) != nil {
			return false
		}
	}
	return false
}

var (
	quotedWord = lazy.Regexp(`"(?:[^"\\]|\\.)*"`)
	meantWord  = lazy.Regexp(`did you mean (?:"([^"]+)"|([\w.-]+))(\?|,| or )`)
)

// fixOf returns the text with the stage between two offsets as it should be, where the mistake says it: as a whole stage, or as a
// name in place of another one, which stands there once.
func fixOf(text string, from, to int, e *stages.Error) *fix {
	if len(e.Fix) > 0 {
		return &fix{"Write " + texts.Fit(spaced(e.Fix), 80), text[:from] + spaced(e.Fix) + text[to:], true}
	}
	meant := meantWord().FindStringSubmatch(e.Hint)
	wrong := quotedWord().FindAllString(e.Msg, -1)
	if meant == nil || len(wrong) == 0 {
		return nil
	}
	name := texts.JSON(meant[1] + meant[2])
	stage, word := text[from:to], wrong[len(wrong)-1]
	if strings.Count(stage, word) != 1 {
		return nil
	}
	return &fix{"Write " + texts.Fit(name, 80), text[:from] + strings.Replace(stage, word, name, 1) + text[to:], true}
}
