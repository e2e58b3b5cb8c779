package main

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/workspace"
)

// files is where stages save data: the directory of --workspace.
type files struct{ dir *workspace.Dir }

var _ stages.Files = files{}

// openFiles opens the workspace, if there is one.
func openFiles(s settings) (*files, error) {
	if s.workspace == "" {
		return nil, nil
	}
	if s.readOnly {
		return nil, usageError("leave one of them out", "--workspace is where stages save files, and --read-only lets them save nothing")
	}
	dir, err := workspace.Open(s.workspace)
	if err != nil {
		return nil, configError("give --workspace a directory that exists", err)
	}
	return &files{dir}, nil
}

// addWorkspace adds the flag that says where stages save files.
func (s *settings) addWorkspace(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.workspace, "workspace", "", "directory that tee stages save files in, and commands read files of (default: none)")
	_ = cmd.MarkFlagDirname("workspace") // the flag exists
}

// FileName implements [stages.Files].
func (f files) FileName(path string) (string, error) {
	name, err := f.dir.SaveName(path)
	return name, fileError(err)
}

// SaveFile implements [stages.Files].
func (f files) SaveFile(ctx context.Context, file stages.SavedFile, in io.Reader) (io.ReadCloser, error) {
	saved, err := f.dir.Save(ctx, file.Path, in, workspace.SaveOptions{Append: file.Append, Max: file.Max})
	if errors.Is(err, workspace.ErrOversize) {
		allowed := byteSize(file.Max)
		return nil, stages.Errorf(stages.LimitExceeded, `add "confirm_oversize": true if so much is meant to be saved; nothing was`,
			"the data for %q is more than %s", file.Path, allowed.String())
	}
	return saved, fileError(err)
}

// fileCodes are the codes of what the workspace says.
var fileCodes = map[workspace.Kind]stages.Code{
	workspace.PathEscape:      stages.Denied,
	workspace.InvalidArgument: stages.InvalidArguments,
	workspace.NotFound:        stages.InvalidArguments,
	workspace.AlreadyExists:   stages.InvalidArguments,
	workspace.IoError:         stages.Internal,
}

// fileError puts the words of the workspace into those of stages. Other errors are those of the data.
func fileError(err error) error {
	var e *workspace.Error
	if !errors.As(err, &e) {
		return err
	}
	code := fileCodes[e.Kind]
	if errors.Is(err, syscall.ENOSPC) {
		code = stages.LimitExceeded
	}
	return &stages.Error{Code: code, Msg: e.Msg, Hint: e.Hint, Err: err}
}

// root returns the directory of the workspace, empty if there is none.
func (f *files) root() string {
	if f == nil {
		return ""
	}
	return f.dir.Root()
}

// close closes the workspace.
func (f *files) close() error {
	if f == nil {
		return nil
	}
	return f.dir.Close()
}
