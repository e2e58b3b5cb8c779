//go:build linux

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// Options change what [Main] does. The zero value is a worker of its own binary.
type Options struct {
	// Prefix is what a process must be given, after its name, so that it calls Main with the rest: "worker" where
	// the worker is a subcommand of a larger binary.
	Prefix []string

	// Extra are programs besides those of the table.
	Extra []programs.Program
}

// The roles that the worker gives to processes it starts from its own binary.
const (
	roleApplet = "applet"
	roleHost   = "host"  // given by the container's command
	roleServe  = "serve" // the worker again, once it is locked in
)

// processName is what the worker's processes are called.
const processName = "mcsh-worker"

// The exit status, and the beginning of the message, of an applet that could not be locked in. A program that
// imitates them makes only itself fail.
const (
	jailStatus = 125
	jailPrefix = "mcsh-jail: "
)

// roles are those that serve a gateway.
var roles = map[string]func(args []string, o Options) error{roleHost: hostMain, roleServe: serve}

// Main plays the role that args, without the process's name, ask for and returns the exit status. Without a role it
// locks itself in and serves a gateway on standard input and output; "-scratch DIR" says where the private directories of
// commands go, the directory for temporary files otherwise.
func Main(args []string, o Options) int {
	if len(args) > 0 && args[0] == roleApplet {
		return appletMain(args[1:], o)
	}
	role := harden
	if len(args) > 0 {
		if r, ok := roles[args[0]]; ok {
			role, args = r, args[1:]
		}
	}
	if err := role(args, o); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", processName, err)
		return 1
	}
	return 0
}

// harden locks the worker in and starts it anew, as roleServe.
func harden(args []string, o Options) error {
	scratch := os.TempDir()
	switch {
	case len(args) == 2 && args[0] == "-scratch":
		scratch = args[1]
	case len(args) > 0:
		return fmt.Errorf("unknown argument %q: a worker is started by the gateway and takes only -scratch DIR", args[0])
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	tools, _ := locate(o.Extra, jail.Supported())
	around, err := json.Marshal(surroundings()) // which cannot be seen from within
	if err != nil {
		return err
	}
	argv := slices.Concat([]string{processName}, o.Prefix, []string{roleServe, scratch, string(around)})
	return jail.Harden(reach(tools, scratch), argv)
}

// serve is the worker, locked in. args are the directory for scratch directories, and the surroundings as harden found
// them.
func serve(args []string, o Options) error {
	if len(args) != 2 {
		return fmt.Errorf("unknown arguments %q: %s is for the worker itself", args, roleServe)
	}
	if err := jail.Hide(); err != nil {
		return err
	}
	w := newWorker(o, scratch(args[0]))
	if err := json.Unmarshal([]byte(args[1]), &w.around); err != nil {
		return fmt.Errorf("reading the surroundings: %w", err)
	}
	lingerBriefly()
	defer w.inputs.drop()
	defer w.idle.drain()
	return wire.Serve(context.Background(), stdio{os.Stdin, os.Stdout}, w.hello(), wire.Host{Run: w.run, Keep: w.keep})
}

// lastMoments is how long a worker whose gateway has died may take to end its commands and remove their files. It sees
// the end of its input at the same time.
const lastMoments = 5 * time.Second

// lingerBriefly makes the signal that tells of the gateway's death one that does not kill at once.
func lingerBriefly() {
	orphaned := make(chan os.Signal, 1)
	signal.Notify(orphaned, syscall.SIGTERM)
	go func() {
		<-orphaned
		time.Sleep(lastMoments)
		os.Exit(1)
	}()
}

// stdio joins standard input and output. Close has nothing to do: the process ends with the connection.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }

func refuse(err error) int {
	fmt.Fprintf(os.Stderr, "%s%v\n", jailPrefix, err)
	return jailStatus
}
