package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// shellNeeds are the programs of the baseline of streams.
var shellNeeds = []string{"bash", "jq", "grep", "cut"}

// stream compares a long stream through mcsh run with the same programs in a pipe of bash. Both sides are fed by this
// process.
func stream(steps ...step) opener {
	return func(_ context.Context, b *bench) (pair, error) {
		data := newFeed(b.sizes.big, false)
		var last [2]string
		ours := func(ctx context.Context) ([]quantity, error) {
			cmd := exec.CommandContext(ctx, b.mcsh, "run", "--sandbox", "local", "--no-builtin", "--input", "-", "--timeout", "1h", pipelineOf(steps...))
			return through(cmd, data, &last[0])
		}
		base := func(ctx context.Context) ([]quantity, error) {
			q, err := through(exec.CommandContext(ctx, "bash", "-c", shellPipe(steps)), data, &last[1])
			return slices.DeleteFunc(q, func(q quantity) bool { return q.figure == rss }), err // bash itself does nothing
		}
		return pair{ours: ours, base: base, close: func() error {
			if last[0] != last[1] && last[0] != "" && last[1] != "" {
				return fmt.Errorf("mcsh wrote %.200q and bash %.200q", last[0], last[1])
			}
			return nil
		}}, nil
	}
}

// shellPipe writes the commands of steps for bash.
func shellPipe(steps []step) string {
	var list []string
	for _, s := range steps {
		if s["type"] != "command" {
			continue
		}
		words := []string{s["command"].(string)}
		for _, arg := range s["args"].([]string) {
			words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
		}
		list = append(list, strings.Join(words, " "))
	}
	return strings.Join(list, " | ")
}

// through feeds a program and measures it. The memory is that of the program alone, without what it starts.
func through(cmd *exec.Cmd, data feed, last *string) ([]quantity, error) {
	var stdout, stderr bytes.Buffer
	fed := &counter{r: data.reader()}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = fed, &stdout, &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	peak := watch(cmd.Process.Pid, ended)
	err := cmd.Wait()
	took := time.Since(start)
	close(ended)
	rssPeak := <-peak
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %.600s", cmd.Args[0], err, stderr.Bytes())
	}
	*last = stdout.String()
	if *last == "" {
		return nil, errors.New("no output came")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() // of all that it has waited for, too
	mb := float64(fed.n) / 1e6
	return []quantity{
		{"time", float64(took), duration},
		{"MB/s", mb / took.Seconds(), rate},
		{"MB/s of CPU", mb / cpu.Seconds(), rate},
		{rss, float64(rssPeak), size},
	}, nil
}

// A counter counts what is read from r.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// watch looks at the memory of a process until it has ended. The kernel keeps the peak, so that looking seldom is
// enough for all but the last moment.
func watch(pid int, ended <-chan struct{}) <-chan int64 {
	peak := make(chan int64, 1)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		highest := int64(0)
		for {
			if now, ok := peakRSS(pid); ok {
				highest = max(highest, now)
			}
			select {
			case <-ended:
				peak <- highest
				return
			case <-tick.C:
			}
		}
	}()
	return peak
}
