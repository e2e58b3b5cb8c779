package main

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/schemas"
	"github.com/mcsh-dev/mcsh/stages"
)

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of a call of execute_pipeline",
		Long:  "Print the JSON Schema of what execute_pipeline takes, with every field described.\nThe schema of one stage is at #/$defs/stage.",
		Args:  cobra.NoArgs,
		RunE: work(func(context.Context, []string) error {
			var out bytes.Buffer
			if err := json.Indent(&out, schemas.ExecutePipeline(stages.Kinds(), schemas.Options{}), "", "  "); err != nil {
				return err
			}
			out.WriteByte('\n')
			_, err := out.WriteTo(p.stdout)
			return err
		}),
	}
}
