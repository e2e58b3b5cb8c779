//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An agentPlan is what a client does that is a process of its own: it connects, and runs a pipeline.
type agentPlan struct {
	URL      string   // of the gateway; empty: it starts it
	Args     []string // of the gateway, its program first
	Dir      string
	Version  string
	Pipeline string
}

// planVariable holds the plan of an agent.
const planVariable = "MCSH_E2E_PLAN"

// command prepares the process, with the environment that its gateway is to have.
func (a agentPlan) command(t *testing.T, entry object, gateway *process) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(entry["command"].(string))
	cmd.Env = append(gateway.Env, planVariable+"="+encode(t, a))
	for name, value := range entry["env"].(map[string]string) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = ownSession()
	return cmd
}

// agent is the process.
func agent() {
	if err := runAgent(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "the agent:", err)
		os.Exit(1)
	}
}

func runAgent(ctx context.Context) error {
	var plan agentPlan
	if err := json.Unmarshal([]byte(os.Getenv(planVariable)), &plan); err != nil {
		return err
	}
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: plan.URL, HTTPClient: &http.Client{}}
	if plan.URL == "" {
		cmd := exec.Command(plan.Args[0], plan.Args[1:]...)
		cmd.Dir = plan.Dir
		transport = &mcp.CommandTransport{Command: cmd}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).
		Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: plan.Version})
	if err != nil {
		return err
	}
	_, err = session.CallTool(ctx, pipelineCall(plan.Pipeline))
	return fmt.Errorf("the call has ended: %w", err)
}

// tells makes a tool that takes so long, and tells in files how its call fares.
func tells(takes time.Duration) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		var a struct {
			Dir string
			N   int
		}
		if err := json.Unmarshal(args, &a); err != nil {
			return "", err
		}
		tell := func(word string) error {
			return os.WriteFile(filepath.Join(a.Dir, fmt.Sprintf("%d.%s", a.N, word)), nil, 0o600)
		}
		if err := tell("begun"); err != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(tell(cancelled), ctx.Err())
		case <-time.After(takes):
		}
		if err := tell(finished); err != nil {
			return "", err
		}
		return textResult(`"done"`)
	}
}
