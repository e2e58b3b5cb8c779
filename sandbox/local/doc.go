// Package local is the sandbox backend that starts workers as child processes. It knows how to start one and how to
// end it with all it has started; what a worker does is not its concern. It works on Linux only.
package local
