package upstream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcsh-dev/mcsh/internal/mcptest"
	"github.com/mcsh-dev/mcsh/upstream"
)

// groupSource is a source of servers and groups.
type groupSource struct {
	servers []string
	groups  []upstream.Group
	err     error
}

func (s *groupSource) Servers(context.Context) (list []upstream.Server, err error) {
	for _, name := range s.servers {
		list = append(list, upstream.Server{Name: name, Version: "1", Dial: func(context.Context) (mcp.Transport, error) { return nil, errors.New("down") }})
	}
	return list, s.err
}

func (s *groupSource) Groups() []upstream.Group { return s.groups }

func (s *groupSource) Watch(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// TestView: the servers of groups, alone and together, and whether there can be only one.
func TestView(t *testing.T) {
	first := &groupSource{servers: []string{"github", "fs-a", "fs-b", "x*y"}, groups: []upstream.Group{
		{Name: "dev", Servers: []string{"github", "fs-*"}},
		{Name: "one", Servers: []string{"github"}},
		{Name: "twice", Servers: []string{"github", "github"}},
		{Name: "glob", Servers: []string{"git*"}},
	}}
	second := &groupSource{servers: []string{"mail"}, groups: []upstream.Group{
		{Name: "mixed", Servers: []string{"mail", "gitlab", "fs-?"}}, {Name: "all", Servers: []string{"*"}}, {Name: "absent", Servers: []string{"gitlab"}},
	}}
	pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{first, second}})
	if err := pool.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ groups, want, only string }{
		{"", "", ""},
		{"dev", "fs-a fs-b github", ""},
		{"one", "github", "github"},
		{"twice", "github", "github"},
		{"glob", "github", ""}, // another server may come
		{"one twice", "github", "github"},
		{"one glob", "github", ""},
		{"one absent", "github", ""},
		{"absent", "", "gitlab"},
		{"mixed", "fs-a fs-b mail", ""},
		{"one mixed", "fs-a fs-b github mail", ""},
		{"all", "fs-a fs-b github mail x*y", ""},
		{"gone", "", ""},
		{"gone one", "github", "github"},
	} {
		v := pool.View(strings.Fields(test.groups)...)
		ctx := upstream.WithView(t.Context(), v)
		if got := strings.Join(pool.Servers(ctx), " "); got != test.want || v.Only() != test.only {
			t.Errorf("%q: got %q, only %q, want %q, %q", test.groups, got, v.Only(), test.want, test.only)
		}
		for _, name := range pool.Servers(t.Context()) {
			_, err := pool.Tool(ctx, name, "x")
			if unknown := strings.Contains(err.Error(), "there is no server"); unknown == slices.Contains(strings.Fields(test.want), name) {
				t.Errorf("%q: %s: %v", test.groups, name, err)
			}
		}
	}
	var none *upstream.View
	if !none.Sees("github") || none.Only() != "" || len(pool.Servers(t.Context())) != 5 {
		t.Error("without a view there are servers missing")
	}
	if notes := strings.Join(pool.GroupNotes(t.Context()), "\n"); notes != `group "absent": no server has the name "gitlab" at present; did you mean "github"?`+"\n"+
		`group "mixed": no server has the name "gitlab" at present; did you mean "github"?` {
		t.Errorf("the notes are %s", notes)
	}
}

// TestWrongGroups: what is wrong with groups of one or several files. A reload with a mistake leaves those before in use.
func TestWrongGroups(t *testing.T) {
	good := upstream.Group{Name: "dev", Servers: []string{"a"}, Where: "a.json:7"}
	for _, test := range []struct {
		name  string
		group upstream.Group
		want  string
	}{
		{"no servers", upstream.Group{Name: "x", Where: "b.json:3"}, `b.json:3: group "x": it names no server; remove it, or name some`},
		{"an empty name", upstream.Group{Name: "x", Servers: []string{"a", ""}}, `group "x": the name of a server in it is empty`},
		{"twice", upstream.Group{Name: "dev", Servers: []string{"a"}, Where: "b.json:3"}, `b.json:3: group "dev": it is defined twice, first at a.json:7; rename one of them`},
		{"no name", upstream.Group{Servers: []string{"a"}}, `group "": its name is part of an address`},
		{"a path", upstream.Group{Name: "../a", Servers: []string{"a"}}, `group "../a": its name is part of an address`},
		{"a space", upstream.Group{Name: "a b", Servers: []string{"a"}}, `group "a b": its name is part of an address`},
		{"a comma", upstream.Group{Name: "a,b", Servers: []string{"a"}}, `group "a,b": its name is part of an address`},
		{"all", upstream.Group{Name: "*", Servers: []string{"a"}}, `group "*": its name is part of an address`},
		{"long", upstream.Group{Name: strings.Repeat("a", 10_000), Servers: []string{"a"}}, `its name is part of an address`},
	} {
		t.Run(test.name, func(t *testing.T) {
			first, second := &groupSource{servers: []string{"a"}, groups: []upstream.Group{good}}, &groupSource{groups: []upstream.Group{test.group}}
			pool := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{first, second}})
			if err := pool.Load(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 600 {
				t.Errorf("got %v, want %s", err, test.want)
			}
			second.groups = nil
			later := mcptest.NewPool(t, upstream.Options{Sources: []upstream.Source{first, second}})
			if err := later.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			second.groups = []upstream.Group{test.group}
			c, err := later.Reload(t.Context())
			if err != nil || c.Err == nil || !strings.Contains(c.Err.Error(), test.want) || c.Groups || !later.HasGroup("dev") || len(later.Groups(t.Context())) != 1 {
				t.Errorf("got %+v, %v, and the groups %v", c, err, later.Groups(t.Context()))
			}
		})
	}
}
