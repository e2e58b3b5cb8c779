package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/toolhive"
)

// What --toolhive takes besides an address.
const (
	toolhiveAuto = "auto"
	toolhiveOff  = "off"
)

// Variables that stand for flags that are not given.
const (
	toolhiveVariable      = "MCSH_TOOLHIVE"
	toolhiveGroupVariable = "MCSH_TOOLHIVE_GROUP"
)

// toolhiveFlags are what a command line says about ToolHive.
type toolhiveFlags struct {
	mode                  string
	groups, names, labels []string
	headers, apiHeaders   []string
}

func (t *toolhiveFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.mode, "toolhive", "", "servers that ToolHive runs: auto (look for it), off, or the URL of its API (default auto; $"+toolhiveVariable+")")
	completeFlag(cmd, "toolhive", toolhiveAuto, toolhiveOff)
	f.StringArrayVar(&t.groups, "toolhive-group", nil, "only workloads of this group, a glob; !GLOB leaves out (repeatable; $"+toolhiveGroupVariable+" with commas)")
	f.StringArrayVar(&t.names, "toolhive-name", nil, "only workloads of this name, a glob; !GLOB leaves out (repeatable)")
	f.StringArrayVar(&t.labels, "toolhive-label", nil, "only workloads with this label, KEY or KEY=GLOB; !KEY=GLOB leaves out (repeatable)")
	f.StringArrayVar(&t.headers, "toolhive-header", nil, `header for workloads, 'NAMES Header: value', as in 'git* Authorization: Bearer ${TOKEN}' (repeatable)`)
	f.StringArrayVar(&t.apiHeaders, "toolhive-api-header", nil, "header for ToolHive's API, 'Header: value' (repeatable)")
}

// toolhiveSources looks for ToolHive, unless it is not wanted.
func toolhiveSources(p *program, s settings) ([]upstream.Source, error) {
	source, err := p.toolhive(s.toolhive, func(text string) { fmt.Fprintf(p.stderr, "mcsh: %s\n", text) })
	if source == nil || err != nil {
		return nil, err
	}
	return []upstream.Source{source}, nil
}

// toolhive makes the source, or none.
func (p *program) toolhive(t toolhiveFlags, told func(text string)) (*toolhive.Source, error) {
	o := toolhive.Options{Proxy: http.ProxyFromEnvironment, Discovery: p.discoveryFile(), Container: inContainer(), Told: told}
	from := "--toolhive"
	mode := t.mode
	if mode == "" {
		mode, from = cmp.Or(p.env[toolhiveVariable], toolhiveAuto), toolhiveVariable
	}
	switch mode {
	case toolhiveOff:
		return nil, nil
	case toolhiveAuto:
		o.URL, o.URLFrom, o.Host = p.toolhiveFromEnvironment()
	default:
		o.URL, o.URLFrom = mode, from
	}
	o.Filter = toolhive.Filter{Groups: t.groups, Names: t.names, Labels: t.labels}
	if groups := p.env[toolhiveGroupVariable]; len(t.groups) == 0 && groups != "" {
		o.Filter.Groups = strings.Split(groups, ",")
	}
	err := p.toolhiveHeaders(t, &o)
	if err == nil {
		var source *toolhive.Source
		if source, err = toolhive.New(o); err == nil {
			return source, nil
		}
	}
	return nil, usageError("mcsh serve --help shows what the flags take; --toolhive off leaves ToolHive out", "%w", err)
}

// toolhiveFromEnvironment is what the variables of ToolHive's own clients say: where its API is, which of them says
// so, and at which host to guess.
func (p *program) toolhiveFromEnvironment() (address, from, host string) {
	if address := p.env["TOOLHIVE_API_URL"]; address != "" {
		return address, "TOOLHIVE_API_URL", ""
	}
	host, port := p.env["TOOLHIVE_HOST"], p.env["TOOLHIVE_PORT"]
	if port == "" {
		return "", "", host
	}
	return "http://" + net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), "TOOLHIVE_PORT", ""
}

// discoveryFile is where a running ToolHive says where its API is.
func (p *program) discoveryFile() string {
	state := p.env["XDG_STATE_HOME"]
	home := p.env["HOME"]
	switch {
	case filepath.IsAbs(state):
	case runtime.GOOS == "windows":
		state = p.env["LOCALAPPDATA"]
	case home == "":
		return ""
	case runtime.GOOS == "darwin":
		state = filepath.Join(home, "Library", "Application Support")
	default:
		state = filepath.Join(home, ".local", "state")
	}
	if state == "" {
		return ""
	}
	return filepath.Join(state, "toolhive", "server", "server.json")
}

// inContainer reports whether docker or podman has started this process.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// toolhiveHeaders reads the flags for headers. Secrets come from the environment: ${NAME} in a value.
func (p *program) toolhiveHeaders(t toolhiveFlags, o *toolhive.Options) (err error) {
	o.APIHeaders = http.Header{}
	for _, text := range t.apiHeaders {
		if err := p.header(o.APIHeaders, text); err != nil {
			return fmt.Errorf("--toolhive-api-header: %w", err)
		}
	}
	for _, text := range t.headers {
		names, text, ok := strings.Cut(strings.TrimSpace(text), " ")
		h := toolhive.Headers{Workload: names, Header: http.Header{}}
		if !ok || strings.HasSuffix(names, ":") {
			return fmt.Errorf("--toolhive-header: want 'NAMES Header: value', where NAMES is a glob of workloads")
		}
		if err := p.header(h.Header, text); err != nil {
			return fmt.Errorf("--toolhive-header: %w", err)
		}
		o.Headers = append(o.Headers, h)
	}
	return nil
}

// header reads one header. Its errors show no value.
func (p *program) header(into http.Header, text string) error {
	name, value, ok := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	if !ok || !httpguts.ValidHeaderFieldName(name) {
		return errors.New("want 'Header: value'")
	}
	var missing []string
	value = os.Expand(strings.TrimSpace(value), func(variable string) string {
		if variable == "$" {
			return "$"
		}
		v, ok := p.lookup(variable)
		if !ok {
			missing = append(missing, variable)
		}
		return v
	})
	switch {
	case len(missing) > 0:
		return fmt.Errorf("header %s: the variable %s is not set", name, missing[0])
	case !httpguts.ValidHeaderFieldValue(value):
		return fmt.Errorf("header %s: its value cannot be sent", name)
	}
	into.Set(name, value)
	return nil
}

// checkToolHive says whether there is a ToolHive, and what of it is used.
func checkToolHive(ctx context.Context, d *diagnosis) []finding {
	source, err := d.program.toolhive(d.settings.toolhive, nil)
	switch {
	case err != nil:
		return []finding{{Status: statusFailed, Text: err.Error()}}
	case source == nil:
		return []finding{{Status: statusNote, Text: "it is not looked for (--toolhive " + toolhiveOff + ")"}}
	}
	servers, err := source.Servers(ctx)
	if err != nil {
		return []finding{{Status: statusWarning, Text: err.Error()}}
	}
	s := source.State()
	switch {
	case s.Absent:
		return []finding{{
			Status: statusNote, Text: "there is none here", Hint: "thv serve starts its API, or give the address: --toolhive URL",
		}}
	case s.Err != nil:
		return []finding{{Status: statusWarning, Text: s.Err.Error(), Hint: "docs/toolhive.md says where it is looked for"}}
	}
	return []finding{{
		Status: statusOK, Text: fmt.Sprintf("%s at %s (%s): %d workloads, %d of them are servers here", s.Version, s.Place, s.How, s.Listed, len(servers)),
	}}
}
