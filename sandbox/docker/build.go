package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/docker/api/types/build"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// A Recipe is what an image is built of. All fields but Base are required.
type Recipe struct {
	Tag        string // the name of the image
	Base       string // the image to begin with; the Dockerfile's own if empty
	Dockerfile []byte
	Files      map[string]string // programs by their names in the context: "bin/mcsh" to the path of a Linux program here
}

// contextFile is the name of the Dockerfile in a context.
const contextFile = "Dockerfile"

// Build makes an image and writes what the engine says about it to progress, line by line. It pulls the base if the
// engine does not have it. The error is a [*Fault] that holds the engine's last words.
func (e *Engine) Build(ctx context.Context, r Recipe, progress io.Writer) error {
	doing := "building the image " + r.Tag
	for _, path := range r.Files {
		if err := checkProgram(path); err != nil {
			return &Fault{Doing: doing, Detail: err, Hint: "build the programs for Linux, the engine's processor and without cgo (GOOS=linux CGO_ENABLED=0), and name their directory"}
		}
	}
	options := build.ImageBuildOptions{
		Version: build.BuilderV1, // needs no session beside the request, and every engine has it
		Tags:    []string{r.Tag}, Dockerfile: contextFile, Remove: true, ForceRemove: true,
	}
	if r.Base != "" {
		options.BuildArgs = map[string]*string{"BASE": &r.Base}
	}
	in, out := io.Pipe()
	go func() { out.CloseWithError(writeContext(out, r)) }()
	defer in.Close()
	reply, err := e.api.ImageBuild(ctx, in, options)
	if err != nil {
		f := fault(doing, err)
		if f.Kind == nil {
			f.Hint = "the engine takes neither the recipe nor its files as they are: look at what it says"
		}
		return f
	}
	defer reply.Body.Close()
	if err := follow(reply.Body, progress); err != nil {
		f := &Fault{Doing: doing, Detail: err}
		if _, said := errors.AsType[refused](err); said {
			f.Hint = "the steps before tell more; if the base cannot be pulled here, name one that the engine has (deploy/base-image.sh in the sources makes one): --base NAME"
		}
		return f
	}
	return nil
}

// checkProgram refuses what no container can start.
func checkProgram(path string) error {
	f, _, err := namedfile.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil || string(magic[:]) != "\x7fELF" {
		return fmt.Errorf("%s is no Linux program", path)
	}
	return nil
}

// writeContext writes the files of a build as a tar.
func writeContext(w io.Writer, r Recipe) error {
	t := tar.NewWriter(w)
	if err := t.WriteHeader(&tar.Header{Name: contextFile, Mode: 0o644, Size: int64(len(r.Dockerfile))}); err != nil {
		return err
	}
	if _, err := t.Write(r.Dockerfile); err != nil {
		return err
	}
	for name, path := range r.Files {
		if err := addProgram(t, name, path); err != nil {
			return err
		}
	}
	return t.Close()
}

func addProgram(t *tar.Writer, name, path string) error {
	f, info, err := namedfile.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// refused is what an engine says when a step of a build fails.
type refused string

func (r refused) Error() string { return string(r) }

// maxSaid bounds one message of the engine.
const maxSaid = 1 << 20

// follow passes on what an engine says of a build, one JSON object on a line. Its steps are numbered, and
// a status of a download is passed on when it changes.
func follow(in io.Reader, progress io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxSaid)
	last := map[string]string{} // status of each layer
	for lines.Scan() {
		var m struct {
			Stream, Status, ID, Error string
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return fmt.Errorf("the engine's answer is not what a build says: %w", err)
		}
		switch {
		case m.Error != "":
			return refused(strings.TrimSpace(m.Error))
		case m.Status != "" && last[m.ID] != m.Status:
			last[m.ID] = m.Status
			m.Stream = strings.TrimPrefix(m.ID+": "+m.Status, ": ") + "\n"
		}
		if _, err := io.WriteString(progress, m.Stream); err != nil {
			return fmt.Errorf("telling the progress: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the engine's answer broke off: %w", err)
	}
	return nil
}
