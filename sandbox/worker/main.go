//go:build linux

package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

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
	roleJail   = "jail"
	roleApplet = "applet"
)

// The exit status, and the beginning of the message, of a helper that could not start its program. A program that
// imitates them makes only itself fail.
const (
	jailStatus = 125
	jailPrefix = "mcsh-jail: "
)

// Main plays the role that args, without the process's name, ask for and returns the exit status. Without a role it
// serves a gateway on standard input and output; "-scratch DIR" says where the private directories of commands go.
func Main(args []string, o Options) int {
	if len(args) > 0 {
		switch args[0] {
		case roleJail:
			return jailMain(args[1:])
		case roleApplet:
			return appletMain(args[1:], o)
		}
	}
	if err := serve(args, o); err != nil {
		fmt.Fprintf(os.Stderr, "mcsh-worker: %v\n", err)
		return 1
	}
	return 0
}

func serve(args []string, o Options) error {
	var s scratch
	switch {
	case len(args) == 2 && args[0] == "-scratch":
		s.base = args[1]
	case len(args) > 0:
		return fmt.Errorf("unknown argument %q: a worker is started by the gateway and takes only -scratch DIR", args[0])
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := jail.Harden(); err != nil {
		return err
	}
	defer s.remove()
	w := newWorker(o, &s)
	return wire.Serve(context.Background(), stdio{os.Stdin, os.Stdout}, w.hello(), w.run)
}

// stdio joins standard input and output. Close has nothing to do: the process ends with the connection.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }

// jailMain becomes the program of the jail.Spec in the first argument, with the other arguments.
func jailMain(args []string) int {
	var spec jail.Spec
	err := json.Unmarshal([]byte(args[0]), &spec)
	if err == nil {
		spec.Argv = args[1:]
		err = jail.Exec(spec)
	}
	return refuse(err)
}

func refuse(err error) int {
	fmt.Fprintf(os.Stderr, "%s%v\n", jailPrefix, err)
	return jailStatus
}
