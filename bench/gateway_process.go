package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"syscall"
)

// endpoint is where mcsh says that it listens.
var endpoint = regexp.MustCompile(`http://[0-9.:]+/mcp`)

// listenGateway starts mcsh serve over HTTP and returns its endpoint and its process.
func (b *bench) listenGateway(ctx context.Context, s *stack, config string) (string, int, error) {
	cmd := exec.CommandContext(ctx, b.mcsh, "serve", "--config", config, "--state", "off", "--sandbox", "local", "--limit", fmt.Sprint("caller-runs=", mostCallers), "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", 0, err
	}
	if err := cmd.Start(); err != nil {
		return "", 0, fmt.Errorf("starting mcsh serve: %w", err)
	}
	said := bufio.NewReader(stderr)
	line, err := said.ReadString('\n')
	url := endpoint.FindString(line)
	drained := make(chan struct{})
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, said) }() // it ends with the process
	s.push(func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM) // if it has ended, Wait says why
		<-drained
		return cmd.Wait()
	})
	if url == "" {
		return "", 0, fmt.Errorf("mcsh serve said %q: %w", line, err)
	}
	return url, cmd.Process.Pid, nil
}
