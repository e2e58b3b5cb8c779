package cli

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
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpguts"

	"github.com/mcsh-dev/mcsh/upstream"
	"github.com/mcsh-dev/mcsh/upstream/toolhive"
)

// Values of --toolhive besides an address.
const (
	toolhiveAuto = "auto"
	toolhiveOff  = "off"
)

// Variables for flags that are not given.
const (
	toolhiveVariable      = "MCSH_TOOLHIVE"
	toolhiveGroupVariable = "MCSH_TOOLHIVE_GROUP"
)

type toolhiveFlags struct {
	mode                string
	filter              toolhive.Filter
	headers, apiHeaders []string
}

func (t *toolhiveFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.mode, "toolhive", "", "servers that ToolHive runs: auto (look for it), off, or the URL of its API (default auto; $"+toolhiveVariable+")")
	completeFlag(cmd, "toolhive", toolhiveAuto, toolhiveOff)
	f.StringArrayVar(&t.filter.Groups, "toolhive-group", nil, "only workloads of this group, a glob; !GLOB leaves out (repeatable; $"+toolhiveGroupVariable+" with commas)")
	f.StringArrayVar(&t.filter.Names, "toolhive-name", nil, "only workloads of this name, a glob; !GLOB leaves out (repeatable)")
	f.StringArrayVar(&t.filter.Labels, "toolhive-label", nil, "only workloads with this label, KEY or KEY=GLOB; !KEY=GLOB leaves out (repeatable)")
	f.StringArrayVar(&t.headers, "toolhive-header", nil, `header for workloads, 'NAMES Header: value', as in 'git* Authorization: Bearer ${TOKEN}' (repeatable)`)
	f.StringArrayVar(&t.apiHeaders, "toolhive-api-header", nil, "header for ToolHive's API, 'Header: value' (repeatable)")
}

// toolhiveSources returns the ToolHive source, unless it is off.
func toolhiveSources(_ context.Context, p *program, s settings) ([]upstream.Source, error) {
	source, err := p.toolhive(s.toolhive, func(text string) { fmt.Fprintf(p.stderr, "mcsh: %s\n", text) })
	if source == nil || err != nil {
		return nil, err
	}
	return []upstream.Source{source}, nil
}

// toolhive returns the source; nil: off.
func (p *program) toolhive(t toolhiveFlags, log func(text string)) (*toolhive.Source, error) {
	o := toolhive.Options{Proxy: http.ProxyFromEnvironment, Discovery: p.discoveryFile(), Container: inContainer(), Log: log}
	o.URL, o.URLFrom = t.mode, "--toolhive"
	if t.mode == "" {
		o.URL, o.URLFrom = cmp.Or(p.env[toolhiveVariable], toolhiveAuto), toolhiveVariable
	}
	switch o.URL {
	case toolhiveOff:
		return nil, nil
	case toolhiveAuto:
		o.URL, o.URLFrom = p.toolhiveFromEnvironment()
	}
	o.Filter = t.filter
	if groups := p.env[toolhiveGroupVariable]; len(t.filter.Groups) == 0 && groups != "" {
		o.Filter.Groups = strings.Split(groups, ",")
	}
	err := p.toolhiveHeaders(t, &o)
	source, wrong := toolhive.New(o)
	if err = cmp.Or(err, wrong); err != nil {
		return nil, usageError("mcsh serve --help shows what the flags take; --toolhive off leaves ToolHive out", "%w", err)
	}
	return source, nil
}

// toolhiveFromEnvironment returns the address that the variables of ToolHive's own clients give, and the variable.
func (p *program) toolhiveFromEnvironment() (address, from string) {
	host, port := p.env["TOOLHIVE_HOST"], p.env["TOOLHIVE_PORT"]
	switch {
	case p.env["TOOLHIVE_API_URL"] != "":
		return p.env["TOOLHIVE_API_URL"], "TOOLHIVE_API_URL"
	case port != "":
		return "http://" + net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), "TOOLHIVE_PORT"
	case host != "":
		return "http://" + net.JoinHostPort(host, "8080"), "TOOLHIVE_HOST"
	}
	return "", ""
}

// discoveryFile returns the file in which a running ToolHive publishes the address of its API, or "".
func (p *program) discoveryFile() string {
	state := p.stateHome()
	if home := p.env["HOME"]; runtime.GOOS == "darwin" && home != "" && !filepath.IsAbs(p.env["XDG_STATE_HOME"]) {
		state = filepath.Join(home, "Library", "Application Support")
	}
	if state == "" {
		return ""
	}
	return filepath.Join(state, "toolhive", "server", "server.json")
}

// inContainer reports whether this process runs in a docker or podman container.
func inContainer() bool {
	return slices.ContainsFunc([]string{"/.dockerenv", "/run/.containerenv"}, func(mark string) bool {
		_, err := os.Stat(mark)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// toolhiveHeaders parses the header flags. ${NAME} in a value is an environment variable, for secrets.
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

// header parses one header. Its errors show no value.
func (p *program) header(into http.Header, text string) error {
	name, value, ok := strings.Cut(text, ":")
	name = strings.TrimSpace(name)
	if !ok || !httpguts.ValidHeaderFieldName(name) {
		return errors.New("want 'Header: value'")
	}
	missing := ""
	value = os.Expand(strings.TrimSpace(value), func(variable string) string {
		if variable == "$" {
			return "$"
		}
		v, ok := p.env[variable]
		if !ok {
			missing = cmp.Or(missing, variable)
		}
		return v
	})
	switch {
	case missing != "":
		return fmt.Errorf("header %s: the variable %s is not set", name, missing)
	case !httpguts.ValidHeaderFieldValue(value):
		return fmt.Errorf("header %s: its value cannot be sent", name)
	}
	into.Set(name, value)
	return nil
}

// checkToolHive reports whether ToolHive was found, and how many of its workloads are used.
func checkToolHive(ctx context.Context, d *diagnosis) {
	source, err := d.program.toolhive(d.settings.toolhive, nil)
	if err != nil {
		d.add(statusFailed, "", "%v", err)
		return
	}
	if source == nil {
		d.add(statusNote, "", "it is not looked for (--toolhive "+toolhiveOff+")")
		return
	}
	servers, err := source.Servers(ctx)
	switch s := source.State(); {
	case err != nil:
		d.add(statusWarning, "", "%v", err)
	case s.Absent:
		d.add(statusNote, "thv serve starts its API, or give the address: --toolhive URL", "there is none here")
	case s.Err != nil:
		d.add(statusWarning, "docs/toolhive.md says where it is looked for", "%v", s.Err)
	default:
		d.add(statusOK, "", "%s at %s (%s): %d workloads, %d of them picked", s.Version, s.Address, s.From, s.Listed, len(servers))
	}
}
