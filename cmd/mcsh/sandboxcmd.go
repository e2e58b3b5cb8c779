package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/deploy"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

const sandboxBuildLong = `Build the image of sandbox containers: the programs of commands, this mcsh and its mcsh-worker, on a base.
An image is never built unasked. No checkout of the sources is needed.

The base is any image of Debian or Ubuntu. The engine pulls one that it does not have; where no registry can be
reached, deploy/base-image.sh of the sources makes one that needs no network.`

func (p *program) sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "Build the image of sandbox containers, and show what the engine has",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usageError("mcsh sandbox status shows what there is", "what about the sandbox? build or status")
		},
	}
	cmd.AddCommand(p.sandboxBuildCommand(), p.sandboxStatusCommand())
	return cmd
}

func (p *program) sandboxBuildCommand() *cobra.Command {
	var s sandboxSettings
	var base, binaries string
	cmd := &cobra.Command{
		Use:     "build",
		Short:   "Build the image of sandbox containers",
		Long:    sandboxBuildLong,
		Example: "  mcsh sandbox build\n  mcsh sandbox build --base mcsh-base",
		Args:    cobra.NoArgs,
		RunE:    work(func(ctx context.Context, _ []string) error { return p.buildImage(ctx, s, base, binaries) }),
	}
	p.addEngine(cmd, &s)
	cmd.Flags().StringVar(&base, "base", "", "the image to begin with (default: Debian from the public registry)")
	cmd.Flags().StringVar(&binaries, "binaries", "", "directory with mcsh and mcsh-worker for Linux (default: that of this program)")
	return cmd
}

// engine says which engine is meant.
func (s sandboxSettings) engine() docker.Options {
	return docker.Options{Host: s.host, CertDir: s.certDir, Image: s.image, Make: s.buildCommand()}
}

// connect reaches the engine that the settings name.
func (s sandboxSettings) connect(ctx context.Context) (*docker.Engine, error) {
	engine, err := docker.Connect(ctx, s.engine())
	if err != nil {
		return nil, configError("commands also run without an engine where the kernel allows it: mcsh doctor", err)
	}
	return engine, nil
}

func (p *program) buildImage(ctx context.Context, s sandboxSettings, base, binaries string) error {
	files, err := imageFiles(binaries)
	if err != nil {
		return err
	}
	engine, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	recipe := docker.Recipe{Tag: s.image, Base: base, Dockerfile: deploy.Dockerfile, Files: files}
	if err := engine.Build(ctx, recipe, p.stderr); err != nil {
		return configError("", err)
	}
	_, err = fmt.Fprintln(p.stdout, s.image)
	return err
}

// imageFiles are the programs of an image by their names in its recipe.
func imageFiles(dir string) (map[string]string, error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, configError("name their directory: --binaries DIR", fmt.Errorf("finding mcsh and mcsh-worker: %w", err))
		}
		dir = filepath.Dir(self)
	}
	files := map[string]string{}
	for _, name := range []string{"mcsh", workerBinary} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err != nil {
			return nil, configError("install both, such as with go install ./cmd/..., or name the directory that has them: --binaries DIR",
				fmt.Errorf("the image needs mcsh and %s of one directory: %w", workerBinary, err))
		}
		files["bin/"+name] = path
	}
	return files, nil
}

func (p *program) sandboxStatusCommand() *cobra.Command {
	var s sandboxSettings
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the container engine, its image and the containers of mcsh",
		Args:  cobra.NoArgs,
		RunE:  work(func(ctx context.Context, _ []string) error { return p.sandboxStatus(ctx, s) }),
	}
	p.addEngine(cmd, &s)
	p.addJSON(cmd, "print one JSON object")
	return cmd
}

func (p *program) sandboxStatus(ctx context.Context, s sandboxSettings) error {
	engine, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer engine.Close()
	e, err := engine.Status(ctx, s.image)
	if err != nil {
		return configError("", err)
	}
	if p.json {
		return writeJSON(p.stdout, e)
	}
	return writeStatus(p.stdout, e, s.buildCommand())
}

// writeStatus tells people of an engine.
func writeStatus(w io.Writer, e docker.Status, build string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "engine\t%s\n", engineLine(e))
	if e.ImageID == "" {
		fmt.Fprintf(t, "image\t%s is missing; build it with: %s\n", e.Image, build)
	} else {
		fmt.Fprintf(t, "image\t%s (%s)\n", e.Image, e.ImageID)
	}
	if len(e.Containers) == 0 {
		fmt.Fprint(t, "containers\tnone\n")
	}
	for i, c := range e.Containers {
		name := "containers"
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(t, "%s\t%.12s %s %s, made %s by %s\n", name, c.ID, c.Role, c.State, c.Created.Format(time.RFC3339), c.Instance)
	}
	return t.Flush()
}
