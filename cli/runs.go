package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/internal/texts"
	"github.com/mcsh-dev/mcsh/stages"
	"github.com/mcsh-dev/mcsh/upstream"
)

// A knownRun is a run of a gateway.
type knownRun struct {
	Gateway string `json:"gateway"`
	control.Run
}

// A runDetail is a run of a gateway with its stages.
type runDetail struct {
	Gateway string `json:"gateway"`
	control.RunDetail
	client *control.Client
}

// runStates are the states of runs that --only takes, with their words for people.
var runStates = map[string]string{
	control.RunRunning: "running", control.RunAsking: "asking", control.RunOK: "ok", control.RunFailed: "failed",
	control.RunCancelled: "cancelled", control.RunTimedOut: "timed out",
}

func (p *program) runsCommand() *cobra.Command {
	return group("runs", "Look at the runs of the running gateways, and cancel them", "Look at the runs of the running gateways of this user, live and "+
		"finished. A finished run is known as long as its outputs are kept.",
		p.runsListCommand(), p.runsShowCommand(), p.runsOutputCommand(), p.runsWaitCommand(), p.runsCancelCommand())
}

func (p *program) runsListCommand() *cobra.Command {
	var g gatewayFlags
	var f control.RunFilter
	cmd := &cobra.Command{
		Use: "ls", Short: "List runs, the newest first", Args: gatewayByFlag,
		Example: "  mcsh runs ls\n  mcsh runs ls --only failed --tool github/\n  mcsh runs ls --json",
	}
	names := strings.Join(slices.Sorted(maps.Keys(runStates)), ", ")
	flags := cmd.Flags()
	flags.StringSliceVar(&f.States, "only", nil, "runs in these states: "+names)
	flags.StringVar(&f.Tool, "tool", "", "runs that have called a tool with this in its name, such as github/get_issue")
	flags.StringVar(&f.Caller, "caller", "", "runs whose caller or client has this in its name")
	flags.StringVar(&f.Text, "text", "", "runs with this in their names or pipeline")
	flags.IntVar(&f.Limit, "limit", 50, "how many runs of each gateway; 0: all")
	return command(cmd, func(ctx context.Context, _ []string) error {
		for _, state := range f.States {
			if runStates[state] == "" {
				return usageError("the states are "+names, "there is no state %s", texts.Quote(state))
			}
		}
		if f.Limit < 0 {
			return usageError("0 shows all", "--limit %d is below zero", f.Limit)
		}
		return p.listRuns(ctx, &g, f)
	}, g.add, p.jsonFlag("print one JSON object per run, a line each"))
}

func (p *program) listRuns(ctx context.Context, g *gatewayFlags, f control.RunFilter) error {
	lists, errs, err := g.runs(ctx, p, f)
	if err != nil {
		return err
	}
	for id, list := range lists {
		if list.More > 0 && !p.json {
			fmt.Fprintf(p.stderr, "note: gateway %s has %s more; --limit 0 shows all\n", id, texts.Count(list.More, "run"))
		}
	}
	found := distinct(lists)
	if p.json {
		for _, r := range found {
			if err := p.print(r, ""); err != nil {
				return err
			}
		}
	} else if len(found) > 0 {
		fmt.Fprint(p.text, runTable(found, len(lists) > 1, time.Now(), p.columns(p.stdout)))
	} else if len(errs) == 0 {
		fmt.Fprintln(p.stderr, "no run is known")
	}
	return p.printErrors(ctx, errs)
}

// distinct returns the runs of gateways, the newest first, each once: from the gateway that knows most of it.
func distinct(lists map[string]control.RunList) (found []knownRun) {
	for id, list := range lists {
		found = append(found, convert(list.Runs, func(r control.Run) knownRun { return knownRun{id, r} })...)
	}
	slices.SortFunc(found, func(a, b knownRun) int {
		return cmp.Or(b.Started.Compare(a.Started), strings.Compare(a.Request, b.Request), cmp.Compare(b.Calls, a.Calls), strings.Compare(a.Gateway, b.Gateway))
	})
	return slices.CompactFunc(found, func(a, b knownRun) bool { return a.Request == b.Request })
}

// runs asks the selected gateways for runs.
func (g *gatewayFlags) runs(ctx context.Context, p *program, f control.RunFilter) (map[string]control.RunList, map[string]error, error) {
	clients, err := g.find(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	lists, errs := askAll(clients, func(_ string, c *control.Client) (control.RunList, error) { return c.Runs(ctx, f) })
	g.leaveOutEnded(errs)
	return lists, errs, nil
}

// oneRun returns the run that a command is about: the named one, or else the newest; with live, the only live one.
func (g *gatewayFlags) oneRun(ctx context.Context, p *program, args []string, live bool) (runDetail, error) {
	request := strings.Join(args, "")
	if request == "" {
		var f control.RunFilter
		if live {
			f.States = []string{control.RunRunning, control.RunAsking}
		}
		lists, errs, err := g.runs(ctx, p, f)
		if err == nil {
			err = errors.Join(slices.Collect(maps.Values(errs))...)
		}
		if err != nil {
			return runDetail{}, gatewayFailure(err)
		}
		all := distinct(lists)
		switch {
		case live && len(all) == 0:
			return runDetail{}, &failure{exitFailed, errors.New("no run is live"), "mcsh runs ls lists those that have ended"}
		case len(all) == 0:
			return runDetail{}, &failure{exitFailed, errors.New("no run is known"), "mcsh runs ls lists all"}
		case live && len(all) > 1:
			return runDetail{}, usageError("name one of them; mcsh runs ls lists them", "%s are live", texts.Count(len(all), "run"))
		}
		request = all[0].Request
	}
	clients, err := g.find(ctx, p)
	if err != nil {
		return runDetail{}, err
	}
	found, errs := askAll(clients, func(_ string, c *control.Client) (control.RunDetail, error) { return c.Run(ctx, request) })
	var all []runDetail
	for id, d := range found {
		all = append(all, runDetail{id, d, clients[id]})
	}
	if len(all) > 0 {
		return slices.MaxFunc(all, func(a, b runDetail) int {
			return cmp.Or(cmp.Compare(a.Calls, b.Calls), cmp.Compare(len(a.Stages), len(b.Stages)))
		}), nil
	}
	g.leaveOutEnded(errs)
	none := fmt.Errorf("no running gateway knows the run %s", texts.Quote(request))
	for _, err := range errs {
		if e, ok := errors.AsType[*control.Error](err); !ok || e.Status != http.StatusNotFound {
			return runDetail{}, gatewayFailure(err)
		}
	}
	return runDetail{}, &failure{exitFailed, none, "runs are known as long as their outputs are kept, and their gateway runs; mcsh runs ls lists them"}
}

// runCommandOf returns a command about one run.
func (p *program) runCommandOf(cmd *cobra.Command, live bool, run func(context.Context, runDetail) error, flags ...func(*cobra.Command)) *cobra.Command {
	var g gatewayFlags
	cmd.Use, cmd.Args = cmd.Use+" [REQUEST]", cobra.MaximumNArgs(1)
	names := func(ctx context.Context) (words []string) {
		lists, _, _ := g.runs(ctx, p, control.RunFilter{}) // a completion cannot report an error
		for _, list := range lists {
			for _, r := range list.Runs {
				if r.Live() || !live {
					words = append(words, r.Request+"\t"+runStates[r.State]+" "+strings.Join(r.Tools, " "))
				}
			}
		}
		return words
	}
	return command(cmd, func(ctx context.Context, args []string) error {
		d, err := g.oneRun(ctx, p, args, live)
		if err != nil {
			return err
		}
		return run(ctx, d)
	}, append(flags, g.add, completing(firstArgument, names))...)
}

func (p *program) runsShowCommand() *cobra.Command {
	return p.runCommandOf(&cobra.Command{
		Use: "show", Short: "Show a run with its stages; without REQUEST the newest",
		Example: "  mcsh runs show\n  mcsh runs show q_k3vq7hd2mwxa --json",
	}, false, func(_ context.Context, d runDetail) error {
		return p.print(d, runText(d, time.Now(), p.columns(p.stdout)))
	}, p.jsonFlag("print one JSON object"))
}

func (p *program) runsOutputCommand() *cobra.Command {
	stage := 0
	return p.runCommandOf(&cobra.Command{
		Use: "output", Short: "Print what a finished run, or one of its stages, has produced, byte for byte",
		Example: "  mcsh runs output q_k3vq7hd2mwxa --stage 2 | head",
	}, false, func(ctx context.Context, d runDetail) error {
		for at := (control.OutputRequest{Request: d.Request, Stage: stage}); ; {
			part, err := d.client.Output(ctx, at)
			if err != nil {
				return gatewayFailure(err)
			}
			if p.json {
				err = writeJSON(p.stdout, part)
			} else {
				_, err = p.stdout.Write(part.Data)
			}
			if err != nil {
				return p.stdout.result(err)
			}
			if at.Offset += int64(len(part.Data)); at.Offset >= part.Size || len(part.Data) == 0 {
				return nil
			}
		}
	}, func(cmd *cobra.Command) {
		cmd.Flags().IntVar(&stage, "stage", 0, "its stage, from 1; 0, the default, is the last one")
	},
		p.jsonFlag(`print its parts, {"offset", "size", "data"} with data in base64, a line each`))
}

func (p *program) runsWaitCommand() *cobra.Command {
	return p.runCommandOf(&cobra.Command{
		Use: "wait", Short: "Wait for the end of a run; without REQUEST for the only live one",
		Long: "Wait for the end of a run, with its progress on a terminal. The exit status is that of mcsh run.",
	}, true, p.waitForRun, p.jsonFlag("print one JSON object at the end"))
}

// waitForRun waits for the end of a run, and returns how it ended.
func (p *program) waitForRun(ctx context.Context, d runDetail) error {
	screen := p.show(func() []upstream.ServerStatus { return nil })
	defer screen.stop()
	for d.Live() {
		list := reportsOf(d.Stages)
		screen.follow(d.Started, func() []stages.StageReport { return list })
		cursor, err := d.client.Wait(ctx, d.Cursor)
		if err == nil {
			d.RunDetail, err = d.client.Run(ctx, d.Request)
		}
		if err != nil {
			return gatewayFailure(err)
		}
		d.Cursor = cursor
	}
	screen.stop()
	if err := p.print(d, strings.Join(runWords(d.Run, time.Now()), "  ")+"\n"); err != nil || d.State == control.RunOK {
		return err
	}
	if !p.json && d.Error != nil {
		fmt.Fprint(p.stderr, errorText(errors.New(failureWords(d.Error)), d.Error.Hint))
	}
	return reportedStatus(cmp.Or(exitCodes[stages.Code(d.Code)], exitFailed))
}

func (p *program) runsCancelCommand() *cobra.Command {
	return p.runCommandOf(&cobra.Command{
		Use: "cancel", Short: "Cancel a live run; without REQUEST the only one",
		Long: "Cancel a live run and its calls in flight. Its client gets an answer that says so.",
	}, true, func(ctx context.Context, d runDetail) error {
		if err := d.client.Cancel(ctx, d.Request); err != nil {
			return gatewayFailure(err)
		}
		return p.print(map[string]string{"gateway": d.Gateway, "request": d.Request}, "run "+d.Request+" is cancelled\n")
	}, p.jsonFlag("print one JSON object"))
}
