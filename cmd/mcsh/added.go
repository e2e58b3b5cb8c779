package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/internal/nearest"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/servers/strictjson"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// The operator adds commands in a configuration file: {"sandbox": {"commands": {"NAME": {"path": …}}}}.
const (
	sandboxSection  = "sandbox"
	commandsSection = "commands"
)

// An additionJSON is a [programs.Addition] in a file.
type additionJSON struct {
	Path     string            `json:"path"`
	Summary  string            `json:"summary"`
	Options  []json.RawMessage `json:"options"`
	Operands string            `json:"operands"`
	Threads  bool              `json:"threads"`
}

// An additionOptionJSON is a [programs.AdditionOption] in a file.
type additionOptionJSON struct {
	Long  string `json:"long"`
	Short string `json:"short"`
	Takes string `json:"takes"`
}

// addConfig adds --config.
func (s *settings) addConfig(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.configs, "config", nil,
		"file with commands of your own, docs/configuration.md (repeatable; default: $"+configVariable+", else the user's)")
}

// addCommands opens the configuration files and gives the settings the operator's commands in them. The sandbox starts once:
// a file whose commands change later is wrong from then on.
func (p *program) addCommands(ctx context.Context, s *settings) error {
	if s.files != nil {
		return nil
	}
	s.files = p.openConfigs(*s)
	var all []programs.Addition
	var errs []error
	for _, f := range s.files {
		before := all
		members, err := f.Members(ctx)
		if err == nil {
			all, err = additions(before, members)
		}
		errs = append(errs, err)
		started := all
		f.Others = func(members []config.Member) error {
			now, err := additions(before, members)
			if err == nil && !reflect.DeepEqual(now, started) {
				err = fmt.Errorf("%s: %s.%s: these commands have changed, and are read at the start alone: restart mcsh",
					f.Path, sandboxSection, commandsSection)
			}
			return err
		}
	}
	if ctx.Err() != nil { // an interrupted read is not a wrong configuration
		return fmt.Errorf("the configuration of servers is still being read: %w", ctx.Err())
	}
	if err := errors.Join(errs...); err != nil {
		return wrongConfig(err)
	}
	var err error
	s.sandbox.added, err = programs.Add(all)
	return err
}

func wrongConfig(err error) error {
	return configError("fix the configuration; nothing was started", err)
}

// additions returns the commands before and those of a file with these members. The error has its place.
func additions(before []programs.Addition, members []config.Member) ([]programs.Addition, error) {
	list, err := commandsIn(members)
	if err != nil {
		return before, err
	}
	all := slices.Clone(before)
	for _, m := range list {
		a, err := readAddition(m)
		if err == nil {
			all = append(all, a)
			_, err = programs.Add(all)
		}
		if err != nil {
			return before, fmt.Errorf("%s: %s: %w", m.Place(), sandboxSection, err)
		}
	}
	return all, nil
}

// commandsIn finds the commands in the members of a file. Other clients have a section of this name too, with other members:
// it is ignored.
func commandsIn(members []config.Member) ([]config.Member, error) {
	section, err := one(members, sandboxSection)
	if section == nil || err != nil {
		return nil, err
	}
	inside, _ := section.Members()
	commands, err := one(inside, commandsSection)
	if err != nil {
		return nil, err
	}
	for _, m := range inside {
		_, object := m.Members() // no list of another client
		switch {
		case m.Name == commandsSection:
		case commands != nil:
			return nil, fmt.Errorf("%s: %s: unknown key %q; beside %q there is none",
				m.Place(), sandboxSection, texts.Cut(m.Name, 60), commandsSection)
		case object && nearest.Name(m.Name, []string{commandsSection}) != "":
			return nil, fmt.Errorf("%s: %s: unknown key %q; did you mean %q?",
				m.Place(), sandboxSection, texts.Cut(m.Name, 60), commandsSection)
		}
	}
	if commands == nil {
		return nil, nil
	}
	list, object := commands.Members()
	if !object {
		return nil, fmt.Errorf("%s: %s: %s: want an object with a member per command",
			commands.Place(), sandboxSection, commandsSection)
	}
	return list, nil
}

// one returns the member of that name; nil: there is none.
func one(members []config.Member, name string) (found *config.Member, err error) {
	for _, m := range members {
		switch {
		case m.Name != name:
		case found != nil:
			return nil, fmt.Errorf("%s: %s: it is there twice, first at %s", m.Place(), name, found.Place())
		default:
			found = &m
		}
	}
	return found, nil
}

func readAddition(m config.Member) (a programs.Addition, err error) {
	var in additionJSON
	if err := strictjson.Decode("key", m.JSON(), &in, "path", "summary"); err != nil {
		return a, fmt.Errorf("%s: %w", texts.Quote(m.Name), err)
	}
	if in.Summary == "" {
		return a, fmt.Errorf("%s: summary: say in a few words what it does: agents read it", texts.Quote(m.Name))
	}
	a = programs.Addition{Name: m.Name, Path: in.Path, Summary: in.Summary, Operands: in.Operands, Threads: in.Threads}
	for i, text := range in.Options {
		var o additionOptionJSON
		if err := strictjson.Decode("key", text, &o); err != nil {
			return a, fmt.Errorf("%s: options[%d]: %w", texts.Quote(m.Name), i, err)
		}
		a.Options = append(a.Options, programs.AdditionOption(o))
	}
	return a, nil
}
