package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcsh-dev/mcsh/internal/sockets"
	"github.com/mcsh-dev/mcsh/sandbox/jail"
	"github.com/mcsh-dev/mcsh/sandbox/worker"
)

// workerMain is the sandbox worker, for installations without mcsh-worker.
func workerMain(args []string) int {
	return worker.Main(args, worker.Options{Prefix: []string{workerCommand}})
}

// hide keeps other processes of the user, such as commands of pipelines, from reading the credentials in the environment
// and memory of this one. Only root can attach a debugger.
func hide() error { return jail.Hide() }

// portOwner names the process that listens on a TCP port, if this user may see it: "mcsh (pid 4123)".
func portOwner(port int) string {
	links := map[string]bool{}
	for _, s := range sockets.TCP() {
		if s.State == sockets.Listening && int(s.Local.Port()) == port {
			links["socket:["+s.Inode+"]"] = true
		}
	}
	if len(links) == 0 {
		return ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is valid
	for _, file := range files {
		if link, err := os.Readlink(file); err != nil || !links[link] {
			continue
		}
		process := filepath.Dir(filepath.Dir(file))
		name, err := os.ReadFile(filepath.Join(process, "comm"))
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(process))
	}
	return ""
}
