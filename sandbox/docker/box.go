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

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// Times of a container's life.
const (
	startTimeout  = 60 * time.Second // from creation to the first word of a worker, on an engine that has much to do
	createGrace   = 10 * time.Second // to create it still, when nobody wants it any more
	removeTimeout = 30 * time.Second
	endTimeout    = 5 * time.Second // to tell it that a worker is to end
)

// A box is a running container and the connection to its host.
type box struct {
	id     string
	driver *Driver
	engine *Engine
	conn   net.Conn
	frames *frames
	said   *sandbox.StderrHead
	in     *wire.ChunkReader

	writing sync.Mutex
	out     *wire.ChunkWriter // guarded by writing

	once  sync.Once
	ended chan struct{} // closed when the connection was
}

// launch starts a container, and returns a worker in it once another one there has shown what holds both.
func (d *Driver) launch(ctx context.Context) (*worker, error) {
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
	b := &box{id: made.ID, driver: d, engine: engine, said: &sandbox.StderrHead{}, ended: make(chan struct{})}
	if err := b.connect(ctx, d.options.makeHint()); err != nil {
		b.end()
		return nil, err
	}
	begun := make(chan struct{})
	close(begun)
	first := &worker{box: b, before: begun, read: make(chan struct{})}
	return first.examine(ctx, func(rwc io.ReadWriteCloser) error { return d.inspect(ctx, rwc) })
}

// create creates a container. An engine goes on to make it when its client has left, and only a client that stays
// learns what is to be removed: so a context that ends ends it a while later.
func (e *Engine) create(ctx context.Context, config *container.Config, host *container.HostConfig) (container.CreateResponse, error) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(createGrace, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})()
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
	b.conn, b.frames = conn.Conn, newFrames(conn.Reader, b.said)
	b.in, b.out = wire.NewChunkReader(b.frames), wire.NewChunkWriter(b.conn)
	if err := b.engine.api.ContainerStart(ctx, b.id, container.StartOptions{}); err != nil {
		f := &Fault{Doing: "starting a container", Detail: err}
		if cerrdefs.IsNotFound(err) || cerrdefs.IsInvalidArgument(err) {
			f.Hint = "the image may hold no worker: " + makeHint
		}
		return f
	}
	return nil
}

// inspect has a worker show what holds it, and refuses a container that is not as its spec says.
func (d *Driver) inspect(ctx context.Context, rwc io.ReadWriteCloser) error {
	client, err := wire.Dial(ctx, rwc)
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

// end ends the container with all that runs in it, and has it removed. The engine removes a container of ours by itself when
// its first process has ended, and may be faster.
func (b *box) end() {
	b.once.Do(func() {
		close(b.ended)
		if b.conn != nil {
			_ = b.conn.Close() // it may have ended
		}
		b.driver.background(func() {
			ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
			defer cancel()
			b.engine.remove(ctx, b.id)
		})
	})
}

// remove removes a container and its volumes, and waits until it is gone. The next sweep tries again what fails.
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
