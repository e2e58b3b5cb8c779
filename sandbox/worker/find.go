//go:build linux

package worker

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// toolsOf makes the tools that hostInfo lists.
func toolsOf(s hostInfo, extra []programs.Program) map[string]*tool {
	tools := map[string]*tool{}
	for name, at := range s.Tools {
		if p, ok := find(name, extra); ok {
			tools[name] = &tool{Program: p, located: at}
		}
	}
	return tools
}

var errNoApplet = errors.New("no such applet")

// path is where programs are looked for; the environment has no say.
var path = []string{"/usr/bin", "/bin", "/usr/local/bin"}

// libraries is what a dynamically linked program reads to start. It holds nothing of the machine's owner.
var libraries = []string{"/usr/lib", "/lib", "/lib64", "/usr/lib64", "/etc/ld.so.cache"}

const (
	localeDir   = "/usr/lib/locale"
	zoneinfoDir = "/usr/share/zoneinfo"
)

// A tool is a program as this machine has it.
type tool struct {
	programs.Program
	located

	reader bool // it stands for the reader of the program's scripts, which is linked in

	building sync.Mutex
	shared   *jail.Cell // for all of its processes that have no files of their own; nil until the first
}

// linked reports whether the process is one of this binary.
func (t *tool) linked() bool { return t.reader || t.Ready != nil && t.Bin == "" }

// cell returns the jail for a process of the tool with these files of its own. It is private if there are any.
func (t *tool) cell(scratch, dir string, files []string, v *view) (_ *jail.Cell, private bool, err error) {
	spec := jail.Spec{Path: t.File, Read: slices.Concat(t.reads(), files), Scratch: scratch, Dir: dir, Threads: t.Threads}
	if v != nil {
		spec.Files, spec.Lists, spec.Parts = v.files, v.lists, v.parts
		spec.Asks, spec.Walks = t.Asks, t.Walks
	}
	if t.Loader != "" {
		spec.Run = []string{t.Loader}
	}
	if scratch != "" || dir != "" {
		c, err := jail.NewCell(spec)
		return c, true, err
	}
	t.building.Lock()
	defer t.building.Unlock()
	if t.shared == nil {
		c, err := jail.NewCell(spec)
		if err != nil {
			return nil, false, err
		}
		t.shared = c
	}
	return t.shared, false, nil
}

// reads lists what the tool may read.
func (t *tool) reads() []string {
	var r []string
	if t.Loader != "" {
		r = slices.Clone(libraries)
	} else if t.Locale {
		r = append(r, localeDir)
	}
	if t.Zoneinfo {
		r = append(r, zoneinfoDir)
	}
	return r
}

// reach is what a worker needs of the file system.
func (s hostInfo) reach(scratch string) jail.Reach {
	r := jail.Reach{Read: slices.Concat(libraries, []string{localeDir, zoneinfoDir}, oomFiles), Scratch: scratch}
	if s.Workspace != "" {
		r.Read = append(r.Read, s.Workspace)
	}
	if s.Loader != "" {
		r.Run = append(r.Run, s.Loader)
	}
	for _, t := range s.Tools {
		for _, file := range []string{t.File, t.Loader} {
			if file != "" && !slices.Contains(r.Run, file) {
				r.Run = append(r.Run, file)
			}
		}
	}
	return r
}

// own readies starts of applets, which open nothing once they are loaded. The Go runtime would read control groups as it
// begins, whatever its environment says, and needs not; that it cannot saves a tenth of its start.
func (s hostInfo) own() (*jail.Own, error) {
	if s.Loader == "" {
		return jail.NewOwn(s.Support.Landlock, nil, nil)
	}
	return jail.NewOwn(s.Support.Landlock, []string{s.Loader}, libraries)
}

func loaderOf(file string) (string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", file, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return "", fmt.Errorf("reading the loader's name in %s: %w", file, err)
		}
		return strings.TrimRight(string(b), "\x00"), nil
	}
	return "", nil
}

// find returns a program of the table, one of the gateway's own or one of extra.
func find(name string, extra []programs.Program) (programs.Program, bool) {
	for _, p := range slices.Concat(programs.Internal(), extra) {
		if p.Name == name {
			return p, true
		}
	}
	return programs.Find(name)
}

// locate finds the executables of all programs and says what can run under the profile.
func (s hostInfo) locate(extra []programs.Program) (map[string]located, []wire.Found) {
	tools := map[string]located{}
	for _, p := range programs.Internal() {
		tools[p.Name] = located{}
	}
	var found []wire.Found
	for _, p := range slices.Concat(programs.All(), extra) {
		f := wire.Found{Name: p.Name}
		var t located
		if p.Bin != "" {
			t.File = executable(p.Bin)
			f.Path = t.File
			f.Refusal = t.link(p.Bin, s)
		}
		if f.Refusal == "" {
			tools[p.Name] = t
		}
		found = append(found, f)
	}
	return tools, found
}

// link finds out how the program is linked, and says why it cannot run, if so.
func (t *located) link(name string, s hostInfo) (refusal string) {
	added := filepath.IsAbs(name)
	switch {
	case s.Support.Landlock == 0:
		return "it needs Landlock, which this kernel does not offer"
	case t.File == "" && added:
		return fmt.Sprintf("there is no executable file %s where commands run", name)
	case t.File == "":
		return fmt.Sprintf("%s is not installed", name)
	}
	if added {
		if why := replaceable(name, s.Workspace); why != "" {
			return fmt.Sprintf("%s is not safe: %s", name, why)
		}
	}
	var err error
	t.Loader, err = loaderOf(t.File)
	if _, ok := errors.AsType[*elf.FormatError](err); ok || errors.Is(err, io.EOF) {
		return fmt.Sprintf("%s is no ELF program: nothing could start the interpreter of a script", name)
	}
	if err != nil {
		return err.Error()
	}
	if added && t.Loader != "" && !slices.ContainsFunc(libraries, func(dir string) bool { return within(t.Loader, dir) }) {
		return fmt.Sprintf("%s wants the loader %s, which is none of the system's", name, t.Loader)
	}
	return ""
}

// maxSteps bounds the names and links on the way to a program.
const maxSteps = 256

// replaceable says why others than the operator could replace the file that the path of an added program leads to; empty: they
// could not. It looks at every name on the way, those of links too.
func replaceable(file, workspace string) string {
	at, rest := "/", strings.Split(file, "/")
	for range maxSteps {
		if why := writable(at, workspace); why != "" {
			return why
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return ""
		}
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(next)
		switch {
		case errors.Is(err, syscall.EINVAL): // no link
			at = next
			continue
		case err != nil:
			return err.Error()
		case filepath.IsAbs(target):
			at = "/"
		}
		rest = slices.Concat(strings.Split(target, "/"), rest)
	}
	return fmt.Sprintf("its path has more than %d names and links", maxSteps)
}

// writable says why others than the operator could replace a file or what a directory holds; empty: they could not. In a sticky
// directory they replace only what is theirs.
func writable(name, workspace string) string {
	if workspace != "" && within(name, workspace) {
		return "it lies in the workspace"
	}
	st, err := os.Lstat(name)
	if err != nil {
		return err.Error()
	}
	if st.Mode()&0o002 != 0 && !(st.IsDir() && st.Mode()&os.ModeSticky != 0) {
		return "everybody may write " + name
	}
	return ""
}

// within says whether a path is that of a directory or below it.
func within(name, dir string) bool {
	below, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(below)
}

// executable returns the file of a program, empty if there is none. That of an added one is what its path leads to.
func executable(name string) string {
	if filepath.IsAbs(name) {
		file, err := filepath.EvalSymlinks(name)
		if err != nil || !isExecutable(file) {
			return ""
		}
		return file
	}
	for _, dir := range path {
		if file := filepath.Join(dir, name); isExecutable(file) {
			return file
		}
	}
	return ""
}

func isExecutable(file string) bool {
	st, err := os.Stat(file)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// A hostInfo is what the binary of a worker finds on a machine. A launcher makes one and gives it to each worker: the
// search for programs takes longer than all else that a worker does before it can serve.
type hostInfo struct {
	Support   jail.Support
	Tools     map[string]located
	Found     []wire.Found
	Around    wire.Surroundings // which cannot be seen from within
	Loader    string            // of the worker's own binary; empty if it is static
	Workspace string            // the directory whose files commands may read; empty if there is none
	Added     string            // the operator's programs, see [programs.ReadAdded]
}

// A located program is one that can run.
type located struct {
	File   string // its executable; empty for an applet
	Loader string // the dynamic loader that File names; empty if it is static
}

// lookAround looks around. workspace is the directory whose files commands may read, added are the operator's programs; both
// may be empty.
func lookAround(o Options, workspace, added string) (hostInfo, error) {
	s := hostInfo{Support: jail.Supported(), Around: surroundings(), Workspace: workspace, Added: added}
	o, err := o.with(added)
	if err != nil {
		return s, err
	}
	s.Tools, s.Found = s.locate(o.Extra)
	if loader, err := loaderOf("/proc/self/exe"); err == nil {
		s.Loader = loader
	}
	return s, nil
}

// with adds the operator's programs.
func (o Options) with(added string) (Options, error) {
	all, err := programs.ReadAdded(added)
	o.Extra = slices.Concat(o.Extra, all)
	return o, err
}

// hostInfoMain prints a hostInfo. args are the last two of [lookAround].
func hostInfoMain(args []string, o Options) error {
	if len(args) != 2 {
		return fmt.Errorf("unknown arguments %q", args)
	}
	s, err := lookAround(o, args[0], args[1])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

func readHostInfo(text string) (s hostInfo, err error) {
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("reading the host info: %w", err)
	}
	return s, nil
}
