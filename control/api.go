package control

import (
	"fmt"
	"time"
)

// A Gateway describes a process that serves.
type Gateway struct {
	ID        string    `json:"id"`
	Version   string    `json:"version"`
	PID       int       `json:"pid"`
	Started   time.Time `json:"started"`
	Transport string    `json:"transport"`         // stdio or http
	Address   string    `json:"address,omitempty"` // of its endpoint over HTTP
	Directory string    `json:"directory"`         // in which it was started
	State     string    `json:"state,omitempty"`   // its state directory
	Configs   []string  `json:"configs"`           // its configuration files
	Group     string    `json:"group,omitempty"`   // the only one that it serves
	Groups    []string  `json:"groups,omitempty"`  // those that it serves, each below the address of its endpoint
}

// A Server describes a server of a gateway.
type Server struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Code   string `json:"code,omitempty"`  // of its failure
	Where  string `json:"where,omitempty"` // it is configured
}

// A Change is what a reload has changed. The servers of a source with an error stay as they were.
type Change struct {
	Added     []string `json:"added"`
	Removed   []string `json:"removed"`
	Restarted []string `json:"restarted"`
	Groups    bool     `json:"groups,omitempty"` // groups have changed
	Error     string   `json:"error,omitempty"`
}

// An Error is the answer to a request that fails, or says why there is none.
type Error struct {
	Status  int    `json:"-"` // of HTTP; 0: there is no answer
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// failure is the JSON of an error.
type failure struct {
	Error *Error `json:"error"`
}

func failed(status int, hint, format string, args ...any) *Error {
	return &Error{status, fmt.Sprintf(format, args...), hint}
}
