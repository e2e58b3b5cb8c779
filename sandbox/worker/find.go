//go:build linux

package worker

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

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
	file string // its executable; empty for an applet

	once   sync.Once
	loader string // the dynamic loader that file names; empty if it is static
	err    error

	building sync.Mutex
	shared   *jail.Cell // for all of its processes that have no files of their own; nil until the first
}

// readELF finds out how the tool is linked, when it is first needed.
func (t *tool) readELF() error {
	t.once.Do(func() { t.loader, t.err = loaderOf(t.file) })
	return t.err
}

// cell returns the jail for a process of the tool with these files of its own. It is private if there are any.
func (t *tool) cell(scratch, inputs string, files []string) (_ *jail.Cell, private bool, err error) {
	if err := t.readELF(); err != nil {
		return nil, false, err
	}
	spec := jail.Spec{Path: t.file, Read: slices.Concat(t.reads(), files), Scratch: scratch, Dir: inputs, Threads: t.Threads}
	if t.loader != "" {
		spec.Run = []string{t.loader}
	}
	if scratch != "" || inputs != "" {
		c, err := jail.NewCell(spec)
		return c, true, err
	}
	t.building.Lock()
	defer t.building.Unlock()
	if t.shared == nil {
		t.shared, err = jail.NewCell(spec)
	}
	return t.shared, false, err
}

// reads lists what the tool may read.
func (t *tool) reads() []string {
	var r []string
	if t.loader != "" {
		r = slices.Clone(libraries)
	} else if t.Locale {
		r = append(r, localeDir)
	}
	if t.Zoneinfo {
		r = append(r, zoneinfoDir)
	}
	return r
}

// reach is what a worker with these tools needs of the file system.
func reach(tools map[string]*tool, scratch string) jail.Reach {
	r := jail.Reach{Read: slices.Concat(libraries, []string{localeDir, zoneinfoDir}, oomFiles), Scratch: scratch}
	if loader, err := loaderOf("/proc/self/exe"); err == nil && loader != "" {
		r.Run = append(r.Run, loader)
	}
	for _, t := range tools {
		if t.file == "" || t.readELF() != nil { // what is wrong with the file is told when it is used
			continue
		}
		r.Run = append(r.Run, t.file)
		if t.loader != "" && !slices.Contains(r.Run, t.loader) {
			r.Run = append(r.Run, t.loader)
		}
	}
	return r
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

// find returns a program of the table or of extra.
func find(name string, extra []programs.Program) (programs.Program, bool) {
	for _, p := range extra {
		if p.Name == name {
			return p, true
		}
	}
	return programs.Find(name)
}

// locate finds the executables of all programs and says what can run under the profile.
func locate(extra []programs.Program, s jail.Support) (map[string]*tool, []wire.Found) {
	tools := map[string]*tool{}
	var found []wire.Found
	for _, p := range slices.Concat(programs.All(), extra) {
		f := wire.Found{Name: p.Name}
		t := &tool{Program: p}
		if p.Bin != "" {
			t.file = executable(p.Bin)
			f.Path = t.file
			f.Refusal = refusal(t, s)
		}
		if f.Refusal == "" {
			tools[p.Name] = t
		}
		found = append(found, f)
	}
	return tools, found
}

func refusal(t *tool, s jail.Support) string {
	switch {
	case s.Landlock == 0:
		return "it needs Landlock, which this kernel does not offer"
	case t.file == "":
		return fmt.Sprintf("%s is not installed", t.Bin)
	}
	return ""
}

// executable returns the file of a program, empty if there is none.
func executable(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	for _, dir := range path {
		file := filepath.Join(dir, name)
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
