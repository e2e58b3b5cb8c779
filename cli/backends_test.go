package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// --sandbox auto tries the rows in their order, a name only its own row, and all of them fail with the reasons.
func TestFindBackend(t *testing.T) {
	for _, c := range []struct {
		choice string
		tried  []string
		says   []string
	}{
		{"auto", []string{"first", "second"}, []string{"first is not here", "second is not here"}},
		{"second", []string{"second"}, []string{"second is not here"}},
		{"off", nil, []string{"the sandbox is off"}},
		{"third", nil, []string{`"third": there is no such backend`}},
		{"", nil, []string{`"": there is no such backend`}},
	} {
		t.Run(c.choice, func(t *testing.T) {
			var tried []string
			var table []backend
			for _, name := range []string{"first", "second"} {
				table = append(table, backend{name: name, driver: func(context.Context, *program, sandboxSettings) (sandbox.Driver, error) {
					tried = append(tried, name)
					return nil, errors.New(name + " is not here")
				}})
			}
			found, err := findBackends(c.choice, table)
			if err == nil {
				_, err = openFirst(t.Context(), &program{}, sandboxSettings{}, found)
			}
			if diff := cmp.Diff(c.tried, tried); diff != "" {
				t.Errorf("tried (-want +got):\n%s", diff)
			}
			for _, want := range c.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
}

// A missing engine is not reported, unless the settings name one.
func TestNoEngine(t *testing.T) {
	none := &docker.Fault{Kind: docker.ErrNoEngine}
	for _, test := range []struct {
		err  error
		host string
		want bool
	}{
		{none, "", true},
		{none, "unix:///run/engine.sock", false},
		{&docker.Fault{Kind: docker.ErrNoImage}, "", false},
		{errors.New("broken"), "", false},
	} {
		if got := noEngine(test.err, sandboxSettings{host: test.host}); got != test.want {
			t.Errorf("%v with the host %q: got %v, want %v", test.err, test.host, got, test.want)
		}
	}
}
