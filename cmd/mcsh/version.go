package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionJSON is what version --json prints.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with changes that are not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (p *program) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			v := build()
			if p.json {
				return writeJSON(p.stdout, v)
			}
			_, err := fmt.Fprintf(p.stdout, "mcsh %s (%s, %s)\n", v.Version, v.Go, v.Platform)
			return err
		}),
	}
	p.addJSON(cmd, "print one JSON object")
	return cmd
}

// version is how the program calls itself to clients and servers.
func version() string { return build().Version }

// build is what the compiler has noted about this binary.
func build() versionJSON {
	v := versionJSON{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
