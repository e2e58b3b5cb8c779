package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/local"
	"github.com/mcsh-dev/mcsh/stages"
)

// Of the pools that are measured.
const (
	warmWorkers = 2  // workers, or containers, that wait
	mostCallers = 64 // runs at a time
)

// A place is where commands run.
type place struct {
	name   string
	lacks  func(ctx context.Context) string // why nothing runs there, if nothing does
	driver func(b *bench) sandbox.Driver
}

// places is the table.
var places = []place{
	{"local", nil, func(b *bench) sandbox.Driver { return local.New(local.Options{Worker: []string{b.worker}}) }},
	{"docker", lacksImage, func(*bench) sandbox.Driver { return docker.New(dockerOptions()) }},
}

// dockerOptions are the usual engine, with the image that make image builds of this tree.
func dockerOptions() docker.Options {
	return docker.Options{Host: os.Getenv("DOCKER_HOST"), Image: docker.DefaultImage("")}
}

func lacksImage(ctx context.Context) string {
	e, err := docker.Connect(ctx, dockerOptions())
	if err != nil {
		return err.Error()
	}
	defer e.Close()
	if _, err := e.ImageID(ctx, dockerOptions().Image); err != nil {
		return err.Error()
	}
	return ""
}

// open starts a pool of workers.
func (p place) open(ctx context.Context, b *bench) (*sandbox.Pool, error) {
	return sandbox.New(ctx, sandbox.Options{Driver: p.driver(b), Warm: warmWorkers, Max: mostCallers, Lasting: true})
}

// sandboxRows are the rows of every place.
func sandboxRows() []row {
	var list []row
	for _, p := range places {
		in := ", " + p.name
		rows := []row{
			{name: "a run and its first command" + in, baseline: started, open: p.firstCommand, goals: []goal{most("p50", 7)}},
			{name: "a command of a run" + in, baseline: started, open: p.laterCommand(plainProcess), goals: []goal{most("p50", 6)}},
			{
				name: "stream: grep, cut, sed, wc" + in, baseline: shell, long: true, needs: shellNeeds,
				open: p.fused, goals: []goal{least("MB/s", 0.5)},
			},
			{name: "runs, 1 caller" + in, baseline: sideBySide, open: p.callers(1)},
			{name: "runs, 8 callers" + in, baseline: sideBySide, open: p.callers(8)},
			{name: "runs, 64 callers" + in, baseline: sideBySide, open: p.callers(mostCallers)},
		}
		for i := range rows {
			rows[i].lacks = p.lacks
		}
		list = append(list, rows...)
	}
	return append(list, row{
		name: "a command of a run, docker, by docker exec", baseline: "docker exec of the same program in a container that runs",
		needs: []string{"docker"}, lacks: lacksImage, open: byDockerExec, goals: []goal{most("p50", 0.2)},
	})
}

const (
	started    = "the same program started with os/exec"
	sideBySide = "as many processes of the same program started with os/exec, as many at a time"
)

// small is what the commands of these rows read, and firstField what they run.
var (
	small      = strings.Repeat("abc,defgh,ijkl\n", 68) // 1 KB
	firstField = stages.Command{Name: "cut", Args: []string{"-d,", "-f1"}, Timeout: time.Minute}
)

// plainProcess is the baseline: no sandbox at all.
func plainProcess(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, firstField.Name, firstField.Args...)
	cmd.Stdin, cmd.Stdout = strings.NewReader(small), io.Discard
	return cmd.Run()
}

// oneRun is a run with one command.
func oneRun(ctx context.Context, pool *sandbox.Pool, caller string) error {
	session, err := pool.Open(ctx, caller)
	if err != nil {
		return err
	}
	err = oneCommand(ctx, session)
	return errors.Join(err, session.Close())
}

func oneCommand(ctx context.Context, session stages.Session) error {
	filter, err := session.Prepare([]stages.Command{firstField}, nil)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := filter(ctx, strings.NewReader(small), &out); err != nil {
		return err
	}
	if !strings.HasPrefix(out.String(), "abc\n") {
		return fmt.Errorf("the command wrote %.100q", out.String())
	}
	return nil
}

// firstCommand takes a worker that waits, runs a command in it and gives it back.
func (p place) firstCommand(ctx context.Context, b *bench) (pair, error) {
	pool, err := p.open(ctx, b)
	if err != nil {
		return pair{}, err
	}
	ours := func(ctx context.Context) error { return oneRun(ctx, pool, "bench") }
	return pair{ours: repeated(b.sizes.chains, ours), base: repeated(b.sizes.chains, plainProcess), close: pool.Close}, nil
}

// laterCommand runs a command in a worker that has run others.
func (p place) laterCommand(base func(context.Context) error) opener {
	return func(ctx context.Context, b *bench) (pair, error) { return p.later(ctx, b, base) }
}

func (p place) later(ctx context.Context, b *bench, base func(context.Context) error) (pair, error) {
	pool, err := p.open(ctx, b)
	if err != nil {
		return pair{}, err
	}
	session, err := pool.Open(ctx, "bench")
	if err != nil {
		return pair{}, errors.Join(err, pool.Close())
	}
	ours := func(ctx context.Context) error { return oneCommand(ctx, session) }
	return pair{ours: repeated(b.sizes.chains, ours), base: repeated(b.sizes.chains, base), close: func() error {
		return errors.Join(session.Close(), pool.Close())
	}}, nil
}

// byDockerExec starts a container for the baseline.
func byDockerExec(ctx context.Context, b *bench) (pair, error) {
	out, err := exec.CommandContext(ctx, "docker", "run", "--detach", "--rm", "--network", "none", "--entrypoint", "sleep", dockerOptions().Image, "1d").Output()
	if err != nil {
		return pair{}, fmt.Errorf("starting a container: %w", err)
	}
	id := strings.TrimSpace(string(out))
	end := func() error { return exec.Command("docker", "rm", "--force", id).Run() }
	argv := append([]string{"exec", "--interactive", id, firstField.Name}, firstField.Args...)
	base := func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, "docker", argv...)
		cmd.Stdin, cmd.Stdout = strings.NewReader(small), io.Discard
		return cmd.Run()
	}
	p, err := places[len(places)-1].later(ctx, b, base)
	if err != nil {
		return pair{}, errors.Join(err, end())
	}
	inner := p.close
	p.close = func() error { return errors.Join(inner(), end()) }
	return p, nil
}

// callers counts runs that several callers begin side by side, one after another each.
func (p place) callers(n int) opener {
	return func(ctx context.Context, b *bench) (pair, error) {
		pool, err := p.open(ctx, b)
		if err != nil {
			return pair{}, err
		}
		each := max(b.sizes.chains/n, 1)
		ours := func(ctx context.Context, caller int) error { return oneRun(ctx, pool, fmt.Sprint("bench ", caller)) }
		base := func(ctx context.Context, _ int) error { return plainProcess(ctx) }
		return pair{ours: pacing("runs", n, each, ours), base: pacing("runs", n, each, base), close: pool.Close}, nil
	}
}

// pacing is n callers that do the same work, so many times each, after one time that does not count.
func pacing(what string, n, each int, work func(ctx context.Context, caller int) error) side {
	all := func(ctx context.Context, times int) error {
		g, ctx := errgroup.WithContext(ctx)
		for caller := range n {
			g.Go(func() error {
				for range times {
					if err := work(ctx, caller); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	}
	return func(ctx context.Context) ([]quantity, error) {
		if err := all(ctx, 1); err != nil {
			return nil, err
		}
		m := startMeter()
		if err := all(ctx, each); err != nil {
			return nil, err
		}
		u := m.stop()
		count := float64(n * each)
		return []quantity{
			{what + "/s", count / u.elapsed.Seconds(), rate},
			{"CPU of one", float64(u.cpu) / count, duration},
		}, nil
	}
}

// fusedSteps are four commands that pass most of what they read.
var fusedSteps = []step{
	command("grep", "-v", "debug"), command("cut", "-d,", "-f1-4"), command("sed", "s/user/u/"), command("wc", "-l"),
}

// fused compares a long stream through four commands of one chain with the same programs in a pipe of bash.
func (p place) fused(ctx context.Context, b *bench) (pair, error) {
	data := newFeed(b.sizes.piped, false)
	pool, err := p.open(ctx, b)
	if err != nil {
		return pair{}, err
	}
	session, err := pool.Open(ctx, "bench")
	if err != nil {
		return pair{}, errors.Join(err, pool.Close())
	}
	var chain []stages.Command
	for _, s := range fusedSteps {
		chain = append(chain, stages.Command{Name: s["command"].(string), Args: s["args"].([]string), Timeout: time.Hour})
	}
	filter, err := session.Prepare(chain, nil)
	if err != nil {
		return pair{}, errors.Join(err, session.Close(), pool.Close())
	}
	var last [2]string
	ours := func(ctx context.Context) ([]quantity, error) {
		var out strings.Builder
		m := startMeter()
		if err := filter(ctx, data.reader(), &out); err != nil {
			return nil, err
		}
		u := m.stop()
		last[0] = out.String()
		return []quantity{{"MB/s", float64(data.size) / 1e6 / u.elapsed.Seconds(), rate}}, nil
	}
	base := func(ctx context.Context) ([]quantity, error) {
		q, err := through(exec.CommandContext(ctx, "bash", "-c", shellPipe(fusedSteps)), data, &last[1])
		return slices.DeleteFunc(q, func(q quantity) bool { return q.figure != "MB/s" }), err
	}
	return pair{ours: ours, base: base, close: func() error {
		err := errors.Join(session.Close(), pool.Close())
		if last[0] != last[1] {
			err = errors.Join(err, fmt.Errorf("mcsh wrote %.200q and bash %.200q", last[0], last[1]))
		}
		return err
	}}, nil
}
