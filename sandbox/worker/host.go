//go:build linux

package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// A host is the first process of a container. It runs one worker after another, each with a process and a scratch directory
// of its own. The gateway's stream to a worker ends the worker, which the host kills by its own end if need be.
type host struct {
	workers *Launcher
	scratch string // the directory of the workers' directories
	in      *wire.ChunkReader
	out     *wire.ChunkWriter
	kills   int64 // of the kernel for want of memory, when the host began
}

const (
	workerGrace  = 2 * time.Second // between the end of a worker's input and its own
	hostBuffer   = 128 << 10
	scratchSpare = 16 << 20 // bytes that must be free on the scratch disk for another worker
	cleanTries   = 100      // of removing a scratch directory, tick apart
)

// silence is how long the gateway, which sends pings, may say nothing. Then it is gone: its machine may have failed, or the engine
// in between was restarted.
const silence = 3 * wire.Silence

var errGatewayGone = errors.New("the gateway is gone")

// hostMain is the first process of a container. args are the directory of scratch directories and, if there are any, that of
// the workspace and the operator's programs. It ends, and all processes with it, when the gateway's stream does. The error is
// why the container serves no more.
func hostMain(args []string, o Options) error {
	if len(args) < 1 || len(args) > 3 || !filepath.IsAbs(args[0]) {
		return fmt.Errorf("unknown arguments %q: a host is started by the gateway with the directory for scratch files, that of the workspace and added programs", args)
	}
	if err := jail.Hide(); err != nil {
		return err
	}
	widen(os.Stdin, pipeSize) // what the engine's runtime has made is small, and the process that fills or empties it takes turns with this process
	widen(os.Stdout, pipeSize)
	own, err := os.Executable()
	if err != nil {
		return err
	}
	args = append(args, "", "")
	s, err := lookAround(o, args[1], args[2])
	if err != nil {
		return err
	}
	workers, err := newLauncher(slices.Concat([]string{own}, o.Prefix), s, 0, pipeSize)
	if err != nil {
		return err
	}
	gateway := &watched{os.Stdin, time.AfterFunc(silence, func() { os.Exit(1) })}
	h := &host{
		workers: workers, scratch: args[0], kills: oomKills(),
		in: wire.NewChunkReader(bufio.NewReaderSize(gateway, hostBuffer)), out: wire.NewChunkWriter(os.Stdout),
	}
	for err == nil {
		err = h.serve()
	}
	if err == errGatewayGone {
		return nil
	}
	return err
}

// A watched reader puts its timer off whenever something comes.
type watched struct {
	r     io.Reader
	timer *time.Timer
}

// Read implements [io.Reader].
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.timer.Reset(silence)
	return n, err
}

// serve is the life of one worker.
func (h *host) serve() error {
	dir, err := os.MkdirTemp(h.scratch, "")
	if err != nil {
		return fmt.Errorf("making a scratch directory: %w", err)
	}
	w, in, out, err := h.workers.Start(dir, os.Stderr)
	if err != nil {
		return fmt.Errorf("starting a worker: %w", err)
	}
	asked := make(chan error, 1) // gets how the gateway's stream has ended, before the worker can see that
	go func() {
		_, err := io.CopyBuffer(onlyWriter{in}, h.in, make([]byte, hostBuffer))
		switch {
		case err == nil:
			asked <- nil
		case !errors.Is(err, syscall.EPIPE): // it was not the worker that has ended
			asked <- errGatewayGone
		}
		in.Close()
	}()
	said := make(chan struct{}) // closed when all that the worker said has been passed on
	go func() {
		defer close(said)
		_, _ = io.CopyBuffer(h.out, onlyReader{out}, make([]byte, hostBuffer)) // a gateway that is gone shows in its own stream
		out.Close()
	}()
	if err := await(w, asked); err != nil {
		return err
	}
	if os.Getpid() == 1 {
		_ = syscall.Kill(-1, syscall.SIGKILL) // what the worker has left; mostly there is nothing
	}
	<-said
	if err := clean(dir); err != nil {
		return err
	}
	if err := h.look(); err != nil {
		return err
	}
	return h.out.End()
}

// The two keep io.Copy from the faster ways that files offer: splice needs a socket or a pipe at both ends.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// await returns when the worker is dead. The error is why it should be the last one.
func await(w *jail.Process, asked <-chan error) error {
	ended := make(chan syscall.WaitStatus, 1)
	go func() { ended <- reap(w.Pid()) }()
	select {
	case status := <-ended:
		select {
		case err := <-asked:
			return err
		default:
			return fmt.Errorf("a worker ended by itself: %s", describeExit(status))
		}
	case err := <-asked:
		if err != nil {
			return err
		}
	}
	select {
	case <-ended:
		return nil
	case <-time.After(workerGrace):
		return errors.New("a worker did not end")
	}
}

// reap waits for the end of a worker. It reaps what became a child of the container's first process meanwhile, too.
func reap(worker int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if pid == worker || err == syscall.ECHILD {
			return status
		}
	}
}

func describeExit(s syscall.WaitStatus) string {
	if s.Signaled() {
		return s.Signal().String()
	}
	return "exit status " + strconv.Itoa(s.ExitStatus())
}

// clean removes what a worker has left. Its commands, which die with it, may still be dying.
func clean(dir string) (err error) {
	for range cleanTries {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(tick)
	}
	return fmt.Errorf("removing a scratch directory: %w", err)
}

// look finds out whether the container should go on.
func (h *host) look() error {
	if oomKills() > h.kills {
		return errors.New("the kernel has killed a process because the container's memory was used up")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(h.scratch, &st); err == nil && st.Bavail*uint64(st.Bsize) < scratchSpare {
		return errors.New("the disk for scratch files is full")
	}
	return nil
}
