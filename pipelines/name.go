package pipelines

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Server is the name of the server whose tools are the saved pipelines.
const Server = "pipelines"

// NamePattern is the regular expression for names of saved pipelines.
const NamePattern = `^[a-z][a-z0-9_]{0,47}$`

var validName = lazy.Regexp(NamePattern)

// ours are the names of the gateway's own tools, which no saved pipeline may have.
var ours = []string{"execute_pipeline", "list_all_tools", "get_tool_details", "list_available_shell_commands", "save_pipeline"}

// CheckName refuses a name that no saved pipeline can have.
func CheckName(name string) error {
	switch {
	case !validName().MatchString(name):
		return fmt.Errorf("%s cannot be the name of a saved pipeline: want a-z, 0-9 and _, a letter first, at most 48", texts.Quote(name))
	case slices.Contains(ours, name):
		return fmt.Errorf("%q is a tool of the gateway itself: give the pipeline another name", name)
	}
	return nil
}

// SplitName splits NAME@3 into the name and the version; 0: the current one.
func SplitName(text string) (name string, version int, err error) {
	name, number, numbered := strings.Cut(text, "@")
	if numbered {
		if version, err = strconv.Atoi(number); err != nil || version < 1 || strconv.Itoa(version) != number {
			return "", 0, fmt.Errorf("%s names no version: write NAME@3", texts.Quote(text))
		}
	}
	return name, version, CheckName(name)
}
