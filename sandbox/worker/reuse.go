//go:build linux

package worker

import (
	"fmt"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// What a kept applet may have done, at most, when it gets another program. Its start takes several times what most of them
// need, and it has told by then what there is to tell of it: each command that it had ended by itself, with an exit status.
const (
	maxTurns    = 50
	reuseCPU    = time.Second
	reuseShare  = 8        // of the limit of processor time
	reuseMemory = 16 << 20 // bytes that it has; of those that count for its limit, freshData
)

// keeps reports whether a command is run by an applet that is kept: what it reads comes over its standard input, or is
// the same for many items.
func (t *tool) keeps(c wire.Command) bool {
	return t.Ready != nil && len(c.Files) == 0 && (c.Each || len(c.Inputs) == 0)
}

// limits are those of the process of a command.
func limitsOf(c wire.Command, chain wire.Chain, kept bool) jail.Limits {
	l := jail.Limits{CPU: c.Timeout + cpuGrace, Data: uint64(chain.Memory), File: uint64(chain.Disk)}
	if kept {
		l.CPU += c.Timeout // for what was before; see settle
	}
	return l
}

// old finds an applet for a command that waits: one that has its program, or that can get it. It returns nil if there is
// none.
func (w *worker) old(p *process, c wire.Command, chain wire.Chain) *kept {
	k, another := w.idle.take(p.key), !c.Each
	if k == nil {
		if k = w.idle.free(limitsOf(c, chain, true)); k == nil {
			return nil
		}
		if err := k.learn(p.key, appletSpec{Name: c.Name, Args: c.Argv[1:], Memory: uint64(chain.Memory), Keep: true}); err != nil {
			k.end()
			return nil
		}
		another = true
	}
	if another {
		k.turns++
	}
	k.items = k.items || c.Each
	return k
}

// reusable reports whether the applet, which is idle, may get another program.
func (k *kept) reusable() bool {
	return !k.bound && k.turns < maxTurns && k.used <= min(reuseCPU, k.limits.CPU/reuseShare) &&
		k.alone <= reuseMemory && k.data <= k.freshData()
}

// learn gives the applet another program. An error means that it is of no use.
func (k *kept) learn(key string, spec appletSpec) error {
	text, err := spec.encode()
	if err != nil {
		return err
	}
	if len(text) > frameMax {
		return fmt.Errorf("a spec of %d bytes is for a new process", len(text))
	}
	k.key = key
	return k.tell(text)
}

// forget takes its program from the applet, which from now on takes no item before it has another one.
func (k *kept) forget() error {
	k.key, k.items = "", false
	return k.tell(nil)
}

func (k *kept) tell(spec []byte) error {
	// It may still read, and drop, what was left of the item before.
	if err := k.in.SetWriteDeadline(time.Now().Add(settleTime)); err != nil {
		return err
	}
	_, err := k.send.write(frameSpec, spec)
	return err
}
