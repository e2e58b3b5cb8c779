//go:build linux

package worker

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
)

// maxSpares is how many applets wait to be hired at most. One takes a few megabytes.
const maxSpares = 4

// applets starts the processes of linked-in programs. Their start takes longer than what most of them are to do, so some
// are started before anybody knows what for: they have locked themselves in and wait for their spec.
type applets struct {
	argv []string
	own  func() (*jail.Own, error)

	mu     sync.Mutex
	come   sync.Cond // coming has changed
	spares []wired
	coming int // that are being started
	closed bool
	hired  bool        // one, by the present run
	soon   *time.Timer // starts one that nobody has asked for
}

// spareDelay is how long a worker waits before it starts an applet that nobody has asked for: where runs follow each other
// closely, that would keep the run before it from its processor.
const spareDelay = 20 * time.Millisecond

func newApplets(prefix []string, s survey) *applets {
	a := &applets{
		argv: slices.Concat([]string{processName}, prefix, []string{roleApplet, strconv.Itoa(os.Getpid())}), own: sync.OnceValues(s.own),
	}
	a.come.L = &a.mu
	a.mu.Lock()
	defer a.mu.Unlock()
	a.soon = time.AfterFunc(spareDelay, func() { a.expect(1) }) // most runs need one
	return a
}

// renew has one wait for the next run, if the last one needed any and none is kept, and no more than maxSpares with those
// that are.
func (a *applets) renew(kept int) {
	a.mu.Lock()
	hired := a.hired
	a.hired = false
	for len(a.spares) > 0 && len(a.spares)+kept > maxSpares {
		a.spares[0].discard()
		a.spares = a.spares[1:]
	}
	a.mu.Unlock()
	if hired && kept == 0 {
		a.expect(1)
	}
}

// begin starts a process that waits for its spec. files are its descriptors after standard error.
func (a *applets) begin(files ...int) (wired, error) {
	own, err := a.own()
	if err != nil {
		return wired{}, err
	}
	return connect(own.Start, jail.Command{Argv: a.argv, Env: appletEnvironment, Files: files})
}

// expect sees to it that n spares wait, in the background. Those that do not start are not missed.
func (a *applets) expect(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.soon.Stop()
	for n = min(n, maxSpares); !a.closed && len(a.spares)+a.coming < n; a.coming++ {
		go a.more()
	}
}

func (a *applets) more() {
	w, err := a.begin()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.coming--
	a.come.Broadcast()
	if err == nil {
		a.spares = append(a.spares, w)
	}
}

// spare returns one that waits, if there is any.
func (a *applets) spare() (w wired, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.spares) == 0 && a.coming > 0 {
		a.come.Wait()
	}
	for len(a.spares) > 0 {
		w, a.spares = a.spares[0], a.spares[1:]
		select {
		case <-w.done:
			w.discard() // it has died while it waited
		default:
			return w, true
		}
	}
	return w, false
}

// close ends those that wait, and those that are being started. When it returns they are gone: nobody but this process
// can wait for them.
func (a *applets) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.soon.Stop()
	for a.coming > 0 {
		a.come.Wait()
	}
	for _, w := range a.spares {
		w.discard()
	}
	for _, w := range a.spares {
		<-w.done
	}
	a.spares = nil
}

// discard ends a process that nobody needs.
func (w wired) discard() {
	w.Kill()
	closeAll(w.in, w.out)
}

// hire finds a process for a recipe, limits it and tells it what it is. One that has named inputs is new, for they come
// as descriptors.
func (a *applets) hire(r *recipe) (w wired, err error) {
	spec, err := r.spec.encode()
	if err != nil {
		return w, err
	}
	a.mu.Lock()
	a.hired = true
	a.mu.Unlock()
	if len(r.inputs) == 0 {
		if w, ok := a.spare(); ok {
			if err := w.brief(r.command.Limits, spec); err == nil {
				return w, nil
			}
		}
	}
	var files []int
	for _, f := range r.inputs {
		files = append(files, int(f.Fd()))
	}
	if w, err = a.begin(files...); err != nil {
		return w, err
	}
	return w, w.brief(r.command.Limits, spec)
}

// brief limits an applet and tells it what it is, in this order: what it is to do is not trusted. An error ends it.
func (w wired) brief(l jail.Limits, spec []byte) error {
	err := w.Limit(l)
	if err == nil {
		if _, err = w.in.Write(spec); err != nil {
			err = fmt.Errorf("telling the applet what to do: %w", err)
		}
	}
	if err != nil {
		w.discard()
	}
	return err
}
