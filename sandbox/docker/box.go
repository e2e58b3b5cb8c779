package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/hashicorp/yamux"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/mux"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// Times of a container's life.
const (
	startTimeout  = 60 * time.Second // from creation to the first word of a worker, on an engine that has much to do
	createGrace   = 10 * time.Second // to create it still, when nobody wants it any more
	removeTimeout = 30 * time.Second
	closeGrace    = 5 * time.Second // for a worker to end; more than its host gives it
)

// A box is a running container and the connection to its host. Its fields below mu belong to the fleet.
type box struct {
	id      string
	engine  *Engine
	session *yamux.Session
	said    *sandbox.Said
	frames  *frames

	complaint chan string // why it should serve no more, for the fleet: the first counts
	ended     chan struct{}
	end       sync.Once

	// Guarded by the fleet's lock.
	caller  string
	bound   bool
	retired bool
	active  int       // runs in it
	resting []*worker // that wait for runs of its caller, the one that has waited longest first
	runs    int       // so far
	left    time.Time // when the last run to end has left it
	spare   *yamux.Stream
	expiry  *time.Timer
}

// launch starts a container, and returns it once a worker in it has shown what holds it.
func (d *Driver) launch(ctx context.Context) (*box, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	engine, err := d.ready(ctx)
	if err != nil {
		return nil, err
	}
	config, host := d.options.spec(d.instance, d.profile, d.cpus)
	made, err := engine.create(ctx, config, host)
	if err != nil {
		return nil, d.startFault("creating a container", err)
	}
	b := &box{id: made.ID, engine: engine, said: &sandbox.Said{}, complaint: make(chan string, 1), ended: make(chan struct{})}
	if err = b.connect(ctx, d.options.makeHint()); err == nil {
		err = d.inspect(ctx, b)
	}
	if err != nil {
		b.destroy()
		return nil, err
	}
	return b, nil
}

// create creates a container. An engine goes on to make it when its client has left, and only a client that stays
// learns what is to be removed: so a context that ends ends it a while later.
func (e *Engine) create(ctx context.Context, config *container.Config, host *container.HostConfig) (container.CreateResponse, error) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(createGrace, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})
	defer stop()
	return e.api.ContainerCreate(late, config, host, nil, nil, "")
}

// attach connects to the standard streams of a container. The client heeds a context only until it is connected, so a
// connection that an engine makes too late is closed when it comes.
func (e *Engine) attach(ctx context.Context, id string) (types.HijackedResponse, error) {
	type answer struct {
		conn types.HijackedResponse
		err  error
	}
	came := make(chan answer, 1)
	go func() {
		conn, err := e.api.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
		came <- answer{conn, err}
	}()
	select {
	case a := <-came:
		return a.conn, a.err
	case <-ctx.Done():
		go func() {
			if a := <-came; a.err == nil {
				a.conn.Close()
			}
		}()
		return types.HijackedResponse{}, context.Cause(ctx)
	}
}

// startFault explains why a container could not be made or started.
func (d *Driver) startFault(doing string, err error) error {
	if cerrdefs.IsNotFound(err) {
		return &Fault{Kind: ErrNoImage, Doing: doing + " of the image " + d.options.Image, Hint: d.options.makeHint()}
	}
	return fault(doing+" of the image "+d.options.Image, err)
}

// connect attaches to the container before it starts, so that nothing of what it says is lost. makeHint says how an image
// is made that holds a worker.
func (b *box) connect(ctx context.Context, makeHint string) error {
	conn, err := b.engine.attach(ctx, b.id)
	if err != nil {
		return fault("attaching to a container", err)
	}
	b.frames = newFrames(conn.Reader, b.said)
	if b.session, err = mux.Gateway(&attached{b.frames, conn.Conn}); err != nil {
		conn.Close()
		return err
	}
	go b.listen()
	if err := b.engine.api.ContainerStart(ctx, b.id, container.StartOptions{}); err != nil {
		f := &Fault{Doing: "starting a container", Detail: err}
		if cerrdefs.IsNotFound(err) || cerrdefs.IsInvalidArgument(err) {
			f.Hint = "the image may hold no worker: " + makeHint
		}
		return f
	}
	return nil
}

// attached is the connection to a container's standard streams.
type attached struct {
	*frames
	conn net.Conn
}

func (a *attached) Write(p []byte) (int, error) { return a.conn.Write(p) }
func (a *attached) Close() error                { return a.conn.Close() }

// listen waits for the one thing that a host says: why its container should serve no more.
func (b *box) listen() {
	stream, err := b.session.AcceptStream()
	if err != nil {
		return // the connection has ended, which lost tells
	}
	text, _ := io.ReadAll(io.LimitReader(stream, sandbox.SaidMax)) // what there is of it
	b.complain(string(text))
	_ = stream.Close()
}

// inspect has a worker show what holds it, and refuses a container that is not what it was told to be.
func (d *Driver) inspect(ctx context.Context, b *box) error {
	stream, err := b.session.OpenStream()
	if err != nil {
		return b.lost()
	}
	client, err := wire.Dial(ctx, &worker{Stream: stream, box: b})
	if err != nil {
		return &Fault{Doing: "starting a worker in a container of the image " + d.options.Image, Detail: err, Hint: "the image may be of another release: " + d.options.makeHint()}
	}
	defer client.Close()
	report, err := sandbox.Claims(backendName, client.Hello())
	if err != nil {
		return err
	}
	return d.options.refuse(report)
}

// lost says that the container is gone, and what it said last.
func (b *box) lost() error {
	if text := b.said.String(); text != "" {
		return fmt.Errorf("the container has ended and said: %s", text)
	}
	if err := b.frames.failure(); err != nil {
		return fmt.Errorf("the connection to the container has ended: %w", err)
	}
	return errors.New("the container has ended")
}

// destroy ends the container with all that runs in it, and returns when it is gone. The engine removes a container of
// ours by itself when its first process has ended, and may be faster.
func (b *box) destroy() {
	b.end.Do(func() {
		defer close(b.ended)
		if b.session != nil {
			_ = b.session.Close() // it may have ended
		}
		ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
		defer cancel()
		b.engine.remove(ctx, b.id)
	})
	<-b.ended
}

// remove removes a container and its volumes, and waits until it is gone. What fails is left to the next sweep.
func (e *Engine) remove(ctx context.Context, id string) {
	err := e.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err == nil || cerrdefs.IsNotFound(err) || !cerrdefs.IsConflict(err) {
		return
	}
	gone, failed := e.api.ContainerWait(ctx, id, container.WaitConditionRemoved) // its removal is under way
	select {
	case <-gone:
	case <-failed: // it is not there any more
	}
}

// complain spoils the container.
func (b *box) complain(text string) {
	select {
	case b.complaint <- text:
	default: // it is spoiled
	}
}
