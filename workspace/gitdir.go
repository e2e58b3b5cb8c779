package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// Git recognizes a repository by the entries of a directory with any name, and runs the programs in its configuration:
// `git status` there runs core.fsmonitor. See is_git_directory in git's setup.c: it wants HEAD, and objects and refs, here
// or in the directory that the file commondir names. The content of HEAD is not checked here: a later save can change it.
var repositories = [][]string{{"HEAD", "objects", "refs"}, {"HEAD", "commondir"}}

// maxEntries bounds the search for a repository in one directory.
const maxEntries = 10_000

// notGit refuses a save at rel in a repository, and one that would make a directory a repository.
func (d *Dir) notGit(rel string) error {
	dir := "."
	for part := range strings.SplitSeq(rel, "/") {
		entries, err := d.gitEntries(dir, part)
		if err != nil {
			return classify(dir, err)
		}
		for _, all := range repositories {
			if !slices.ContainsFunc(all, func(name string) bool { return !entries[name] }) {
				return Errorf(InvalidArgument, "save it elsewhere", "%s would be in the git repository %s (a directory with %s): what is written there can make git run programs",
					quote(rel), quote(dir), strings.Join(all, ", "))
			}
		}
		dir = path.Join(dir, part)
	}
	return nil
}

// gitEntries returns the entries of a repository that dir will have after the entry next is added.
func (d *Dir) gitEntries(dir, next string) (map[string]bool, error) {
	entries := map[string]bool{}
	if !note(entries, next) {
		for _, name := range slices.Concat(repositories...) {
			if _, err := d.root.Lstat(path.Join(dir, name)); err == nil {
				entries[name] = true
			}
		}
		return entries, nil
	}
	f, err := d.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entries, nil
	case err != nil:
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(maxEntries + 1)
	if len(list) > maxEntries {
		return nil, fmt.Errorf("more than %d entries, too many to find out whether it is a git repository", maxEntries)
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, e := range list {
		note(entries, e.Name())
	}
	return entries, nil
}

// note adds name to entries if some file system equates it with an entry of a repository, and reports whether it does.
func note(entries map[string]bool, name string) bool {
	known := slices.Concat(repositories...)
	i := slices.IndexFunc(known, func(known string) bool { return texts.SameName(name, known) })
	if i >= 0 {
		entries[known[i]] = true
	}
	return i >= 0
}
