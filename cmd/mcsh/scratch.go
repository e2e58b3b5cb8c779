package main

import "os"

// scratchDirs are where temporary files go, the first of them that can be written. A container with a read-only root
// often has the last one only, which is memory.
var scratchDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// scratchDir is where this process makes temporary files: where TMPDIR says, or where it can. Empty if nowhere: whoever
// needs a file then tells why there is none.
func (p *program) scratchDir() string {
	if p.env["TMPDIR"] != "" {
		return p.env["TMPDIR"]
	}
	for _, dir := range scratchDirs {
		made, err := os.MkdirTemp(dir, "mcsh-try-")
		if err == nil {
			_ = os.Remove(made) // it is empty
			return dir
		}
	}
	return ""
}
