package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsh-dev/mcsh/auth/oidc"
	"github.com/mcsh-dev/mcsh/auth/tokens"
	"github.com/mcsh-dev/mcsh/internal/lazy"
	"github.com/mcsh-dev/mcsh/internal/namedfile"
	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
	"github.com/mcsh-dev/mcsh/sandbox/programs"
	"github.com/mcsh-dev/mcsh/upstream/clients"
	"github.com/mcsh-dev/mcsh/upstream/config"
)

// A status rates a finding.
type status string

// Only statusFailed means that pipelines cannot run.
const (
	statusOK      status = "ok"
	statusNote    status = "note"
	statusWarning status = "warning"
	statusFailed  status = "failed"
)

// A finding is one line of the doctor's report.
type finding struct {
	Check  string `json:"check"` // the name of the check
	Status status `json:"status"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// A check is a row of the doctor's table.
type check struct {
	name string
	run  func(ctx context.Context, d *diagnosis)
}

// checks lists the checks in the order of the report. Later checks use results of earlier ones.
var checks = []check{
	{"system", checkSystem},
	{"engine", checkEngine},
	{"backends", checkBackends},
	{"commands", checkCommands},
	{"programs", checkPrograms},
	{"toolhive", checkToolHive},
	{"config", checkConfig},
	{"servers", checkServers},
	{"clients", checkClients},
	{"callers", checkCallers},
	{"store", checkStore},
	{"temporal", checkTemporal},
}

// A diagnosis is the shared state of the checks.
type diagnosis struct {
	program  *program
	settings settings
	backends []backend // of the settings
	findings []finding

	report *sandbox.Report // of the first usable backend; nil: none. Set by checkBackends.
}

// add adds a finding, whose hint may be empty.
func (d *diagnosis) add(s status, hint, format string, args ...any) {
	d.findings = append(d.findings, finding{Status: s, Text: fmt.Sprintf(format, args...), Hint: hint})
}

type doctorJSON struct {
	Usable   bool         `json:"usable"` // no check failed
	Findings []finding    `json:"findings"`
	Sandbox  *sandboxJSON `json:"sandbox,omitempty"`
}

func (p *program) doctorCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what works on this machine, and what is missing",
		Long: `Check everything that pipelines need. Report what works, what is weaker than it could be and what is missing, with a
remedy. Nothing is changed, but the shared store gets an object for a moment.

Exit status: 0 pipelines with commands can run and all servers answer, 2 something is missing.`,
		Args: cobra.NoArgs,
	}
	return command(cmd, func(ctx context.Context, _ []string) error { return p.doctor(ctx, s) },
		s.addSources, s.durable.addEngine, s.addStateFlag, p.sandboxFlags(&s.sandbox), p.jsonFlag("print one JSON object"))
}

// doctor runs the checks and prints their findings.
func (p *program) doctor(ctx context.Context, s settings) error {
	s.sandbox.warm, s.look = 0, true
	_ = p.addCommands(ctx, &s) // checkServers reports a mistake
	d := &diagnosis{program: p, settings: s, backends: s.sandbox.allowed, findings: []finding{}}
	result := doctorJSON{Usable: true}
	for _, c := range checks {
		before := len(d.findings)
		c.run(ctx, d)
		for i := range d.findings[before:] {
			f := &d.findings[before+i]
			f.Check = cmp.Or(f.Check, c.name)
			result.Usable = result.Usable && f.Status != statusFailed
			if !p.json {
				p.print(nil, f.text())
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	result.Findings = d.findings
	if d.report != nil {
		list := describeSandbox(*d.report)
		result.Sandbox = &list
	}
	p.print(result, "")
	if !result.Usable {
		return reportedStatus(exitConfig)
	}
	return nil
}

// text returns the finding for people.
func (f finding) text() string {
	text := fmt.Sprintf("%-8s %-9s %s\n", f.Status, f.Check, indented(f.Text))
	if f.Hint != "" {
		text += strings.Repeat(" ", 19) + "do: " + indented(f.Hint) + "\n"
	}
	return text
}

// indented aligns the further lines of a text, so that the text of a server cannot look like a finding.
func indented(text string) string {
	return strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", 23))
}

// checkSystem describes the machine and checks that temporary files have a directory.
func checkSystem(_ context.Context, d *diagnosis) {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kernel := cmp.Or(strings.TrimSpace(string(release)), "unknown")
	d.add(statusOK, "", "mcsh %s on %s/%s, kernel %s, %s", version(), runtime.GOOS, runtime.GOARCH, kernel, cgroups())
	if d.program.scratchDir() == "" {
		d.add(statusWarning, "mount a writable directory at /tmp, or name one in TMPDIR",
			"there is not a directory for temporary files: %s cannot be written", strings.Join(scratchDirs, ", "))
	}
}

func cgroups() string {
	const dir = "/sys/fs/cgroup"
	if _, err := os.Stat(dir + "/cgroup.controllers"); err == nil { // exists only in version 2
		return "control groups version 2"
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "control groups version 1"
	}
	return "no control groups to be seen"
}

// checkEngine describes the container engine. A missing engine is only a note, because another backend may work.
func checkEngine(ctx context.Context, d *diagnosis) {
	s := d.settings.sandbox
	engine, err := docker.Connect(ctx, s.engine())
	if err != nil {
		d.add(statusNote, "", "%v", err)
		return
	}
	defer engine.Close()
	e, err := engine.Status(ctx, s.image)
	if err != nil {
		d.add(statusWarning, "", "%v", err)
		return
	}
	d.add(statusOK, "", "%s", engineLine(e))
	if docker.OldRunc(e.Runtime) {
		d.add(statusWarning, "update it to 1.2.8, 1.3.3 or later",
			"%s has known ways out of a container (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881), unless the distribution has fixed it", e.Runtime)
	}
	if e.ImageID == "" {
		d.add(statusNote, s.buildCommand(), "it does not have the image %s", e.Image)
		return
	}
	d.add(statusOK, "", "it has the image %s", e.Image)
}

// engineLine describes an engine in one line.
func engineLine(e docker.Status) string {
	line := fmt.Sprintf("%s at %s, API %s", e.Name, e.Host, e.API)
	if e.Runtime != "" {
		line += ", " + e.Runtime
	}
	if e.Cgroup != "" {
		line += ", control groups version " + e.Cgroup
	}
	if e.Rootless {
		line += ", rootless"
	}
	return line
}

// checkBackends tries every backend that the settings allow.
func checkBackends(ctx context.Context, d *diagnosis) {
	s := d.settings.sandbox
	var active activeBackend
	for _, b := range d.backends {
		var err error
		active.pool, err = b.open(ctx, d.program, s)
		switch {
		case err == nil:
			r := active.report()
			d.report = cmp.Or(d.report, &r)
			d.describeBackend(r, active.pool.Close())
		case noEngine(err, s):
			d.add(statusNote, "", "%s cannot be used: %v", b.name, err)
		default:
			active.passOver(b, err)
			d.add(statusWarning, "", "%s cannot be used: %v", b.name, err)
		}
	}
}

// lackNotes say which weaker limits hold if a backend lacks a requirement.
var lackNotes = map[string]string{
	"memory-limit":    "each process has a limit, and each run a budget; the worker with all its processes has none",
	"process-limit":   "each run has a limit; the worker with all its processes has none",
	"no-capabilities": "the worker has some; programs have none",
	"no-network":      "the worker sees network interfaces; programs cannot open a socket",
}

// describeBackend describes how a backend isolates commands.
func (d *diagnosis) describeBackend(r sandbox.Report, closing error) {
	d.add(statusOK, "", "%s, run by user %d", sandboxLine(r), r.UID)
	for _, gap := range r.Gaps {
		d.add(statusNote, "", "%s: %s", r.Backend, gap)
	}
	if lacks := r.Lacks(sandbox.Requirements()); len(lacks) > 0 {
		for i, name := range lacks {
			if note := lackNotes[name]; note != "" {
				lacks[i] += " (" + note + ")"
			}
		}
		d.add(statusNote, "", "%s does not give: %s", r.Backend, strings.Join(lacks, ", "))
	}
	if closing != nil {
		d.add(statusWarning, "", "%s: ending it: %v", r.Backend, closing)
	}
}

// checkCommands reports whether commands can run, and in which backend.
func checkCommands(_ context.Context, d *diagnosis) {
	switch {
	case d.report != nil:
		d.add(statusOK, "", "they run in %s, profile %s", d.report.Backend, d.report.Profile)
	case len(d.backends) == 0:
		d.add(statusNote, "", "no command can run: %v", errSandboxOff)
	default:
		d.add(statusFailed, "fix one of the backends above, or go without commands: --sandbox "+backendOff, "no command can run here")
	}
}

// checkPrograms lists the missing programs and the packages that contain them.
func checkPrograms(_ context.Context, d *diagnosis) {
	if d.report == nil {
		return
	}
	var missing []sandbox.Availability
	var packages []string
	for _, a := range d.report.Programs {
		if a.Refusal == "" {
			continue
		}
		missing = append(missing, a)
		if a.Package != "" && d.report.Landlock > 0 && !slices.Contains(packages, a.Package) {
			packages = append(packages, a.Package)
		}
	}
	d.add(statusOK, "", "%d of %d can be used", len(d.report.Programs)-len(missing), len(d.report.Programs))
	last := 0 // of those that a package brings
	for _, a := range missing {
		hint := ""
		if _, ours := programs.Find(a.Name); !ours {
			hint = "correct it in the configuration, or install it where commands run: docs/configuration.md, Commands of your own"
		} else {
			last = len(d.findings)
		}
		d.add(statusWarning, hint, "%s is not available: %s", a.Name, a.Refusal)
	}
	if len(packages) > 0 {
		d.findings[last].Hint = "where the commands run, on Debian: apt-get install " + strings.Join(packages, " ")
	}
}

// bareVariable matches a shell variable in a JSON string, which configurations do not replace.
var bareVariable = lazy.Regexp(`"(?:[^"\\]*[^"\\$])?\$([A-Z_][A-Z0-9_]*)[^"]*"`)

// checkConfig lists the configuration files and finds values that look like variables. checkServers reports errors in the
// files.
func checkConfig(_ context.Context, d *diagnosis) {
	files := d.program.configFiles(d.settings)
	if len(files) == 0 {
		d.add(statusNote, "mcsh import takes the servers of other MCP clients", "there is no configuration: the built-in servers are there")
	}
	for _, path := range files {
		data, err := namedfile.Read(path, config.MaxFile)
		if err != nil {
			continue // checkServers reports it
		}
		d.add(statusOK, "", "%s is read", path)
		for i, line := range bytes.Split(data, []byte("\n")) {
			for _, m := range bareVariable().FindAllSubmatch(line, -1) {
				d.add(statusWarning, fmt.Sprintf("write ${%s}, or $$%s where a dollar sign is meant", m[1], m[1]),
					"%s:%d: $%s is not replaced here", path, i+1, m[1])
			}
		}
	}
}

// checkClients finds clients that have the gateway and other servers beside it, which an agent would call directly.
func checkClients(_ context.Context, d *diagnosis) {
	places, err := d.program.places()
	if err != nil {
		d.add(statusNote, "", "%v", err)
		return
	}
	before := len(d.findings)
	for _, c := range clients.All() {
		for _, path := range c.Files(places) {
			others, gateway, _ := gatewayIn(c, path)
			switch {
			case !gateway:
			case len(others) == 0:
				d.add(statusOK, "", "%s has the gateway (%s)", c.Title, path)
			default:
				d.add(statusWarning, fmt.Sprintf("mcsh import %s gives them to the gateway; then take them out there", c.Name),
					"%s has %s beside the gateway (%s): an agent calls those directly and carries what they return", c.Title, strings.Join(others, ", "), path)
			}
		}
	}
	if len(d.findings) == before {
		d.add(statusNote, "mcsh connect CLIENT writes it into the client's file; mcsh connect lists the clients", "no MCP client has the gateway yet")
	}
}

// checkCallers checks the file of tokens and the issuer, if variables name them.
func checkCallers(ctx context.Context, d *diagnosis) {
	if path := d.program.env[tokensVariable]; path != "" {
		file, err := tokens.Open(path, tokens.Options{Notify: func(text string) { d.add(statusWarning, "", "%s", text) }})
		if err != nil {
			d.add(statusFailed, tokens.Hint(err), "$%s: %v", tokensVariable, err)
		} else {
			d.add(statusOK, "", "%s is read, tokens: %d", path, file.Len())
		}
	}
	address := d.program.env[issuerVariable]
	if address == "" {
		return
	}
	issuer, err := oidc.New(oidc.Options{Issuer: address, Audience: d.program.env[audienceVariable], Proxy: http.ProxyFromEnvironment})
	if err == nil {
		err = issuer.Check(ctx)
	}
	if err == nil {
		d.add(statusOK, "", "the issuer %s answers, and its keys are available", address)
	} else {
		d.add(statusFailed, "give the issuer as its tokens name it (iss), and $"+audienceVariable+"; docs/authentication.md says more", "$%s: %v", issuerVariable, err)
	}
}
