package programs

import (
	"path"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
)

// Given is what a command may name besides its standard input.
type Given struct {
	Inputs []string // names of its inputs; one that is not read is a mistake too
	Files  bool     // files of a workspace
}

// Own is the directory of a workspace that is the gateway's: its drafts, and what was saved. No command sees it.
const Own = ".mcsh"

// maxFiles is how many files a command may name. paste has all of them open at once, and so has the worker.
const maxFiles = 50

// reads takes an operand for a file to read, or refuses it.
func (p *parsed) reads(i int) *stages.Error {
	w := p.words[i]
	if !p.anyFiles || shellWords[w.value] != "" || isInputName(w.value) {
		return p.noFile(w)
	}
	if wrong := filePath(w.value); wrong != nil {
		return refuse(w.at, wrong.use, "%s: %s: %s", p.Name, texts.Quote(w.value), wrong.why)
	}
	if n := len(p.named()); n == maxFiles {
		return refuse(w.at, "name fewer, or search a directory with rg", "%s: more than %d files are named", p.Name, maxFiles)
	}
	p.words[i].file = true
	return nil
}

// filePath says what is wrong with the name of a file of the workspace, as far as its text tells. The worker looks
// at the file.
func filePath(name string) *problem {
	switch clean := path.Clean(name); {
	case name == "":
		return &problem{"the name of a file is empty", "name a file of the workspace, such as data/orders.csv"}
	case path.IsAbs(name):
		return &problem{"files are those of the workspace, and their names are relative to it", "leave out the directory of the workspace"}
	case strings.Contains("/"+name+"/", "/../"):
		return &problem{`".." could lead out of the workspace`, "name the file from the workspace's directory on"}
	case IsOwn(clean):
		return &problem{"it belongs to the gateway", "name a file of your own"}
	}
	return nil
}

// IsOwn says whether a clean path in a workspace is that of the gateway's own directory, or in it.
func IsOwn(name string) bool { return name == Own || strings.HasPrefix(name, Own+"/") }

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
