package programs

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// Given is what a command may name besides its standard input.
type Given struct {
	Inputs []string // names of its inputs; one that is not read is a mistake too
	Files  bool     // files of a workspace
	Added  Added    // the programs besides those of the table
	Values []int    // indexes of arguments that are values: see [stages.Command]

	// Dir is the directory of the workspace in which the command runs, clean and relative to it; names of files begin
	// there. Empty: it runs in the workspace's own.
	Dir string

	// Searches says that rg searches its directory where it names no file, as in a shell: nothing flows into it.
	Searches bool
}

// private are the directories of a workspace that are not for callers, at any level: the gateway's drafts and what was
// saved, and the history of files. No command sees them.
var private = []string{".mcsh", ".filesystem"}

// maxFiles is how many files a command may name. paste has all of them open at once, and so has the worker.
const maxFiles = 50

// reads takes an operand for a file to read, or refuses it.
func (p *parsed) reads(i int) *stages.Error {
	w := p.words[i]
	if !p.given.Files || shellWords[w.value] != "" || isInputName(w.value) {
		return p.noFile(w)
	}
	if w.value == "" {
		return refuse(w.at, "name a file of the workspace, such as data/orders.csv", "%s: the name of a file is empty", p.Name)
	}
	if wrong := filePath(w.value, p.given.Dir); wrong != nil {
		return refuse(w.at, wrong.use, "%s: %s: %w", p.Name, texts.Quote(w.value), &escape{wrong.why})
	}
	if n := len(p.named()); n == maxFiles {
		return refuse(w.at, "name fewer, or search a directory with rg", "%s: more than %d files are named", p.Name, maxFiles)
	}
	p.words[i].file = true
	return nil
}

// ErrEscape is in the error of a name that leads out of the workspace, or to what is not for callers.
var ErrEscape = errors.New("it is not a file for commands")

// escape is an ErrEscape with a reason.
type escape struct{ why string }

func (e *escape) Error() string        { return e.why }
func (e *escape) Is(target error) bool { return target == ErrEscape }

// filePath says what is wrong with the name of a file that begins in dir, as far as its text tells. The worker
// looks at the file. A name may begin with as many ".." as lead to the workspace.
func filePath(name, dir string) *problem {
	below := name
	for depth := strings.Count(path.Join("/", dir, "x"), "/") - 1; depth > 0 && strings.HasPrefix(below+"/", "../"); depth-- {
		below = strings.TrimLeft(strings.TrimPrefix(below, ".."), "/")
	}
	switch clean := path.Clean(name); {
	case path.IsAbs(name):
		return &problem{"files are those of the workspace, and their names are relative to it", "leave out the directory of the workspace"}
	case strings.Contains("/"+below+"/", "/../"):
		return &problem{`".." could lead out of the workspace`, "name a file by a path inside of the workspace"}
	case IsPrivate(path.Join(dir, clean)):
		return &problem{"it belongs to the gateway", "name a file of your own"}
	}
	return nil
}

// IsPrivate says whether a path in a workspace is one of a directory that is not for callers, or in it,
// whatever file system holds the workspace.
func IsPrivate(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.ContainsFunc(private, func(p string) bool { return texts.SameName(part, p) }) {
			return true
		}
	}
	return false
}

// mixed refuses a command that reads both.
func mixed(program string) *stages.Error {
	return refuse(-1, `let a stage of an input read the file: "inputs": {"b": [{"type":"command","command":"sort","args":["FILE"]}]}`,
		"%s: it cannot read named inputs and files of the workspace at once", program)
}

// named returns the names of the files that are read, in order.
func (p *parsed) named() (names []string) {
	for _, w := range p.words {
		if w.opt == nil && w.file {
			names = append(names, w.value)
		}
	}
	return names
}
