package sandboxtest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/sandbox/wire"
	"github.com/mcsh-dev/mcsh/stages"
)

// atOnce is how many attacks run side by side.
const atOnce = 4

// attacksJSON holds what has been tried against command stages.
//
//go:embed testdata/attacks.json
var attacksJSON []byte

// An attack is a command that must not do what it is meant to do.
type attack struct {
	ID   string
	Cmd  string
	Args []string
	In   string
	Rep  int64  // bytes of input: In again and again; 0: In once
	Want string // begins with "refuse" where the grammar must stop it
}

func (a attack) input() io.Reader {
	if a.Rep > 0 {
		return &endless{text: a.In, n: a.Rep}
	}
	return strings.NewReader(a.In)
}

func attacks(t *testing.T) []attack {
	t.Helper()
	var all []attack
	if err := json.Unmarshal(attacksJSON, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// attackTime and rawTime bound one attack; attackOutput is where it is stopped; rawDisk is its limit on disk.
const (
	attackTime   = time.Second
	rawTime      = 3 * time.Second
	rawDisk      = 64 << 20
	attackOutput = 1 << 20
)

// A canary is what no command may get hold of or leave behind.
type canary struct {
	secret string
	file   string // holds the secret
	traces []string
}

func newCanary(t *testing.T) canary {
	t.Helper()
	c := canary{
		secret: "canary-7f3a91-secret",
		file:   filepath.Join(t.TempDir(), "canary"),
		traces: []string{"/tmp/pwn", "/tmp/x", "/pwn"},
	}
	t.Setenv("MCSH_TEST_CANARY", c.secret)
	if err := os.WriteFile(c.file, []byte(c.secret+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, f := range c.traces {
		if _, err := os.Lstat(f); err == nil {
			t.Skipf("%s exists: the test looks for files that attacks would make", f)
		}
	}
	return c
}

// check looks at what an attack has said and left behind.
func (c canary) check(t *testing.T, id, said string) {
	t.Helper()
	for _, secret := range []string{c.secret, "root:x:0:0", "uid=0(", "uid=65534("} {
		if strings.Contains(said, secret) {
			t.Errorf("%s: got hold of %q: %.300q", id, secret, said)
		}
	}
	for _, f := range c.traces {
		if _, err := os.Lstat(f); err == nil {
			t.Errorf("%s: made %s", id, f)
		}
	}
}

// capped keeps what an attack says, up to attackOutput, and then wants no more.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if c.Len() > attackOutput {
		return 0, io.ErrClosedPipe
	}
	return c.Buffer.Write(p)
}

// testAttacks sends every attack the way an agent would.
func testAttacks(t *testing.T, open func() sandbox.Driver) {
	c := newCanary(t)
	p := newPool(t, open, sandbox.Options{Warm: -1})
	s := openSession(t, p)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, a := range attacks(t) {
		if a.Rep > 1<<20 && testing.Short() {
			continue
		}
		cmd := stages.Command{Name: a.Cmd, Args: a.Args, Timeout: attackTime}
		err := p.CheckCommand(cmd)
		if err == nil && strings.HasPrefix(a.Want, "refuse") {
			t.Errorf("%s: %s %q was accepted, want: %s", a.ID, a.Cmd, a.Args, a.Want)
		}
		if err != nil {
			if e := asError(t, err); e.Hint == "" {
				t.Errorf("%s: refused without a hint: %v", a.ID, err)
			}
			continue
		}
		group.Go(func() error {
			var out capped
			f, err := s.Prepare([]stages.Command{cmd}, nil)
			if err == nil {
				err = f(t.Context(), a.input(), &out)
			}
			c.check(t, a.ID, out.String()+fmt.Sprint(err))
			return nil
		})
	}
	_ = group.Wait() // the functions return nil
	if out, err := run(t.Context(), prepare(t, s, nil, command("wc", "-c")), "abc"); err != nil || out != "3\n" {
		t.Errorf("after all attacks: got %q, %v", out, err)
	}
}

// A raw connection sends arguments to a worker that the grammar has not seen.
type raw struct {
	client  *wire.Client
	timeout time.Duration
}

func newRaw(t *testing.T, open func() sandbox.Driver) raw {
	t.Helper()
	d := open()
	rwc, err := d.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, err := wire.Dial(t.Context(), rwc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		d.Close()
	})
	return raw{client, rawTime}
}

// can says whether the worker has a program.
func (r raw) can(name string) bool {
	for _, f := range r.client.Hello().Programs {
		if f.Name == name {
			return f.Refusal == ""
		}
	}
	return false
}

// run returns everything that a command has said, also on standard error.
func (r raw) run(ctx context.Context, name string, args []string, in io.Reader) (string, *wire.Failure, error) {
	first := name
	if p, ok := programs.Find(name); ok && p.Bin != "" {
		first = p.Bin
	}
	id, err := r.client.Prepare(wire.Chain{Memory: sandbox.Memory, Disk: rawDisk, Commands: []wire.Command{
		{Name: name, Argv: append([]string{first}, args...), Timeout: r.timeout},
	}})
	if err != nil {
		return "", nil, err
	}
	s, err := r.client.Run(id)
	if err != nil {
		return "", nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Cancel() })
	defer stop()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if _, err := io.Copy(onlyWriter{s}, in); err == nil {
			_ = s.End()
		}
	}()
	var out capped
	if _, err := io.Copy(&out, onlyReader{s}); err != nil {
		_ = s.Cancel()
	}
	o, err := s.Outcome()
	<-fed
	said := out.String()
	if o.Failure != nil {
		said += o.Failure.Stderr
	}
	return said, o.Failure, err
}

type onlyWriter struct{ io.Writer }

type onlyReader struct{ io.Reader }

// testAttacksOnJail sends every attack past the grammar: the jail alone must hold.
func testAttacksOnJail(t *testing.T, open func() sandbox.Driver) {
	c := newCanary(t)
	r := newRaw(t, open)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, a := range attacks(t) {
		if !r.can(a.Cmd) || strings.ContainsRune(strings.Join(a.Args, ""), 0) {
			continue // not a program of the worker; an argument that no process can be given
		}
		if a.Rep > 1<<20 && testing.Short() {
			continue
		}
		group.Go(func() error {
			said, _, err := r.run(t.Context(), a.Cmd, a.Args, a.input())
			if err != nil {
				return fmt.Errorf("%s: %w", a.ID, err)
			}
			c.check(t, a.ID, said)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if said, _, err := r.run(t.Context(), "wc", []string{"-c"}, strings.NewReader("abc")); err != nil || said != "3\n" {
		t.Errorf("after all attacks: got %q, %v", said, err)
	}
}

// testFilesOnJail tries to read one file, and to write one, with every program that can be told to.
func testFilesOnJail(t *testing.T, open func() sandbox.Driver) {
	c := newCanary(t)
	r := newRaw(t, open)
	written := filepath.Join(t.TempDir(), "written")
	c.traces = append(c.traces, written)
	for _, test := range []struct {
		name string
		args []string
	}{
		{"grep", []string{"", c.file}},
		{"grep", []string{"-f", c.file, "-v", "x"}},
		{"sed", []string{"-n", "p", c.file}},
		{"sed", []string{"r " + c.file}},
		{"sed", []string{"w " + written}},
		{"sed", []string{"s/x/id/e"}},
		{"awk", []string{"{print}", c.file}},
		{"awk", []string{`BEGIN{while((getline l<"` + c.file + `")>0)print l}`}},
		{"awk", []string{`BEGIN{print "x" > "` + written + `"}`}},
		{"awk", []string{`BEGIN{system("id"); "id" | getline x; print x}`}},
		{"awk", []string{`BEGIN{for (k in ENVIRON) print k, ENVIRON[k]}`}},
		{"awk", []string{`BEGIN{s="/inet/tcp/0/127.0.0.1/22"; print "x" |& s; s |& getline x; print x}`}},
		{"sort", []string{c.file}},
		{"sort", []string{"-o", written}},
		{"sort", []string{"--compress-program=id", "-S1k"}},
		{"uniq", []string{c.file}},
		{"uniq", []string{"-", written}},
		{"cut", []string{"-c1-", c.file}},
		{"wc", []string{"--files0-from=" + c.file}},
		{"head", []string{c.file}},
		{"tail", []string{c.file}},
		{"tac", []string{c.file}},
		{"nl", []string{c.file}},
		{"base64", []string{c.file}},
		{"sha256sum", []string{"-c", c.file}},
		{"date", []string{"-f", c.file}},
		{"date", []string{"-r", c.file}},
		{"bc", []string{c.file}},
		{"column", []string{c.file}},
		{"rev", []string{c.file}},
		{"paste", []string{c.file}},
		{"join", []string{c.file, c.file}},
		{"comm", []string{c.file, c.file}},
		{"shuf", []string{"-o", written, "-e", "x"}},
		{"rg", []string{"", c.file}},
		{"rg", []string{"--pre", "id", "x", c.file}},
		{"rg", []string{"--files", "/"}},
		{"jq", []string{"-n", "env, $ENV"}},
		{"jq", []string{"-f", c.file}},
		{"jq", []string{"--rawfile", "a", c.file, "$a"}},
	} {
		if !r.can(test.name) {
			t.Logf("%s: not here", test.name)
			continue
		}
		said, _, err := r.run(t.Context(), test.name, test.args, strings.NewReader("x y\n"))
		if err != nil {
			t.Fatalf("%s %q: %v", test.name, test.args, err)
		}
		c.check(t, fmt.Sprintf("%s %q", test.name, test.args), said)
	}
}
