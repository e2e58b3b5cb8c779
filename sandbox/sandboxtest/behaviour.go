package sandboxtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/internal/parttest"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/stages"
)

func testReport(t *testing.T, open func() sandbox.Driver) {
	r := newPool(t, open, sandbox.Options{Warm: -1}).Report()
	if r.Backend == "" || r.Profile == "" || !r.Seccomp || !r.NoNewPrivs {
		t.Errorf("got report %+v, want a backend, a profile, seccomp and no_new_privs", r)
	}
	for _, a := range r.Programs {
		if a.Refusal != "" {
			t.Logf("%s cannot be used: %s", a.Name, a.Refusal)
		} else if a.Package != "" && a.Version == "" {
			t.Errorf("%s has no version", a.Name)
		}
	}
}

func testChains(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	for _, test := range []struct {
		name    string
		chain   []stages.Command
		in, out string
		code    stages.Code // of the error, if one is wanted
		place   stages.Place
		msg     string // part of the error's message
	}{
		{name: "one", chain: []stages.Command{command("tr", "a-z", "A-Z")}, in: "abc\n", out: "ABC\n"},
		{
			name:  "four",
			chain: []stages.Command{command("grep", "a"), command("sort"), command("uniq", "-c"), command("awk", "{print $2, $1}")},
			in:    "ab\nxx\naa\nab\n", out: "aa 1\nab 2\n",
		},
		{name: "jq", chain: []stages.Command{command("jq", "-c", ".a")}, in: `{"a":{"b":12345678901234567890}}`, out: "{\"b\":12345678901234567890}\n"},
		{name: "empty input", chain: []stages.Command{command("wc", "-c")}, out: "0\n"},
		{
			name: "an error with status 0", chain: []stages.Command{command("bc"), command("head", "-n", "9")}, in: "1+1\n1/0\n", out: "2\n",
			code: stages.CommandFailed, place: "1", msg: "bc reported an error: Runtime error (func=(main), adr=3): Divide by zero",
		},
		{
			name: "another error with status 0", chain: []stages.Command{command("bc")}, in: "2 apples",
			code: stages.CommandFailed, place: "1", msg: "bc reported an error: (standard_in) 1: syntax error",
		},
		{name: "no match is success", chain: []stages.Command{command("grep", "zzz")}, in: "a\n"},
		{name: "no match in the middle", chain: []stages.Command{command("grep", "zzz"), command("wc", "-l")}, in: "a\n", out: "0\n"},
		{name: "sort on disk", chain: []stages.Command{command("sort", "-rn"), command("head", "-n", "2")}, in: "1\n3\n2\n", out: "3\n2\n"},
		{name: "tac", chain: []stages.Command{command("tac")}, in: "1\n2\n3\n", out: "3\n2\n1\n"},
		{name: "the last line counts", chain: []stages.Command{command("wc", "-l")}, in: "a\nb", out: "2\n"},
		{name: "nothing is no line", chain: []stages.Command{command("wc", "-l")}, out: "0\n"},
		{name: "the last line of a chain counts", chain: []stages.Command{command("tr", "a", "b"), command("wc", "-l")}, in: "a", out: "1\n"},
		{name: "bytes are counted as they are", chain: []stages.Command{command("wc", "-c")}, in: "abc", out: "3\n"},
		{name: "other counts are as they are", chain: []stages.Command{command("wc", "-l", "-c"), command("tr", "-s", " ")}, in: "abc", out: " 0 3\n"},
		{name: "tac without a last newline", chain: []stages.Command{command("tac")}, in: "a\nb", out: "b\na\n"},
		{name: "bc without a last newline", chain: []stages.Command{command("bc")}, in: "6*7", out: "42\n"},
		{
			name: "a checksum of three bytes", chain: []stages.Command{command("sha256sum")}, in: "abc",
			out: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  -\n",
		},
		{name: "head adds no newline", chain: []stages.Command{command("head", "-n", "1")}, in: "abc", out: "abc"},
		{name: "braces in a pattern", chain: []stages.Command{command("grep", "-c", "use {scratch} dir")}, in: "use {scratch} dir\nuse {scratch} dir\nuse  dir\n", out: "2\n"},
		{name: "braces in a separator", chain: []stages.Command{command("tac", "-s", "{scratch}")}, in: "a{scratch}b{scratch}", out: "b{scratch}a{scratch}"},
		{name: "braces in a script", chain: []stages.Command{command("awk", `{print "{scratch}"}`)}, in: "a\n", out: "{scratch}\n"},
		{name: "locale", chain: []stages.Command{command("wc", "-m")}, in: "é\n", out: "2\n"},
		{name: "time zone", chain: []stages.Command{command("date", "-d", `TZ="Europe/Berlin" 2024-07-01 12:00`, "+%H")}, out: "10\n"},
		{name: "sleep says nothing", chain: []stages.Command{command("sleep", "0.01"), command("wc", "-c")}, in: "abc", out: "0\n"},
		{
			name: "status", chain: []stages.Command{command("awk", "{print 1 / ($1 - $1)}")}, in: "a\n",
			code: stages.CommandFailed, place: "1", msg: "awk",
		},
		{
			name: "exit status counts after output", chain: []stages.Command{command("awk", "{print} END {exit 3}")}, in: "a\n",
			out: "a\n", code: stages.CommandFailed, place: "1", msg: "status 3",
		},
		{
			name: "the cause in the middle", chain: []stages.Command{command("tr", "a", "b"), command("awk", "{exit 7}"), command("jq", ".")},
			in: "a\n", code: stages.CommandFailed, place: "2", msg: "status 7",
		},
		{
			name: "the cause first", chain: []stages.Command{command("jq", "-c", `.,error("bad thing")`), command("jq", "-c", ".")},
			in: "{}", code: stages.CommandFailed, place: "1", msg: "bad thing",
		},
		{
			name: "repeated message", chain: []stages.Command{command("jq", `.a.b`)},
			in: strings.Repeat("{\"a\":3}\n", 50), code: stages.CommandFailed, place: "1", msg: "jq",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := run(t.Context(), prepare(t, s, nil, test.chain...), test.in)
			if test.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.out, out); diff != "" {
					t.Errorf("output (-want +got):\n%s", diff)
				}
				return
			}
			e := asError(t, err)
			if e.Code != test.code || e.Place != test.place || !strings.Contains(e.Msg, test.msg) {
				t.Errorf("got %s at %s: %q, want %s at %s with %q", e.Code, e.Place, e.Msg, test.code, test.place, test.msg)
			}
			if want := test.in[:min(len(test.in), 2)]; test.place == "1" && !strings.HasPrefix(string(e.Sample), want) {
				t.Errorf("got sample %q, want the beginning of the input", e.Sample)
			}
			if n := strings.Count(e.Msg, "\n"); n > 30 {
				t.Errorf("got a message of %d lines: %q", n, e.Msg)
			}
		})
	}
}

func testUsage(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	said := ""
	warns := prepare(t, s, func(_ int, u stages.Usage) { said += u.Said }, command("numfmt", "--invalid=warn"), command("wc", "-l"))
	if out, err := run(t.Context(), warns, "abc\n"); err != nil || out != "1\n" || said != "numfmt: invalid number: ‘abc’" {
		t.Errorf("got %q, %v, and %q on standard error", out, err, said)
	}
	var got [3]stages.Usage
	f := prepare(t, s, func(i int, u stages.Usage) { got[i] = u },
		command("tr", "a", "b"), command("grep", "x"), command("wc", "-c"))
	if out, err := run(t.Context(), f, "abc\nx1\nx2\n"); err != nil || out != "6\n" {
		t.Fatalf("got %q, %v", out, err)
	}
	want := [3][2]int64{{10, 10}, {10, 6}, {6, 2}}
	for i, u := range got {
		if u.BytesIn != want[i][0] || u.BytesOut != want[i][1] || u.Elapsed <= 0 || u.CPU <= 0 {
			t.Errorf("command %d: got %+v, want %d bytes in, %d out, and time", i, u, want[i][0], want[i][1])
		}
	}
}

// testBulk pushes 100 MB through four commands and looks at what the gateway needs for it.
func testBulk(t *testing.T, open func() sandbox.Driver) {
	const size = 100_000_000
	s := newSession(t, open)
	f := prepare(t, s, nil, command("tr", "a", "b"), command("tr", "b", "c"), command("grep", "c"), command("wc", "-c"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var out bytes.Buffer
	start := time.Now()
	err := f(t.Context(), &endless{text: strings.Repeat("abcdefghi", 11) + "\n", n: size}, &out)
	if err != nil || out.String() != fmt.Sprintln(size) {
		t.Fatalf("got %q, %v, want %d", out.String(), err, size)
	}
	runtime.ReadMemStats(&after)
	t.Logf("%.0f MB/s", size/1e6/time.Since(start).Seconds())
	if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
		t.Errorf("the gateway grew by %d MB for %d MB of data, want less than 64", grown>>20, size/1_000_000)
	}
}

func testBinary(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	data := make([]byte, 8<<20)
	rand.New(rand.NewSource(1)).Read(data)
	f := prepare(t, s, nil, command("base64"), command("base64", "-d"), command("tr", "\\000", "\\000"))
	sum := sha256.New()
	if err := f(t.Context(), bytes.NewReader(data), sum); err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256(data); !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("random bytes came back changed")
	}
}

func testConcurrent(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	f := prepare(t, s, nil, command("tr", "a-z", "A-Z"), command("cut", "-c2-"))
	var group errgroup.Group
	for i := range 32 {
		group.Go(func() error {
			out, err := run(t.Context(), f, fmt.Sprintf("x%dabc\n", i))
			if want := fmt.Sprintf("%dABC\n", i); err == nil && out != want {
				err = fmt.Errorf("got %q, want %q", out, want)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func testEarlyStop(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	for _, test := range []struct {
		name  string
		chain []stages.Command
		out   string
	}{
		{"endless input", []stages.Command{command("head", "-n", "1")}, "abc\n"},
		{"input of a neighbour", []stages.Command{command("grep", "b"), command("sed", "s/a/x/"), command("head", "-n", "1")}, "xbc\n"},
		{"endless command", []stages.Command{command("jq", "-n", "repeat(1)"), command("head", "-n", "2")}, "1\n1\n"},
		{"silent endless command", []stages.Command{command("awk", `BEGIN{print "x"; fflush(); for(;;);}`), command("head", "-n", "1")}, "x\n"},
		{"input is not read", []stages.Command{command("awk", "BEGIN{print 1}")}, "1\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// The reader blocks after a while: the chain must end without another byte.
			r, w := io.Pipe()
			defer r.Close()
			go func() {
				for range 1000 {
					if _, err := io.WriteString(w, "abc\n"); err != nil {
						return
					}
				}
			}()
			var out bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for i := range test.chain {
				test.chain[i].LineBuffered = i+1 < len(test.chain)
			}
			if err := prepare(t, s, nil, test.chain...)(ctx, r, &out); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.out {
				t.Errorf("got %q, want %q", out.String(), test.out)
			}
		})
	}
}

// testWriterLosesReader: a command that writes on when its reader has ended is no failure, and hides none. Whether it
// notices by itself before it is ended is chance, so there are many.
func testWriterLosesReader(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	for _, writer := range []stages.Command{
		command("awk", `BEGIN{while(1) print "x{"}`), command("awk", `BEGIN{while(1) printf "x{\n"}`), command("jq", "-nr", `repeat("x{")`),
	} {
		stops := prepare(t, s, nil, writer, command("head", "-n", "1"), command("wc", "-c"))
		fails := prepare(t, s, nil, writer, command("sed", "3Q9"), command("wc", "-c"))
		for range parttest.Times(8, 60) {
			var out bytes.Buffer
			if err := stops(t.Context(), strings.NewReader(""), &out); err != nil || out.String() != "3\n" {
				t.Fatalf("%s, then head: got %q, %v", writer.Name, out.String(), err)
			}
			var e *stages.Error
			if err := fails(t.Context(), strings.NewReader(""), io.Discard); !errors.As(err, &e) || e.Place != "2" {
				t.Fatalf("%s, then a failure of sed: got %v", writer.Name, err)
			}
		}
	}
}

// closing is a reader that wants n bytes.
type closing struct{ n int }

func (c *closing) Write(p []byte) (int, error) {
	if c.n -= len(p); c.n <= 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func testReaderStops(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	f := prepare(t, s, nil, command("jq", "-n", "repeat(1)"), command("tr", "1", "2"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f(ctx, strings.NewReader(""), &closing{1 << 20}); err != nil {
		t.Errorf("got %v, want success: the reader had enough", err)
	}
}

// slow is a reader that checks, whenever it gets data, how far the input has run ahead.
type slow struct {
	t    *testing.T
	in   *atomic.Int64
	got  int64
	most int64
}

func (s *slow) Write(p []byte) (int, error) {
	s.got += int64(len(p))
	runtime.Gosched()
	s.most = max(s.most, s.in.Load()-s.got)
	return len(p), nil
}

type counted struct {
	r io.Reader
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func testSlowReader(t *testing.T, open func() sandbox.Driver) {
	const bound = 8 << 20 // two windows, the pipes, the tool's own buffers
	s := newSession(t, open)
	f := prepare(t, s, nil, command("tr", "a", "b"), command("tr", "b", "c"))
	var n atomic.Int64
	out := &slow{t: t, in: &n}
	if err := f(t.Context(), counted{&endless{text: "abc\n", n: 64 << 20}, &n}, out); err != nil {
		t.Fatal(err)
	}
	if out.most > bound {
		t.Errorf("the input ran %d bytes ahead of the reader, want at most %d", out.most, bound)
	}
}

func testFailingInput(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	cause := errors.New("the tool before has failed")
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "a\n")
		w.CloseWithError(cause)
	}()
	if err := prepare(t, s, nil, command("sort"))(t.Context(), r, io.Discard); !errors.Is(err, cause) {
		t.Errorf("got %v, want the error of the input", err)
	}
}

func testCancel(t *testing.T, open func() sandbox.Driver) {
	s := newSession(t, open)
	for _, test := range []struct {
		name  string
		chain []stages.Command
	}{
		{"busy", []stages.Command{command("awk", `BEGIN{print "x"; fflush(); for(;;);}`)}},
		{"waiting", []stages.Command{command("awk", `BEGIN{print "x"; fflush()} {print}`), command("cut", "-c1-", "--output-delimiter=,")}},
		{"asleep", []stages.Command{command("sleep", "50")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, w := io.Pipe()
			defer w.Close()
			var once sync.Once
			out := writerFunc(func(p []byte) (int, error) { once.Do(cancel); return len(p), nil })
			if test.name != "busy" {
				time.AfterFunc(50*time.Millisecond, cancel)
			}
			cancelled := make(chan time.Time, 1)
			context.AfterFunc(ctx, func() { cancelled <- time.Now(); r.CloseWithError(ctx.Err()) })
			err := prepare(t, s, nil, test.chain...)(ctx, r, out)
			if e := asError(t, err); e.Code != stages.Cancelled {
				t.Errorf("got %s, want %s", e.Code, stages.Cancelled)
			}
			if d := time.Since(<-cancelled); d > 30*time.Second { // each would take longer
				t.Errorf("it took %s to cancel", d)
			}
		})
	}
	if out, err := run(t.Context(), prepare(t, s, nil, command("wc", "-c")), "abc"); err != nil || out != "3\n" {
		t.Errorf("after cancelling: got %q, %v", out, err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
