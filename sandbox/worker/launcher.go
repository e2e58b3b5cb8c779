//go:build linux

package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
)

// A Launcher starts workers of one binary, each locked in from its first instruction.
type Launcher struct {
	argv     []string // the binary's path and what makes it call [Main]
	hostInfo hostInfo
	text     string // hostInfo, as a worker reads it
	nice     int    // how much nicer than this process workers are
	pipes    int    // bytes that the pipes to a worker hold, where the system allows it
}

// maxSurvey is how much of an answer is read: programs of the table, and a line for each.
const maxSurvey = 1 << 20

// yields is how much nicer workers and their commands are than a gateway on the same machine, which must answer whatever
// they do.
const yields = 5

// largePipe is for workers of which a machine has few. All pipes of a user together are limited, see pipe(7).
const largePipe = 1 << 20

// NewLauncher has the binary look around on this machine. argv is its absolute path and what it must be given so that
// it calls [Main] with the rest. workspace is the directory whose files commands may read; empty: there is none. added are
// the operator's programs, as [programs.Added.Text] writes them.
func NewLauncher(ctx context.Context, argv []string, workspace, added string) (*Launcher, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], slices.Concat(argv[1:], []string{roleSurvey, workspace, added})...)
	cmd.Args[0] = processName
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{}, "/", &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("looking for programs: %w: %.1000s", err, bytes.TrimSpace(said.Bytes()))
	}
	if out.Len() > maxSurvey {
		return nil, fmt.Errorf("looking for programs: %s answered %d bytes", argv[0], out.Len())
	}
	s, err := readHostInfo(out.String())
	if err != nil {
		return nil, err
	}
	return newLauncher(argv, s, yields, largePipe)
}

func newLauncher(argv []string, s hostInfo, nice, pipes int) (*Launcher, error) {
	text, err := json.Marshal(s)
	return &Launcher{argv: argv, hostInfo: s, text: string(text), nice: nice, pipes: pipes}, err
}

// Start starts a worker and returns the other ends of its standard input and output; its standard error is said, which stays
// the caller's. It makes its private directories in scratch. It gets SIGTERM when its starter dies.
func (l *Launcher) Start(scratch string, said *os.File) (w *jail.Process, in, out *os.File, err error) {
	all, err := pipes(2, l.pipes)
	if err != nil {
		return nil, nil, nil, err
	}
	defer all.closeTheirs()
	argv := slices.Concat([]string{processName}, l.argv[1:], []string{roleServe, scratch, l.text})
	w, err = l.hostInfo.reach(scratch).Start(l.argv[0], l.hostInfo.Support.Landlock, jail.Command{
		Argv: argv, Env: []string{"GOMAXPROCS=" + strconv.Itoa(runtime.GOMAXPROCS(0)), ownProcessors}, Nice: l.nice,
		Files: append(all.descriptors(), int(said.Fd())),
	})
	if err != nil {
		all.closeOurs()
		return nil, nil, nil, err
	}
	return w, all[0].ours, all[1].ours, nil
}

// widen makes the buffer of a pipe larger, where the system allows it: fewer wake-ups.
func widen(f *os.File, size int) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
}
