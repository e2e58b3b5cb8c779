package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// portOwner names the program that listens on a port of TCP, as far as this user may see it: "mcsh (pid 4123)".
func portOwner(port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			// The columns are number, own address, other address, state (0A listens), …, and the inode as the tenth.
			columns := strings.Fields(line)
			if len(columns) > 9 && columns[3] == "0A" && strings.HasSuffix(columns[1], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+columns[9]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right
	for _, file := range files {
		if link, err := os.Readlink(file); err != nil || !sockets[link] {
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
