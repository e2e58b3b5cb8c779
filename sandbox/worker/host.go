//go:build linux

package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/mux"
)

// A host is the first process of a container. Each stream that the gateway opens is one worker to it, with a process
// and a scratch directory of its own, which both end with the stream.
type host struct {
	workers *Launcher
	scratch string // the directory of the workers' directories
	nursery *nursery
	session *yamux.Session

	mu       sync.Mutex
	number   int   // of workers so far
	kills    int64 // of the kernel for want of memory, when the host began
	reported bool
}

const (
	workerGrace  = 2 * time.Second // between the end of a worker's input and its own
	hostBuffer   = 128 << 10
	scratchSpare = 16 << 20 // bytes that must be free on the scratch disk for another run
	cleanTries   = 100      // of removing a scratch directory, tick apart
)

// hostMain is the first process of a container, with the directory of scratch directories in args[0]. It ends, and all
// processes with it, when the gateway's stream does.
func hostMain(args []string, o Options) error {
	if len(args) < 1 || len(args) > 2 || !filepath.IsAbs(args[0]) {
		return fmt.Errorf("unknown arguments %q: a host is started by the gateway with the directory for scratch files, and that of the workspace if there is one", args)
	}
	if err := jail.Hide(); err != nil {
		return err
	}
	widen(os.Stdin) // what the engine's runtime has made is small, and whoever fills or empties it takes turns with this process
	widen(os.Stdout)
	session, err := mux.Host(stdio{os.Stdin, os.Stdout})
	if err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	s := makeSurvey(o)
	if len(args) == 2 {
		s.Workspace = args[1]
	}
	workers, err := newLauncher(slices.Concat([]string{own}, o.Prefix), s)
	if err != nil {
		return err
	}
	h := &host{
		workers: workers, scratch: args[0],
		nursery: newNursery(), session: session, kills: oomKills(),
	}
	for {
		stream, err := session.AcceptStream()
		if err != nil {
			h.nursery.killAll()
			return nil // the gateway is gone, however it went
		}
		h.look()
		go h.serve(stream)
	}
}

// serve is the life of one worker.
func (h *host) serve(stream *yamux.Stream) {
	defer stream.Close()
	dir, err := h.makeScratch()
	if err != nil {
		h.complain(err.Error())
		return
	}
	w, in, out, err := h.start(dir)
	if err != nil {
		h.complain("starting a worker: " + err.Error())
		_ = os.Remove(dir) // it is empty
		return
	}
	asked := make(chan struct{}) // closed when the gateway wants the worker to end
	go func() {
		_, err := io.CopyBuffer(onlyWriter{in}, onlyReader{stream}, make([]byte, hostBuffer))
		if !errors.Is(err, syscall.EPIPE) { // it was not the worker that has ended
			close(asked) // before the worker can see the end of its input
		}
		in.Close()
	}()
	said := make(chan struct{}) // closed when all that the worker said has been passed on
	go func() {
		defer close(said)
		_, _ = io.CopyBuffer(onlyWriter{stream}, onlyReader{out}, make([]byte, hostBuffer)) // likewise
		out.Close()
	}()
	h.await(w, asked)
	<-said
	h.clean(dir)
	h.look()
}

// The two keep io.Copy from the faster ways that files and streams offer: splice needs a socket or a pipe at both ends.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// await returns when the worker is dead, and complains if it did not end as it should.
func (h *host) await(w *child, asked <-chan struct{}) {
	select {
	case <-w.done:
		select {
		case <-asked:
		default:
			h.complain("a worker ended by itself: " + describeExit(w.status))
		}
		return
	case <-asked:
	}
	timer := time.NewTimer(workerGrace)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		h.nursery.kill(w)
		<-w.done
		h.complain("a worker did not end and was killed")
	}
}

func describeExit(s syscall.WaitStatus) string {
	if s.Signaled() {
		return s.Signal().String()
	}
	return "exit status " + strconv.Itoa(s.ExitStatus())
}

func (h *host) makeScratch() (string, error) {
	h.mu.Lock()
	h.number++
	n := h.number
	h.mu.Unlock()
	dir := filepath.Join(h.scratch, strconv.Itoa(n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("making a scratch directory: %w", err)
	}
	return dir, nil
}

// start starts a worker, and returns the ends of its pipes.
func (h *host) start(dir string) (w *child, in, out *os.File, err error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer childIn.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, nil, nil, err
	}
	defer childOut.Close()
	widen(in)
	widen(out)
	w, err = h.nursery.start(h.workers, dir, childIn, childOut)
	if err != nil {
		closeAll(in, out)
		return nil, nil, nil, err
	}
	return w, in, out, nil
}

func widen(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}

// clean removes what a worker has left. Its commands, which die with it, may still be dying.
func (h *host) clean(dir string) {
	var err error
	for range cleanTries {
		if err = os.RemoveAll(dir); err == nil {
			return
		}
		time.Sleep(tick)
	}
	h.complain("removing a scratch directory: " + err.Error())
}

// look finds out whether the container should go on.
func (h *host) look() {
	if n := oomKills(); n > h.kills {
		h.complain("the kernel has killed a process because the container's memory was used up")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(h.scratch, &st); err == nil && st.Bavail*uint64(st.Bsize) < scratchSpare {
		h.complain("the disk for scratch files is full")
	}
}

// complain tells the gateway, once, why this container should serve no further run.
func (h *host) complain(reason string) {
	h.mu.Lock()
	again := h.reported
	h.reported = true
	h.mu.Unlock()
	if again {
		return
	}
	stream, err := h.session.OpenStream()
	if err != nil {
		return // there is nobody to tell
	}
	_, _ = io.WriteString(stream, reason)
	_ = stream.Close()
}
