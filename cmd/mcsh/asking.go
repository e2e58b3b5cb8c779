package main

import (
	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/gateway"
)

// addAsking adds the flags for questions of servers.
func addAsking(o *gateway.Options) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		cmd.Flags().DurationVar(&o.AskTimeout, "ask-timeout", gateway.DefaultAskTimeout,
			"how long a call waits for its client's answers to questions of servers, all together; its timeouts stand still meanwhile; 0 passes no questions on")
		cmd.Flags().BoolVar(&o.Sampling, "sampling", false, "let servers ask the models of clients (sampling)")
	}
}

// checkAsking checks the flags of addAsking.
func checkAsking(o gateway.Options) error {
	if o.AskTimeout < 0 {
		return usageError("--ask-timeout 0 passes no questions on", "--ask-timeout %v is below zero", o.AskTimeout)
	}
	return nil
}
