package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/docs"
	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/clients"
)

// completeWait bounds what a shell waits for after a press of Tab.
const completeWait = time.Second

// A completer gives the words that may stand as an argument, each with a tab and a description behind it or without.
type completer func(ctx context.Context) []string

// complete completes the first argument of a command, or all of them, with what f gives.
func complete(cmd *cobra.Command, all bool, f completer) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !all {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeWait)
		defer cancel()
		words := slices.DeleteFunc(f(ctx), func(word string) bool {
			name, _, _ := strings.Cut(word, "\t")
			return !strings.HasPrefix(name, prefix) || slices.Contains(args, name)
		})
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// orFiles lets files stand where a completer's words stand.
func orFiles(cmd *cobra.Command) {
	words := cmd.ValidArgsFunction
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		list, directive := words(cmd, args, prefix)
		if len(args) == 0 {
			directive = cobra.ShellCompDirectiveDefault
		}
		return list, directive
	}
}

// completeFlag completes the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, words ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	if err != nil { // the flag is not there
		panic("mcsh: internal error: completing --" + flag + ": " + err.Error())
	}
}

// clientNames are the clients that are known.
func clientNames(context.Context) []string {
	var words []string
	for _, c := range clients.All() {
		words = append(words, c.Name+"\t"+c.Title)
	}
	return words
}

// topicNames are the codes that can be explained.
func topicNames(context.Context) []string {
	var words []string
	for _, t := range topics(docs.Errors) {
		words = append(words, t.Name+"\t"+t.Summary)
	}
	return words
}

// serverNames are the servers of the settings.
func (p *program) serverNames(s *settings) completer {
	return func(ctx context.Context) []string {
		var words []string
		for _, l := range p.known(ctx, *s) {
			words = append(words, l.Server)
		}
		return words
	}
}

// toolNames are the tools of the settings' servers, as they are called.
func (p *program) toolNames(s *settings) completer {
	return func(ctx context.Context) []string {
		var words []string
		for _, l := range p.known(ctx, *s) {
			for _, t := range l.Tools {
				words = append(words, l.Server+"/"+t.Name+"\t"+firstSentence(t.Description))
			}
		}
		return words
	}
}

// known is what is known of the servers without starting a process or asking anybody: what earlier gateways have kept,
// and the built-in servers that are there without a configuration.
func (p *program) known(ctx context.Context, s settings) []upstream.Listing {
	s.keeps, s.toolhive.mode = true, toolhiveOff
	s.configs = slices.Compact(slices.Sorted(slices.Values(s.configs))) // cobra has parsed the flags twice
	pool, err := p.openUpstream(ctx, s)
	if err != nil {
		return nil // there is nobody to tell: the command itself will
	}
	defer pool.Close()
	if len(p.configFiles(s)) == 0 {
		return pool.Catalog(ctx)
	}
	return pool.Saved(ctx)
}
