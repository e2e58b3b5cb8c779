package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestConsoleRefused: no console is served to people whom nobody knows, and its settings must say yes or no.
func TestConsoleRefused(t *testing.T) {
	for _, test := range []struct {
		name, args, env string
		status          int
		want            string
	}{
		{"beyond this machine", "--listen 0.0.0.0:0 --no-auth --console", "", exitUsage, "--console: others can reach this address"},
		{"behind a proxy", "--listen 127.0.0.1:0 --public-url https://mcp.example.com --console", "", exitUsage, "--console: others can reach this address"},
		{"on and off", "--console --no-console", "", exitUsage, "none of the others can be"},
		{"a variable that says neither", "", consoleVariable + "=maybe", exitConfig, consoleVariable + "=maybe: want on or off"},
		{"another such variable", "", consoleResultsVariable + "=1", exitConfig, consoleResultsVariable + "=1: want on or off"},
	} {
		var out, said bytes.Buffer
		status := run(t.Context(), append([]string{"serve", "--state", "off"}, strings.Fields(test.args)...), strings.NewReader(""), &out, &said, []string{test.env})
		if status != test.status || !strings.Contains(said.String(), test.want) {
			t.Errorf("%s: status %d, %s", test.name, status, said.String())
		}
	}
}

// TestConsoleListens: where the listener has a console by itself.
func TestConsoleListens(t *testing.T) {
	_, inside := containerAddress()
	for _, test := range []struct {
		name  string
		flags consoleFlags
		l     listenFlags
		want  bool
	}{
		{"this machine", consoleFlags{}, listenFlags{address: "127.0.0.1:0"}, !inside},
		{"with tokens", consoleFlags{}, listenFlags{address: "0.0.0.0:0", auth: authFlags{tokens: "tokens"}}, !inside},
		{"everybody", consoleFlags{}, listenFlags{address: "0.0.0.0:0", noAuth: true}, false},
		{"a proxy in front", consoleFlags{}, listenFlags{address: "127.0.0.1:0", proxies: []string{"10.0.0.0/8"}}, false},
		{"a runtime", consoleFlags{}, listenFlags{address: "127.0.0.1:0", runtime: true}, false},
		{"a container of a runtime", consoleFlags{}, listenFlags{address: "10.0.0.2:0", contained: true, auth: authFlags{tokens: "tokens"}}, false},
		{"a runtime, wanted", consoleFlags{on: true}, listenFlags{address: "10.0.0.2:0", contained: true, auth: authFlags{tokens: "tokens"}}, true},
		{"unwanted", consoleFlags{off: true}, listenFlags{address: "127.0.0.1:0"}, false},
	} {
		if got := test.flags.listens(&test.l); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}
