//go:build !race

package rpc

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPaces: what is no message is read slowly.
func TestPaces(t *testing.T) {
	for name, text := range map[string]string{
		"blank lines":    "\n",
		"lines of space": strings.Repeat(" ", 60<<10) + "\n",
		"one long line":  "x",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, over := &endless{text: text}, make(chan struct{})
				line := NewLine(in, io.Discard, LineOptions{})
				line.Prepare(nil, 1<<20)
				go func() {
					defer close(over)
					for _, err := line.Next(); err != io.EOF; _, err = line.Next() { // the long line is an error, and not the end
					}
				}()
				time.Sleep(5 * time.Second)
				if read := in.read.Load(); read > 1<<30 {
					t.Errorf("%d MiB were read in 5 s", read>>20)
				}
				in.ended.Store(true)
				line.Close()
				<-over
			})
		})
	}
}

// endless is a stream that repeats a text until it is ended, and counts how much was read.
type endless struct {
	text  string
	read  atomic.Int64
	ended atomic.Bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.ended.Load() {
		return 0, io.EOF
	}
	n := copy(p, strings.Repeat(e.text, 1+len(p)/len(e.text)))
	e.read.Add(int64(n))
	return n, nil
}
