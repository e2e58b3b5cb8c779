//go:build linux

package jail

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStarterThreadEnds: a process outlives the thread from which it was started.
func TestStarterThreadEnds(t *testing.T) {
	c := catCell(t)
	theirs, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var p *Process
	onEndingThread(func() {
		p, err = c.Start(Command{Argv: []string{"cat"}, Files: []int{int(theirs.Fd()), int(theirOut.Fd()), int(theirOut.Fd())}})
	})
	theirs.Close()
	theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.WriteString("alive"); err != nil {
		t.Errorf("writing to the process: %v", err)
	}
	in.Close()
	said := make([]byte, 16)
	n, err := out.Read(said)
	if string(said[:n]) != "alive" {
		t.Errorf("the process says %q, %v", said[:n], err)
	}
	if state, err := p.Wait(); err != nil || state.Status != 0 {
		t.Errorf("it has ended with %#x, %v", state.Status, err)
	}
}

// onEndingThread calls f on a thread, and returns when that has ended.
func onEndingThread(f func()) {
	thread := make(chan int)
	go func() {
		runtime.LockOSThread()            // and not unlocked: the thread ends with the goroutine
		if unix.Gettid() == os.Getpid() { // but not the main one
			defer runtime.UnlockOSThread()
			onEndingThread(f)
			thread <- 0
			return
		}
		f()
		thread <- unix.Gettid()
	}()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	for _, err := os.Stat(task); err == nil; _, err = os.Stat(task) {
		runtime.Gosched()
	}
}
