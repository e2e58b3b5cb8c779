package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/mcsh-dev/mcsh/store"
)

// checkStore writes, lists, reads and deletes an object of the store that gateways share.
func checkStore(ctx context.Context, d *diagnosis) {
	f := &d.settings.store
	var shared store.Store
	err := f.resolve(d.program)
	if err == nil {
		shared, err = f.open(ctx, d.program)
	}
	switch {
	case err != nil:
		d.failed(err, "")
		return
	case shared == nil:
		return
	}
	begun := time.Now()
	if err := tryStore(ctx, shared); err != nil {
		d.failed(err, "allow its user to write, list, read and delete objects there")
		return
	}
	d.add(statusOK, "", "%s: objects are written, listed, read and deleted; %d ms", f.at, time.Since(begun).Milliseconds())
}

const tryPrefix = "doctor/"

func tryStore(ctx context.Context, shared store.Store) (err error) {
	name, text := tryPrefix+rand.Text(), rand.Text()
	if err := shared.Put(ctx, name, []byte(text)); err != nil {
		return fmt.Errorf("writing an object: %w", err)
	}
	defer func() {
		if derr := shared.Delete(context.WithoutCancel(ctx), name); derr != nil {
			err = cmp.Or(err, fmt.Errorf("deleting an object: %w", derr))
		}
	}()
	listed := false
	for o, err := range shared.List(ctx, tryPrefix) {
		if err != nil {
			return fmt.Errorf("listing objects: %w", err)
		}
		listed = listed || o.Name == name
	}
	data, err := shared.Get(ctx, name)
	switch {
	case err != nil:
		return fmt.Errorf("reading an object: %w", err)
	case string(data) != text:
		return errors.New("an object is another one than was written")
	case !listed:
		return errors.New("the list has no object that was just written")
	}
	return nil
}

// checkTemporal connects to the engine of durable runs.
func checkTemporal(ctx context.Context, d *diagnosis) {
	f := &d.settings.durable
	wanted, err := f.resolve(d.program)
	if err == nil && !wanted {
		return
	}
	var engines Engines
	if err == nil {
		engines, err = f.open(ctx, d.program, zap.NewNop())
	}
	if err != nil {
		d.failed(err, "")
		return
	}
	engines.Close()
	d.add(statusOK, "", "Temporal at %s answers, and has the namespace %s", f.address, f.namespace)
}

// failed adds an error, whose hint is its own or else the given one.
func (d *diagnosis) failed(err error, hint string) {
	if f, ok := errors.AsType[*failure](err); ok {
		hint = cmp.Or(f.hint, hint)
	}
	d.add(statusFailed, hint, "%v", err)
}
