package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/texts"
)

// allowSaveVariable replaces --allow-save.
const allowSaveVariable = "MCSH_ALLOW_SAVE"

// allowSaveFlag says whether agents save pipelines.
type allowSaveFlag struct{ value string }

func (a *allowSaveFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.value, "allow-save", "", "whether agents save pipelines, with the tool save_pipeline: yes or no (default no; $"+allowSaveVariable+")")
	completeFlag(cmd, "allow-save", "yes", "no")
}

// resolve takes the value from the variable if the flag is not given.
func (a *allowSaveFlag) resolve(p *program) error {
	a.value = cmp.Or(a.value, p.env[allowSaveVariable], "no")
	if a.value != "yes" && a.value != "no" {
		return usageError("yes lets each caller save pipelines for itself; no, or nothing, does not", "--allow-save %s: want yes or no", texts.Fit(a.value, 40))
	}
	return nil
}
