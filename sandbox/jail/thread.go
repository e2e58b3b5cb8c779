//go:build linux

package jail

import (
	"runtime"
	"sync"
)

// starts takes what is to be done on the thread that starts all processes of this one. A process gets its parent-death
// signal when the thread ends that has forked it, not when its parent does (prctl(2), PR_SET_PDEATHSIG), and a thread of
// the Go runtime ends with a goroutine that has locked it. This one never ends.
var starts = sync.OnceValue(func() chan<- func() {
	todo := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range todo {
			start()
		}
	}()
	return todo
})

// onLastingThread calls start on the thread that lasts as long as this process, and returns when it has returned. That
// starts follow each other costs nothing: the Go runtime allows one fork at a time.
func onLastingThread(start func()) {
	done := make(chan struct{})
	starts() <- func() {
		defer close(done)
		start()
	}
	<-done
}
