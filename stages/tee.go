package stages

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/mcsh-dev/mcsh/internal/texts"
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
	Append bool  // after what the file holds, on a new line
	Max    int64 // bytes beyond which nothing is saved, and the error is LIMIT_EXCEEDED; 0: any number

	// Charge is asked before more bytes are written, copies included: adds of them, with which total were written to the
	// workspace since it exists. Its error ends the saving, and is returned as it is.
	Charge func(adds, total int64) error
}

// TeeStage saves the data in the workspace and passes it on (docs/pipeline.md, How stages run).
type TeeStage struct {
	Path     string `json:"path" jsonschema:"minLength=1" jsonschema_description:"File in the workspace. Directories are made."`
	Append   bool   `json:"append,omitempty" jsonschema_description:"Add to the end of the file, on a new line, instead of replacing it."`
	Oversize bool   `json:"confirm_oversize,omitempty" jsonschema_description:"Save more than 1 MiB."`
}

// teeMax is how much is saved without being asked for.
const teeMax = 1 << 20

func (t *TeeStage) label() Label { return Label{Name: shown(t.Path)} }

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
		return nil, changed(err, func(e *Error) { e.Field = "path" })
	}
	if s.Each && !t.Append {
		return nil, fielded("append", Errorf(InvalidPipeline, `add "append": true, or move the tee behind the for_each`,
			"every item would replace the file of the one before"))
	}
	how := "saves the data as "
	if t.Append {
		how = "appends the data, on a new line, to "
	}
	step := &Step{
		Changes: true, Traits: Traits{Blocking: true, KeepsKind: true}, Does: how + shown(t.Path) + " in the workspace and passes it on", Expects: "any bytes",
	}
	if !t.Oversize {
		step.most = teeMax
	}
	step.Bind = func(_ context.Context, r *Run, m *Meter) (Filter, error) {
		return func(ctx context.Context, in io.Reader, out io.Writer) error { return t.save(ctx, r, m, file, in, out) }, nil
	}
	step.rehearse = func(_ *Run, _ *Meter, note noteCall) Filter {
		return func(ctx context.Context, in io.Reader, _ io.Writer) error {
			n, err := io.Copy(io.Discard, in)
			if err != nil {
				return err
			}
			fails := ""
			if step.tooMuch(n) {
				fails = fmt.Sprintf(`%d bytes are more than %s: add "confirm_oversize": true if all of that is to be saved`, n, texts.Bytes(teeMax))
			}
			return note(encodeObject([]member{
				{"path", appendString(nil, []byte(t.Path))},
				{"append", json.RawMessage(fmt.Sprint(t.Append))},
				{"bytes", json.RawMessage(fmt.Sprint(n))},
			}), fails)
		}
	}
	return step, nil
}

// save saves all of the data, and passes on what was saved. Once it has all data it finishes, even if everything around it ends, and
// is not done again: a failure of a later stage does not undo it.
func (t *TeeStage) save(ctx context.Context, r *Run, m *Meter, file string, in io.Reader, out io.Writer) error {
	h := headersOf(ctx)
	h.out.copyOf(h.in)
	var effect pastEffect
	if t.Append && (r.effects.hasEarlier() || r.effects.notes()) {
		all := r.newSpool()
		defer all.Close()
		key, done, err := t.done(ctx, r, m, file, io.TeeReader(in, all))
		if err != nil {
			return err
		}
		if in = all.Reader(); done && !m.step.tooMuch(all.size) {
			_, err := io.Copy(out, in)
			return err
		}
		effect = pastEffect{Key: key, Place: m.step.place}
	}
	data := sha256.New()
	in = io.TeeReader(in, data)
	f := SavedFile{Path: t.Path, Append: t.Append, Max: m.step.most, Charge: r.charge}
	it := itemOf(ctx)
	if !r.within.send() || !it.held().send() {
		return context.Cause(ctx)
	}
	it.callSent(false)
	saving, cancel := context.WithCancelCause(r.outer)
	defer cancel(nil)
	// When the time is up, a tee that still waits for other writers ends, and has saved nothing.
	defer context.AfterFunc(ctx, func() {
		if end, limited := ctx.Deadline(); limited && !time.Now().Before(end) {
			cancel(context.Cause(ctx))
		}
	})()
	intent, err := r.effects.begin(ctx, effect)
	if err != nil {
		return err
	}
	saved, err := r.deps.Files.SaveFile(saving, f, in)
	if err != nil {
		r.effects.unmade(intent)
		return err
	}
	defer saved.Close()
	m.count(func(r *StageReport) { r.Calls++ })
	if t.Append {
		r.effects.add(ctx, pastEffect{Key: fileEffect(file, data), Place: m.step.place, Kept: it == nil, Intent: intent})
	}
	if _, err = io.Copy(out, saved); err != nil {
		headersOf(ctx).tape.keepRest(saved)
	}
	return err
}

// done reads all of in, and returns the key of the effect of appending it, and whether the run that is continued has done that in this
// stage. If another one has, that is an error.
func (t *TeeStage) done(ctx context.Context, r *Run, m *Meter, file string, in io.Reader) (key string, done bool, err error) {
	data := sha256.New()
	if _, err := io.Copy(data, in); err != nil {
		return "", false, err
	}
	key = fileEffect(file, data)
	_, done, err = r.effects.answer(key, m.step.Label.String(), m.step.place, itemOf(ctx) != nil)
	return key, done, err
}

// charge counts what the run writes to the workspace, of which total bytes were written by all runs.
func (r *Run) charge(adds, total int64) error {
	run, all := r.deps.Limits.Workspace, r.deps.Limits.WorkspaceTotal
	if n := r.saved.Add(adds); n > run {
		return ofRun(OverLimit("workspace", "save less, or have the operator raise it: --limit workspace=SIZE",
			"the run would write %d bytes to the workspace, with the copies that are kept there; at most %s are allowed", n, texts.Bytes(run)))
	}
	if total > all {
		return ofRun(OverLimit("workspace-total", "have the operator raise it, --limit workspace-total=SIZE, or make room as docs/workspace.md says",
			"the runs of all callers would have written %d bytes to the workspace, with the copies that are kept there; at most %s are allowed", total, texts.Bytes(all)))
	}
	return nil
}
