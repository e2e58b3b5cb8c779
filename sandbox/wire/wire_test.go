package wire_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsh-dev/mcsh/sandbox/wire"
)

// duplex is one end of two pipes.
type duplex struct {
	io.Reader
	io.Writer
	close func()
}

func (d duplex) Close() error { d.close(); return nil }

func pair() (gateway, worker duplex) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	end := func() { r1.Close(); w1.Close(); r2.Close(); w2.Close() }
	return duplex{r1, w2, end}, duplex{r2, w1, end}
}

// runners are the programs of the worker in these tests, by the name of the chain's first command.
var runners = map[string]wire.Runner{
	"echo": func(_ context.Context, s *wire.Stream, _ wire.Chain) wire.Outcome {
		n, err := io.Copy(onlyWriter{s}, onlyReader{s})
		if err != nil {
			return wire.Outcome{Failure: &wire.Failure{Reason: wire.Refused, Detail: err.Error()}}
		}
		return wire.Outcome{Usage: []wire.Usage{{In: n, Out: n}}}
	},
	"deaf": func(_ context.Context, s *wire.Stream, _ wire.Chain) wire.Outcome {
		_ = s.StopReading()
		_, _ = s.Write([]byte("enough\n"))
		return wire.Outcome{}
	},
	"wait": func(ctx context.Context, _ *wire.Stream, _ wire.Chain) wire.Outcome {
		<-ctx.Done()
		return wire.Outcome{Failure: &wire.Failure{Reason: wire.Cancelled}}
	},
}

type onlyWriter struct{ io.Writer }

type onlyReader struct{ io.Reader }

func runner(ctx context.Context, s *wire.Stream, c wire.Chain) wire.Outcome {
	if c.Keep != nil {
		return kept(ctx, s, *c.Keep)
	}
	if len(c.Commands) > 0 {
		if r, ok := runners[c.Commands[0].Name]; ok {
			return r(ctx, s, c)
		}
	}
	return wire.Outcome{Failure: &wire.Failure{Reason: wire.Refused}}
}

// kept is what a worker in these tests does with inputs: it says how long they are.
func kept(ctx context.Context, s *wire.Stream, in wire.Input) wire.Outcome {
	if in.Name == "stuck" {
		<-ctx.Done()
		return wire.Outcome{Failure: &wire.Failure{Reason: wire.Cancelled}}
	}
	n, err := io.Copy(io.Discard, onlyReader{s})
	if err != nil || n > in.Disk {
		_ = s.StopReading()
		return wire.Outcome{Failure: &wire.Failure{Reason: wire.DiskLimit}}
	}
	return wire.Outcome{Usage: []wire.Usage{{In: n}}}
}

var host = wire.Host{Run: runner, Renew: func() error { return nil }}

// connect returns a client of a worker that ends with the test.
func connect(t *testing.T) *wire.Client {
	t.Helper()
	g, w := pair()
	served := make(chan error, 1)
	go func() { served <- wire.Serve(context.Background(), w, wire.Hello{Profile: wire.Pure}, host) }()
	c, err := wire.Dial(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		<-served
	})
	return c
}

func start(t *testing.T, c *wire.Client, name string) *wire.Stream {
	t.Helper()
	return startChain(t, c, wire.Chain{Commands: []wire.Command{{Name: name}}})
}

func startChain(t *testing.T, c *wire.Client, chain wire.Chain) *wire.Stream {
	t.Helper()
	prepared, err := wire.Prepare(chain)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Run(prepared)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEcho(t *testing.T) {
	c := connect(t)
	data := bytes.Repeat([]byte("0123456789abcdef\n"), 1<<18) // more than four windows
	for range 3 {
		s := start(t, c, "echo")
		go func() {
			_, _ = s.Write(data)
			_ = s.End()
		}()
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("got %d bytes, %v, want %d", len(got), err, len(data))
		}
		if o, err := s.Outcome(); err != nil || o.Failure != nil || o.Usage[0].In != int64(len(data)) {
			t.Errorf("got outcome %+v, %v", o, err)
		}
	}
}

// TestWindow writes to a run that nobody reads: the writer must be stopped by the two windows.
func TestWindow(t *testing.T) {
	c := connect(t)
	s := start(t, c, "echo")
	wrote := make(chan int, 1)
	go func() {
		n, _ := s.Write(make([]byte, 8*wire.Window))
		wrote <- n
	}()
	// Other runs go on meanwhile.
	other := start(t, c, "deaf")
	if got, err := io.ReadAll(other); err != nil || string(got) != "enough\n" {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := s.Cancel(); err != nil {
		t.Fatal(err)
	}
	if n := <-wrote; n > 3*wire.Window {
		t.Errorf("%d bytes went to a run that nobody reads, want at most two windows and what is under way", n)
	}
	if o, err := s.Outcome(); err != nil || o.Failure == nil {
		t.Errorf("got outcome %+v, %v, want a failure", o, err)
	}
}

func TestDeaf(t *testing.T) {
	s := start(t, connect(t), "deaf")
	var err error
	for err == nil {
		_, err = s.Write(make([]byte, wire.MaxData))
	}
	if !errors.Is(err, wire.ErrDeaf) {
		t.Errorf("got %v, want %v", err, wire.ErrDeaf)
	}
}

func TestCancel(t *testing.T) {
	c := connect(t)
	s := start(t, c, "wait")
	if err := s.Cancel(); err != nil {
		t.Fatal(err)
	}
	if o, err := s.Outcome(); err != nil || o.Failure == nil || o.Failure.Reason != wire.Cancelled {
		t.Errorf("got %+v, %v", o, err)
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("after a cancel: %v", err)
	}
}

func TestSlots(t *testing.T) {
	c := connect(t)
	var streams []*wire.Stream
	for range wire.MaxStreams {
		streams = append(streams, start(t, c, "wait"))
	}
	if err := c.Ping(t.Context()); err == nil {
		t.Error("more runs than there may be")
	}
	for _, s := range streams {
		_ = s.Cancel()
		if _, err := s.Outcome(); err != nil {
			t.Error(err)
		}
	}
	if s := start(t, c, "deaf"); s == nil {
		t.Error("no run after the others have ended")
	}
}

func TestLost(t *testing.T) {
	c := connect(t)
	s := start(t, c, "wait")
	c.Fail(errors.New("gone"))
	if _, err := s.Outcome(); !errors.Is(err, wire.ErrLost) {
		t.Errorf("Outcome: got %v, want %v", err, wire.ErrLost)
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, wire.ErrLost) {
		t.Errorf("Read: got %v, want %v", err, wire.ErrLost)
	}
	if err := c.Ping(t.Context()); !errors.Is(err, wire.ErrLost) {
		t.Errorf("Ping: got %v, want %v", err, wire.ErrLost)
	}
}

// TestKeep sends inputs while all slots for runs are taken: one must never wait for the other.
func TestKeep(t *testing.T) {
	c := connect(t)
	for range wire.Slots {
		start(t, c, "wait")
	}
	var streams []*wire.Stream
	for range wire.MaxInputs {
		streams = append(streams, startChain(t, c, wire.Chain{Keep: &wire.Input{Set: 1, Name: "b", Disk: 3 * wire.Window}}))
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	for i, s := range streams {
		n := (i%2 + 2) * wire.Window // data beyond the limit is an error, not cut
		if _, err := s.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
		if o, err := s.Outcome(); err != nil || o.Failure != nil || o.Usage[0].In != int64(n) {
			t.Errorf("got %+v, %v, want %d bytes kept", o, err, n)
		}
	}
	s := startChain(t, c, wire.Chain{Keep: &wire.Input{Disk: 1}})
	_, _ = s.Write([]byte("ab"))
	_ = s.End()
	if o, err := s.Outcome(); err != nil || o.Failure == nil || o.Failure.Reason != wire.DiskLimit {
		t.Errorf("got %+v, %v, want %s", o, err, wire.DiskLimit)
	}
}

// TestKeepSlowly has a worker that takes nothing of an input: no more than the window leaves, and a cancel ends it.
func TestKeepSlowly(t *testing.T) {
	c := connect(t)
	s := startChain(t, c, wire.Chain{Keep: &wire.Input{Name: "stuck"}})
	if n, err := s.Write(make([]byte, wire.Window)); n != wire.Window || err != nil {
		t.Fatalf("got %d, %v, want the whole window taken", n, err)
	}
	more := make(chan int, 1)
	go func() {
		n, _ := s.Write([]byte("more"))
		more <- n
	}()
	if err := c.Ping(t.Context()); err != nil { // the connection is not held up by it
		t.Error(err)
	}
	select {
	case n := <-more:
		t.Errorf("%d bytes beyond the window left", n)
	default:
	}
	if err := s.Cancel(); err != nil {
		t.Fatal(err)
	}
	if n := <-more; n != 0 {
		t.Errorf("%d bytes beyond the window left", n)
	}
	if o, err := s.Outcome(); err != nil || o.Failure == nil || o.Failure.Reason != wire.Cancelled {
		t.Errorf("got %+v, %v, want %s", o, err, wire.Cancelled)
	}
}

func TestPrepare(t *testing.T) {
	large := []wire.Command{{Name: strings.Repeat("x", wire.MaxChain)}}
	for _, commands := range [][]wire.Command{large, make([]wire.Command, wire.MaxCommands+1)} {
		if _, err := wire.Prepare(wire.Chain{Commands: commands}); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("got %v, want %v", err, wire.ErrTooLarge)
		}
	}
}

// TestPingEnds: a ping that is not answered ends with its context.
func TestPingEnds(t *testing.T) {
	script, worker := io.Pipe()
	go func() { _, _ = worker.Write(greeting) }()
	c, err := wire.Dial(t.Context(), duplex{script, io.Discard, func() { script.Close() }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestRenew: a worker that was renewed goes on, and one that cannot clear itself is lost.
func TestRenew(t *testing.T) {
	dirty := errors.New("something is left")
	for _, left := range []error{nil, dirty} {
		g, w := pair()
		served := make(chan error, 1)
		one := wire.Host{Run: runner, Renew: func() error { return left }}
		go func() { served <- wire.Serve(context.Background(), w, wire.Hello{}, one) }()
		c, err := wire.Dial(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			s := start(t, c, "deaf")
			if _, err := s.Outcome(); err != nil {
				t.Fatal(err)
			}
			err = c.Renew()
			if err = errors.Join(err, c.Ping(t.Context())); err != nil {
				break
			}
		}
		c.Close()
		if got := <-served; (err == nil) != (left == nil) || left != nil && !errors.Is(got, left) {
			t.Errorf("left %v: the gateway got %v, the worker ended with %v", left, err, got)
		}
	}
}

func frame(kind byte, id uint32, payload []byte) []byte {
	b := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, id)...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(payload))), payload...)
}

// Numbers of the kinds, as they are on the wire.
const (
	hello = iota + 1
	run
	data
	end
	credit
	deaf
	cancel
	outcome
	renew
)

func message(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// peer is a fixed stream of bytes; what is written to it is dropped.
func peer(script []byte) duplex {
	return duplex{bytes.NewReader(script), io.Discard, func() {}}
}

// scripts are what a broken or hostile end might send, and a word of the error that it must cause.
var fromWorker = map[string]struct {
	script [][]byte
	want   string
}{
	"no hello":       {[][]byte{frame(outcome, 1, []byte("{}"))}, "before hello"},
	"old version":    {[][]byte{frame(hello, 0, []byte(`{"Version":99}`))}, "version 99"},
	"bad json":       {[][]byte{frame(hello, 0, []byte(`{"Version"`))}, "hello frame"},
	"unknown field":  {[][]byte{frame(hello, 0, []byte(`{"Nonsense":1}`))}, "unknown field"},
	"second hello":   {[][]byte{greeting, greeting}, "second hello"},
	"unknown kind":   {[][]byte{greeting, frame(77, 1, nil)}, "unknown frame kind"},
	"wrong way":      {[][]byte{greeting, frame(run, 1, []byte("{}"))}, "wrong end"},
	"huge":           {[][]byte{greeting, {data, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}}, "4294967295 bytes"},
	"no such run":    {[][]byte{greeting, frame(data, 9, []byte("x"))}, "not under way"},
	"beyond credit":  {append([][]byte{greeting}, flood()...), "beyond the credit"},
	"endless credit": {[][]byte{greeting, frame(credit, 1, []byte{0xff, 0xff, 0xff, 0xff})}, "credit of"},
	"cut short":      {[][]byte{greeting, frame(data, 1, []byte("abc"))[:10]}, "unexpected EOF"},
	"silence":        {[][]byte{greeting}, "exited"},
	"large hello":    {[][]byte{frame(hello, 0, []byte(`{"Programs":[`+strings.Repeat("{},", 22_000)+`{}]}`))}, "hello frame of 66017 bytes"},
	"many used":      {[][]byte{greeting, frame(outcome, 1, []byte(`{"Usage":[`+strings.Repeat("{},", 40_000)+`{}]}`))}, "what commands have used takes 120004 bytes"},
	"some more used": {[][]byte{greeting, frame(outcome, 1, []byte(`{"Usage":[`+strings.Repeat("{},", 64)+`{}]}`))}, "what 65 commands have used"},
	"used below 0":   {[][]byte{greeting, frame(outcome, 1, []byte(`{"Usage":[{"In":1,"Out":-1}]}`))}, "used -1"},
	"after outcome":  {[][]byte{greeting, frame(outcome, 1, []byte(`{}`)), frame(data, 1, []byte("x"))}, "not under way"},
}

var greeting = frame(hello, 0, message(wire.Hello{Version: 11}))

func flood() [][]byte {
	var all [][]byte
	for range wire.Window/wire.MaxData + 1 {
		all = append(all, frame(data, 1, make([]byte, wire.MaxData)))
	}
	return all
}

func TestHostileWorker(t *testing.T) {
	for name, test := range fromWorker {
		t.Run(name, func(t *testing.T) {
			if err := talkToWorker(t, bytes.Join(test.script, nil)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

// talkToWorker is a gateway that runs a chain on a worker who follows a script. It returns why the connection ended.
func talkToWorker(t *testing.T, script []byte) error {
	t.Helper()
	hold := make(chan struct{}) // the worker goes on when the run is under way
	n := len(greeting)
	if !bytes.HasPrefix(script, greeting) {
		n = 0
		close(hold)
	}
	r := io.MultiReader(bytes.NewReader(script[:n]), &held{hold, bytes.NewReader(script[n:])})
	c, err := wire.Dial(t.Context(), duplex{r, io.Discard, func() {}})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Run(wire.Prepared("{}"))
	if n > 0 {
		close(hold)
	}
	if err != nil {
		return err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = s.Write(make([]byte, 3*wire.Window))
	}()
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Error("the connection hangs")
	}
	<-written
	_, _ = s.Outcome()
	return c.Err()
}

type held struct {
	hold chan struct{}
	r    io.Reader
}

func (h *held) Read(p []byte) (int, error) {
	<-h.hold
	return h.r.Read(p)
}

var fromGateway = map[string]struct {
	script [][]byte
	want   string // empty: a clean end
}{
	"nothing":         {nil, ""},
	"no chain":        {[][]byte{frame(run, 1, []byte("[]"))}, "run frame"},
	"same id":         {[][]byte{runOf(2, "wait"), runOf(2, "wait")}, "a second run 2"},
	"too many":        {runs(wire.MaxStreams + 1), "at a time"},
	"long chain":      {[][]byte{frame(run, 1, message(wire.Chain{Commands: make([]wire.Command, wire.MaxCommands+1)}))}, "a chain of 65 commands"},
	"never started":   {[][]byte{frame(data, 5, []byte("x"))}, ""},
	"two ends":        {[][]byte{runOf(1, "wait"), frame(end, 1, nil), frame(end, 1, nil)}, "second end"},
	"data after end":  {[][]byte{runOf(1, "wait"), frame(end, 1, nil), frame(data, 1, []byte("x"))}, "after the end"},
	"beyond credit":   {append([][]byte{runOf(1, "wait")}, flood()...), "beyond the credit"},
	"wrong way":       {[][]byte{frame(outcome, 1, []byte("{}"))}, "wrong end"},
	"cancel":          {[][]byte{runOf(1, "wait"), frame(cancel, 1, nil), frame(cancel, 1, nil)}, ""},
	"keep and cancel": {[][]byte{keepOf(1, "b"), frame(data, 1, []byte("x")), frame(cancel, 1, nil)}, ""},
	"keep, same id":   {[][]byte{runOf(1, "wait"), keepOf(1, "b")}, "a second run 1"},
	"renewed":         {[][]byte{frame(renew, 0, nil), runOf(1, "wait"), frame(cancel, 1, nil)}, ""},
	"renew in a run":  {[][]byte{runOf(1, "wait"), frame(renew, 0, nil)}, "1 runs are under way"},
	"renew in a keep": {[][]byte{keepOf(1, "stuck"), frame(renew, 0, nil)}, "1 runs are under way"},
	"renew, loudly":   {[][]byte{frame(renew, 0, []byte("x"))}, "renew frame of 1 bytes"},
	"pings":           {[][]byte{ping, ping}, ""},
}

var ping = frame(run, 1, []byte("{}"))

// runs starts n runs.
func runs(n int) (frames [][]byte) {
	for i := range n {
		frames = append(frames, runOf(uint32(i+1), "wait"))
	}
	return frames
}

func runOf(id uint32, name string) []byte {
	return frame(run, id, message(wire.Chain{Commands: []wire.Command{{Name: name}}}))
}

func keepOf(id uint32, name string) []byte {
	return frame(run, id, message(wire.Chain{Keep: &wire.Input{Name: name}}))
}

func TestHostileGateway(t *testing.T) {
	for name, test := range fromGateway {
		t.Run(name, func(t *testing.T) {
			err := wire.Serve(t.Context(), peer(bytes.Join(test.script, nil)), wire.Hello{}, host)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestStalledGateway has a peer that asks and never reads.
func TestStalledGateway(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	asking := duplex{&endlessPings{}, w, func() { r.Close() }}
	err := wire.Serve(t.Context(), asking, wire.Hello{}, host)
	if err == nil || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("got %v, want an error about a peer that does not read", err)
	}
}

// TestStalledWorker: where the worker does not read and takes long to end, a caller of it gets an error at once.
func TestStalledWorker(t *testing.T) {
	r, w := io.Pipe()
	stalled, _ := io.Pipe()
	dying := make(chan struct{})
	go func() { _, _ = w.Write(greeting) }()
	c, err := wire.Dial(t.Context(), duplex{r, blocked{stalled}, func() { <-dying; w.Close(); stalled.Close() }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer close(dying)
	large, err := wire.Prepare(wire.Chain{Commands: slices.Repeat([]wire.Command{{Argv: []string{strings.Repeat("x", 79<<10)}}}, wire.MaxCommands)})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 1)
	go func() {
		for {
			if _, err := c.Run(large); err != nil {
				errs <- err
				return
			}
		}
	}()
	select {
	case err := <-errs:
		if !strings.Contains(err.Error(), "does not read") {
			t.Errorf("got %v, want that it does not read", err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for the worker's end")
	}
}

// blocked is where nothing can be written before it is closed.
type blocked struct{ r *io.PipeReader }

func (b blocked) Write([]byte) (int, error) { return b.r.Read(make([]byte, 1)) }

type endlessPings struct{ buf []byte }

func (e *endlessPings) Read(p []byte) (int, error) {
	if len(e.buf) == 0 {
		e.buf = bytes.Repeat(ping, 100)
	}
	n := copy(p, e.buf)
	e.buf = e.buf[n:]
	return n, nil
}

func FuzzWorkerFrames(f *testing.F) {
	for _, test := range fromWorker {
		f.Add(bytes.Join(test.script, nil))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if err := talkToWorker(t, script); err == nil {
			t.Error("the connection ended without an error")
		}
	})
}

func FuzzGatewayFrames(f *testing.F) {
	for _, test := range fromGateway {
		f.Add(bytes.Join(test.script, nil))
	}
	f.Add(bytes.Join([][]byte{runOf(1, "echo"), frame(data, 1, []byte("abc")), frame(end, 1, nil)}, nil))
	f.Fuzz(func(t *testing.T, script []byte) {
		done := make(chan error, 1)
		go func() { done <- wire.Serve(context.Background(), peer(script), wire.Hello{}, host) }()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the connection hangs")
		}
	})
}
