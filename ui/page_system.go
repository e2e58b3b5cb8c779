package ui

import (
	"time"

	"github.com/mcsh-dev/mcsh/control"
)

// System describes the gateway as a process.
type System interface {
	System() SystemState
}

// A SystemState is what the page System shows.
type SystemState struct {
	Gateway control.Gateway
	Build   []Fact  // version, revision, Go
	Sandbox []Fact  // the backend and what it holds
	Shares  []Share // of the memory budget
	Total   Share   // the memory budget
	Process []Fact
	Kept    []Fact // the store of outputs; none: outputs are not kept
	Limits  []Limit
	Links   []Link
}

// A Fact is a name with a text.
type Fact struct{ Name, Text string }

// A Share is a part of something that is bounded, in bytes. Most 0: it has no bound of its own.
type Share struct {
	Name       string
	Used, Most int64
}

// A Limit is a bound that an operator can set.
type Limit struct {
	Name, Value, Usage string
	Changed            bool // by the operator
}

// A Link leads out of the console.
type Link struct{ Name, Address, Usage string }

func systemPage() page {
	return page{
		path: "system", title: "System", file: "system.html", menu: "system", keys: "y", whole: true,
		there: func(o *Options) bool { return o.System != nil }, show: showSystem,
	}
}

func showSystem(v *Visit) (any, error) {
	s := v.Options().System.System()
	return struct {
		SystemState
		Running time.Duration
	}{s, time.Since(s.Gateway.Started)}, nil
}
