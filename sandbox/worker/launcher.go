//go:build linux

package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"github.com/mcsh-dev/mcsh/sandbox/jail"
)

// A Launcher starts workers of one binary, each locked in from its first instruction.
type Launcher struct {
	argv   []string // the binary's path and what makes it call [Main]
	survey survey
	text   string // survey, as a worker reads it
}

// maxSurvey is how much of an answer is read: programs of the table, and a line for each.
const maxSurvey = 1 << 20

// NewLauncher has the binary look around on this machine. argv is its absolute path and what it must be given so that
// it calls [Main] with the rest. workspace is the directory whose files commands may read; empty: there is none.
func NewLauncher(ctx context.Context, argv []string, workspace string) (*Launcher, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], append(slices.Clone(argv[1:]), roleSurvey)...)
	cmd.Args[0] = processName
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{}, "/", &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("looking for programs: %w: %.1000s", err, bytes.TrimSpace(said.Bytes()))
	}
	if out.Len() > maxSurvey {
		return nil, fmt.Errorf("looking for programs: %s answered %d bytes", argv[0], out.Len())
	}
	s, err := readSurvey(out.String())
	if err != nil {
		return nil, err
	}
	s.Workspace = workspace
	return newLauncher(argv, s)
}

func newLauncher(argv []string, s survey) (*Launcher, error) {
	text, err := json.Marshal(s)
	return &Launcher{argv: argv, survey: s, text: string(text)}, err
}

// Start starts a worker between the descriptors of its standard input, output and error, which stay the caller's. It
// makes its private directories in scratch. It gets SIGTERM when the thread ends that has called Start.
func (l *Launcher) Start(scratch string, files [3]int) (*jail.Process, error) {
	argv := slices.Concat([]string{processName}, l.argv[1:], []string{roleServe, scratch, l.text})
	return l.survey.reach(scratch).Start(l.argv[0], l.survey.Support.Landlock, jail.Command{
		Argv: argv, Env: []string{"GOMAXPROCS=" + strconv.Itoa(runtime.GOMAXPROCS(0)), ownProcessors}, Files: files[:],
	})
}
