package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// maxPipeline is the size of a pipeline's text. It is written by hand or by a model, and nested data in it is a mistake.
const maxPipeline = 4 << 20

// pipelineFlags say where the pipeline is.
type pipelineFlags struct{ file string }

func (f *pipelineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", `file with the pipeline, "-" for standard input`)
}

// pipelineText returns the pipeline from the argument, a file or standard input. input is where its data comes from.
func (p *program) pipelineText(args []string, file, input string) ([]byte, error) {
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
	r, err := p.openInput(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxPipeline+1))
	switch {
	case err != nil:
		return nil, usageError(hint, "reading the pipeline: %w", err)
	case len(text) > maxPipeline:
		return nil, usageError("feed data with --input", "the pipeline in %s is larger than %s", file, size(maxPipeline))
	}
	return text, nil
}

// openInput opens a file or standard input. An empty name is nothing.
func (p *program) openInput(name string) (io.ReadCloser, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return io.NopCloser(p.stdin), nil
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no file %s", name)
	} else if info, serr := os.Stat(name); err == nil && serr == nil && info.IsDir() {
		err = errors.Join(fmt.Errorf("%s is a directory", name), f.Close())
	}
	if err != nil {
		return nil, usageError(`give the path of a file, or "-" for standard input`, "%w", err)
	}
	return f, nil
}
