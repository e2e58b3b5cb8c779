//go:build linux

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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

// The roles of processes of this binary.
const (
	roleApplet = "applet"
	roleHost   = "host" // given by the container's command
	roleSurvey = "hostInfo"
	roleServe  = "serve" // the worker
)

// processName is what the worker's processes are called.
const processName = "mcsh-worker"

// The exit status, and the beginning of the message, of an applet that could not be locked in. A program that
// imitates them makes only itself fail.
const (
	jailStatus = 125
	jailPrefix = "mcsh-jail: "
)

// roles is the table.
var roles = map[string]func(args []string, o Options) error{roleSurvey: hostInfoMain, roleHost: hostMain, roleServe: serve}

// Main plays the role that the first of args, which are without the process's name, asks for and returns the exit
// status.
func Main(args []string, o Options) int {
	if len(args) > 0 && args[0] == roleApplet {
		return appletMain(args[1:], o)
	}
	err := errors.New("it is of no use by itself: the gateway starts it")
	if len(args) > 0 {
		if role, ok := roles[args[0]]; ok {
			err = role(args[1:], o)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", processName, err)
		return 1
	}
	return 0
}

// serve is the worker, which its starter has locked in. args are the directory for scratch directories, and what a
// hostInfo has found.
func serve(args []string, o Options) error {
	if len(args) != 2 {
		return fmt.Errorf("unknown arguments %q: a worker is started by the gateway", args)
	}
	if err := jail.Locked(); err != nil {
		return err
	}
	s, err := readHostInfo(args[1])
	if err == nil {
		o, err = o.with(s.Added)
	}
	if err != nil {
		return err
	}
	w := newWorker(o, args[0], s)
	lingerBriefly()
	defer w.inputs.drop()
	defer w.idle.close()
	// A thread that waits in a read takes a processor with it until the runtime notices; one that polls does not.
	for _, fd := range []int{0, 1} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return os.NewSyscallError("fcntl", err)
		}
	}
	// The gateway may say nothing for long. If this fails the hiding reader tries again, and tells.
	time.AfterFunc(offerTime, func() { _ = jail.Hide() })
	return wire.Serve(context.Background(), stdio{&hiding{in: os.NewFile(0, "input")}, os.NewFile(1, "output")}, w.hello(), wire.Host{
		Run: w.busy(w.run), Renew: w.renew,
	})
}

// lastMoments is how long a worker whose gateway has died may take to end its commands and remove their files. It sees
// the end of its input at the same time.
const lastMoments = 5 * time.Second

// lingerBriefly makes the signal of the gateway's death one that does not kill at once.
func lingerBriefly() {
	orphaned := make(chan os.Signal, 1)
	signal.Notify(orphaned, syscall.SIGTERM)
	go func() {
		<-orphaned
		time.Sleep(lastMoments)
		os.Exit(1)
	}()
}

// offerTime is how long the starter of a process may take to make it the first to be killed when memory runs out.
const offerTime = 100 * time.Millisecond

// A hiding reader hides this process before it returns the first words of the gateway. By then the starter has made it
// the first to be killed, which nobody can do to a hidden one.
type hiding struct {
	in   io.Reader
	done bool
}

// Read implements [io.Reader].
func (h *hiding) Read(p []byte) (int, error) {
	n, err := h.in.Read(p)
	if n > 0 && !h.done {
		if err := jail.Hide(); err != nil {
			return 0, err
		}
		h.done = true
	}
	return n, err
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
