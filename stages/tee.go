package stages

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Files saves data in the workspace. All methods may be called concurrently. Errors are *Error.
type Files interface {
	// FileName checks the name of a file to save, as far as its text says, and returns the one name that stands for the
	// file, however it is written. It saves nothing.
	FileName(path string) (name string, err error)

	// SaveFile saves what in holds, all of it or nothing, and returns it, to be read from its beginning and closed by
	// the caller. An error of in is returned as it is. ctx ends the reading of in and the wait for other writers; its
	// cause is then in the error.
	SaveFile(ctx context.Context, f SavedFile, in io.Reader) (io.ReadCloser, error)
}

// A SavedFile says what is saved, and how.
type SavedFile struct {
	Path   string
	Append bool  // behind what the file holds
	Max    int64 // bytes beyond which nothing is saved, and the error is LIMIT_EXCEEDED; 0: any number
}

// TeeStage saves the data in the workspace and passes it on (pipeline.md §2).
type TeeStage struct {
	Path     string `json:"path" jsonschema:"minLength=1" jsonschema_description:"File in the workspace. Directories are made."`
	Append   bool   `json:"append,omitempty" jsonschema_description:"Write behind what the file holds, instead of replacing it."`
	Oversize bool   `json:"confirm_oversize,omitempty" jsonschema_description:"Save more than 1 MiB."`
}

// teeMax is how much is saved without being asked for.
const teeMax = 1 << 20

// Label names the stage in messages.
func (t *TeeStage) Label() string {
	if t.Path == "" {
		return "tee"
	}
	return "tee " + shown(t.Path)
}

// Compile checks the name of the file.
func (t *TeeStage) Compile(_ context.Context, s Scope) (*Step, error) {
	if err := missing("path", t.Path); err != nil {
		return nil, err
	}
	if s.Files == nil {
		return nil, Errorf(Denied, "start the gateway with --workspace DIR", "there is no workspace to save files in")
	}
	file, err := s.Files.FileName(t.Path)
	if err != nil {
		return nil, withField(err, "path")
	}
	if s.Each && !t.Append {
		return nil, fielded("append", Errorf(InvalidPipeline, `add "append": true, or move the tee behind the for_each`,
			"every item would replace the file of the one before"))
	}
	how := "saves the data as "
	if t.Append {
		how = "writes the data behind what is in "
	}
	step := &Step{
		Label: t.Label(), Effect: Changes, alone: true, Does: how + shown(t.Path) + " in the workspace and passes it on", Expects: "any bytes",
		file: file,
	}
	step.Bind = func(_ context.Context, r *Run, m *Meter) (Filter, error) {
		return func(ctx context.Context, in io.Reader, out io.Writer) error { return t.save(ctx, r, m, in, out) }, nil
	}
	step.rehearse = func(_ *Run, _ *Meter, note func(undone) error) Filter {
		return func(ctx context.Context, in io.Reader, _ io.Writer) error {
			n, err := io.Copy(io.Discard, in)
			if err != nil {
				return err
			}
			call := undone{args: encodeObject([]member{
				{"path", appendString(nil, []byte(t.Path))},
				{"append", json.RawMessage(fmt.Sprint(t.Append))},
				{"bytes", json.RawMessage(fmt.Sprint(n))},
			})}
			if n > teeMax && !t.Oversize {
				call.fails = fmt.Sprintf(`%d bytes are more than %s: add "confirm_oversize": true if all of that is to be saved`, n, size(teeMax))
			}
			return note(call)
		}
	}
	return step, nil
}

// save saves all of the data, and passes on what was saved. Once it has all data it is let finish, whatever ends around
// it, and is not done again: what a later stage makes of the data does not undo it.
func (t *TeeStage) save(ctx context.Context, r *Run, m *Meter, in io.Reader, out io.Writer) error {
	f := SavedFile{Path: t.Path, Append: t.Append, Max: teeMax}
	if t.Oversize {
		f.Max = 0
	}
	around := attemptOf(ctx)
	if !around.send() {
		return context.Cause(ctx)
	}
	around.left(false, false)
	saving, cancel := context.WithCancelCause(r.outer)
	defer cancel(nil)
	// When the time is up, whoever still waits for other writers has saved nothing and goes.
	defer context.AfterFunc(ctx, func() {
		if end, limited := ctx.Deadline(); limited && !time.Now().Before(end) {
			cancel(context.Cause(ctx))
		}
	})()
	saved, err := r.deps.Files.SaveFile(saving, f, in)
	if err != nil {
		return err
	}
	defer saved.Close()
	around.left(false, true)
	m.calls.Add(1)
	m.took.Add(1)
	_, err = io.Copy(out, saved)
	return err
}
