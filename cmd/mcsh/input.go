package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/namedfile"
)

// maxPipeline is the size of a pipeline's text. It is written by hand or by a model, and nested data in it is a mistake.
const maxPipeline = 4 << 20

// pipelineFlags say where the pipeline is.
type pipelineFlags struct{ file string }

func (f *pipelineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", `file with the pipeline, "-" for standard input`)
}

// pipelineText returns the pipeline from the argument, a file or standard input. input is where its data comes from.
func (p *program) pipelineText(ctx context.Context, args []string, file, input string) ([]byte, error) {
	const hint = `give the pipeline as an argument, with -f FILE, or "-" for standard input`
	switch {
	case len(args) > 0 && file != "":
		return nil, usageError(hint, "there are two pipelines: an argument and -f %s", file)
	case len(args) == 0 && file == "":
		return nil, usageError(hint, "there is no pipeline")
	case len(args) > 0 && args[0] != "-":
		if text := strings.TrimSpace(args[0]); text == "" || !strings.Contains(`["{`, text[:1]) {
			return nil, usageError(hint, "%q is not a pipeline: that is a JSON array of stages", cut(args[0], 60))
		}
		return []byte(args[0]), nil
	}
	if file == "" {
		file = "-"
	}
	if file == "-" && input == "-" {
		return nil, usageError("put the pipeline into a file or an argument", "the pipeline and its input cannot both be standard input")
	}
	r, err := p.openInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := readUntil(ctx, io.LimitReader(r, maxPipeline+1))
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the pipeline is still being read from %s: %w", nameOf(file), ctx.Err())
	case err != nil:
		return nil, usageError(hint, "reading the pipeline: %w", err)
	case len(text) > maxPipeline:
		return nil, usageError("feed data with --input", "the pipeline in %s is larger than %s", file, size(maxPipeline))
	}
	return text, nil
}

// readUntil reads r to its end while ctx lives. Standard input cannot be closed under a reader: who reads it is then left
// to the end of the process.
func readUntil(ctx context.Context, r io.Reader) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		data, err := io.ReadAll(r)
		read <- result{data, err}
	}()
	select {
	case got := <-read:
		return got.data, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// nameOf is what a file is called in messages.
func nameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// openInput opens a file or standard input. An empty name is nothing. What is read from it streams, so that it may be a
// pipe, which waits for its writer while ctx lives, or a device.
func (p *program) openInput(ctx context.Context, name string) (io.ReadCloser, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return io.NopCloser(p.stdin), nil
	}
	f, err := namedfile.Open(ctx, name)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s is still being opened: %w", name, ctx.Err())
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no file %s", name)
	}
	if err != nil {
		return nil, usageError(`give the path of a file, or "-" for standard input`, "%w", err)
	}
	return f, nil
}
