package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/control"
	"github.com/mcsh-dev/mcsh/ui"
)

// strangers are servers and tools with the names of these.
type strangers []string

func (s strangers) Tools(context.Context, string, string) (list ui.ToolList) {
	for _, name := range s {
		list.Tools = append(list.Tools, ui.ToolRow{Server: name, Name: name, Title: name, Description: name})
		list.Absent = append(list.Absent, ui.Absence{Server: name, Status: name, Why: name})
	}
	return list
}

func (s strangers) Tool(_ context.Context, server, name string) (d ui.ToolDetail, err error) {
	if !slices.Contains(s, server) || server != name {
		return d, errors.New("there is no such tool: " + name)
	}
	schema, _ := json.Marshal(map[string]any{"properties": map[string]any{name: map[string]any{"description": name, "enum": []string{name}}}}) // strings
	return ui.ToolDetail{ToolRow: ui.ToolRow{Server: server, Name: name, Description: name}, Input: schema, Returns: name, Doubt: name, Changed: name}, nil
}

func (s strangers) Check(context.Context, string, string, json.RawMessage) ([]string, string) {
	return s, s[0]
}

func (s strangers) Call(context.Context, string, string, json.RawMessage) (ui.Called, error) {
	return ui.Called{Text: s[0], Failed: true}, nil
}

func (s strangers) Servers(context.Context) (list []ui.ServerState) {
	for _, name := range s {
		list = append(list, ui.ServerState{Name: name, Status: name, Where: name, Transport: name, Why: name, Hint: name, Stderr: name})
	}
	return list
}

func (s strangers) Waiting(context.Context, string) ([]ui.WaitingTool, error) {
	return []ui.WaitingTool{{Tool: s[0], Hash: s[0], Diff: s[0]}}, errors.New(s[0])
}
func (strangers) Accept(context.Context, string, string, string) error { return nil }
func (strangers) Restart(context.Context, string) error                { return nil }
func (strangers) Disable(context.Context, string) error                { return nil }
func (strangers) Enable(context.Context, string) error                 { return nil }

// TestHostileNames: names of strangers are text in every page, and their links lead to them.
func TestHostileNames(t *testing.T) {
	names := strangers{evil, `a/b`, `a?b=c#d`, `%2e%2e`, "\u202egnp.exe", `" onclick="window.hacked=1`, `javascript:alert(1)`, strings.Repeat("long", 60), `a b+c&d`}
	console, err := ui.New(ui.Options{About: func() control.Gateway { return control.Gateway{} }, Servers: names, Tools: names})
	if err != nil {
		t.Fatal(err)
	}
	pages := console.Handler(ui.Door{})
	sent := regexp.MustCompile(` (name|value)="[^"]*"`) // back to the console, as it is
	get := func(path string) string {
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		body := answer.Body.String()
		if answer.Code != 200 {
			t.Errorf("%s: %d", path, answer.Code)
		}
		for _, part := range []string{"<img src=x", "<script>", "<svg onload", `" onclick=`, `href="javascript:`} {
			if i := strings.Index(body, part); i >= 0 {
				t.Errorf("%s has %q: %s", path, part, body[max(0, i-100):i+len(part)])
			}
		}
		if text := sent.ReplaceAllString(body, ""); strings.Contains(text, "\u202e") {
			t.Errorf("%s has a direction mark behind %q", path, text[max(0, strings.Index(text, "\u202e")-100):strings.Index(text, "\u202e")])
		}
		return body
	}
	links, followed := regexp.MustCompile(`href="((?:tools|servers)/[^"]+)"`), 0
	for _, list := range []string{"/tools", "/servers"} {
		for _, m := range links.FindAllStringSubmatch(get(list), -1) {
			get("/" + html.UnescapeString(m[1]))
			followed++
		}
	}
	if followed < 3*len(names) {
		t.Errorf("%d links, want one for each tool and server", followed)
	}
}

// TestDeepJSON: brackets within brackets, of a server or of a link, make no large page.
func TestDeepJSON(t *testing.T) {
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	console, err := ui.New(ui.Options{About: func() control.Gateway { return control.Gateway{} }, Tools: deepTool(deep)})
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	console.Handler(ui.Door{}).ServeHTTP(answer, httptest.NewRequest("GET", "/tools/a/a?args="+deep, nil))
	if body := answer.Body.String(); answer.Code != 200 || strings.Count(body, deep) < 3 || len(body) > 256<<10 {
		t.Errorf("status %d, %d bytes, %d times the text", answer.Code, len(body), strings.Count(body, deep))
	}
}

// A deepTool is a tool with a text as its schemas.
type deepTool string

func (d deepTool) Tools(context.Context, string, string) (list ui.ToolList) { return list }

func (d deepTool) Tool(_ context.Context, server, name string) (ui.ToolDetail, error) {
	return ui.ToolDetail{ToolRow: ui.ToolRow{Server: server, Name: name}, Input: json.RawMessage(d), Output: json.RawMessage(d)}, nil
}

func (d deepTool) Check(context.Context, string, string, json.RawMessage) ([]string, string) {
	return nil, ""
}

func (d deepTool) Call(context.Context, string, string, json.RawMessage) (c ui.Called, err error) {
	return c, nil
}
