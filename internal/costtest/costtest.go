// Package costtest fails tests of work on hostile input that takes too much memory or processor time, and nests directories for
// them. It knows nothing of the work.
package costtest

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// The limits of work on [Input] bytes.
const (
	Input  = 100 << 10
	Memory = 256 << 20
	CPU    = 2 * time.Second
)

// garbage is how much of [Memory] the measurement may miss: garbage that was there before and is collected meanwhile.
// Collecting it each time would be slow, since fuzz targets run thousands of inputs.
const garbage = Memory / 16

// Run runs work and fails the test if it took more than [Memory] or [CPU]. All other work of the process counts too, so
// tests that call Run are not parallel. A fuzz target cuts its input to [Input] before.
func Run(tb testing.TB, work func()) {
	tb.Helper()
	if heap() > garbage {
		runtime.GC()
	}
	before, begun := heap(), cpuTime()
	done, peak := make(chan struct{}), make(chan uint64)
	go watch(done, peak)
	work()
	took := cpuTime() - begun
	close(done)
	if most := <-peak; most > before+Memory {
		tb.Errorf("it took %d MiB, more than %d", (most-before)>>20, Memory>>20)
	}
	if took > slower*CPU {
		tb.Errorf("it took %v of processor time, more than %v", took, slower*CPU)
	}
}

// watch sends the most memory that was in use until done.
func watch(done <-chan struct{}, peak chan<- uint64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	most := uint64(0)
	for {
		most = max(most, heap())
		select {
		case <-tick.C:
		case <-done:
			peak <- max(most, heap())
			return
		}
	}
}

// heap returns the bytes of objects in memory, those included that are not collected yet.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() + sample[1].Value.Uint64()
}
