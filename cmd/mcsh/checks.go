package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/mcsh-dev/mcsh/sandbox"
	"github.com/mcsh-dev/mcsh/sandbox/docker"
)

// Files by which Linux tells what it is.
const (
	kernelFile  = "/proc/sys/kernel/osrelease"
	cgroupsTwo  = "/sys/fs/cgroup/cgroup.controllers" // there is one in version 2 only
	cgroupsDir  = "/sys/fs/cgroup"
	noCgroups   = "no control groups to be seen"
	cgroupTwo   = "control groups version 2"
	cgroupOne   = "control groups version 1"
	unknownText = "unknown"
)

// checkSystem says what the machine is, and where temporary files go.
func checkSystem(_ context.Context, d *diagnosis) []finding {
	kernel := unknownText
	if text, err := os.ReadFile(kernelFile); err == nil {
		kernel = strings.TrimSpace(string(text))
	}
	found := []finding{{
		Status: statusOK,
		Text:   fmt.Sprintf("mcsh %s on %s/%s, kernel %s, %s", version(), runtime.GOOS, runtime.GOARCH, kernel, cgroups()),
	}}
	if d.program.scratchDir() == "" {
		found = append(found, finding{
			Status: statusWarning, Text: "there is no directory for temporary files: " + strings.Join(scratchDirs, ", ") + " cannot be written",
			Hint: "mount a writable directory at /tmp, or name one in TMPDIR",
		})
	}
	return found
}

func cgroups() string {
	if _, err := os.Stat(cgroupsTwo); err == nil {
		return cgroupTwo
	}
	if entries, err := os.ReadDir(cgroupsDir); err == nil && len(entries) > 0 {
		return cgroupOne
	}
	return noCgroups
}

// checkEngine says which container engine there is. That there is none matters to the backend only.
func checkEngine(ctx context.Context, d *diagnosis) []finding {
	s := d.settings.sandbox
	engine, err := docker.Connect(ctx, s.engine())
	if err != nil {
		return []finding{{Status: statusNote, Text: err.Error()}}
	}
	defer engine.Close()
	e, err := engine.Status(ctx, s.image)
	if err != nil {
		return []finding{{Status: statusWarning, Text: err.Error()}}
	}
	found := []finding{{Status: statusOK, Text: engineLine(e)}}
	if docker.OldRunc(e.Runtime) {
		found = append(found, finding{
			Status: statusWarning,
			Text:   e.Runtime + " has known ways out of a container (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881), unless the distribution has mended it",
			Hint:   "update it to 1.2.8, 1.3.3 or later",
		})
	}
	image := finding{Status: statusOK, Text: "it has the image " + e.Image}
	if e.ImageID == "" {
		image = finding{Status: statusNote, Text: "it does not have the image " + e.Image, Hint: s.buildCommand()}
	}
	return append(found, image)
}

// engineLine says in one line what an engine is.
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

// checkBackends tries every backend that may be used.
func checkBackends(ctx context.Context, d *diagnosis) []finding {
	s := d.settings.sandbox
	if s.backend == backendOff {
		d.why = errSandboxOff
		return nil
	}
	var found []finding
	var passed []failedBackend
	for _, b := range backends {
		if s.backend != backendAuto && s.backend != b.name {
			continue
		}
		pool, err := b.open(ctx, d.program, s, oneRun)
		if err != nil {
			d.why = err
			f := b.failed(err, s)
			passed = append(passed, f)
			found = append(found, finding{Status: statusWarning, Text: fmt.Sprintf("%s cannot be used: %v", b.name, err)})
			if !f.news {
				found[len(found)-1].Status = statusNote
			}
			continue
		}
		o := opening{pool, passed}
		r := o.report()
		if d.report == nil {
			d.report = &r
		}
		found = append(found, describeBackend(r, pool.Close())...)
	}
	return found
}

// describeBackend says how a backend holds commands.
func describeBackend(r sandbox.Report, closing error) []finding {
	found := []finding{{Status: statusOK, Text: fmt.Sprintf("%s, run by user %d", sandboxLine(r), r.UID)}}
	for _, gap := range r.Gaps {
		found = append(found, finding{Status: statusNote, Text: r.Backend + ": " + gap})
	}
	if lacks := r.Lacks(sandbox.Requirements()); len(lacks) > 0 {
		found = append(found, finding{Status: statusNote, Text: fmt.Sprintf("%s does not give: %s", r.Backend, strings.Join(lacks, ", "))})
	}
	if closing != nil {
		found = append(found, finding{Status: statusWarning, Text: fmt.Sprintf("%s: ending it: %v", r.Backend, closing)})
	}
	return found
}

// checkCommands says whether commands can run, and in what.
func checkCommands(_ context.Context, d *diagnosis) []finding {
	switch {
	case d.report != nil:
		return []finding{{Status: statusOK, Text: fmt.Sprintf("they run in %s, profile %s", d.report.Backend, d.report.Profile)}}
	case errors.Is(d.why, errSandboxOff):
		return []finding{{Status: statusNote, Text: "no command can run: " + d.why.Error()}}
	}
	return []finding{{
		Status: statusFailed, Text: "no command can run here",
		Hint: "mend one of the backends above, or go without commands: --sandbox " + backendOff,
	}}
}

// checkPrograms names the programs that are missing, by the package that brings them.
func checkPrograms(_ context.Context, d *diagnosis) []finding {
	if d.report == nil {
		return nil
	}
	var found []finding
	var packages []string
	usable := 0
	for _, a := range d.report.Programs {
		if a.Refusal == "" {
			usable++
			continue
		}
		found = append(found, finding{Status: statusWarning, Text: fmt.Sprintf("%s is not available: %s", a.Name, a.Refusal)})
		if a.Package != "" && d.report.Landlock > 0 && !slices.Contains(packages, a.Package) {
			packages = append(packages, a.Package)
		}
	}
	if len(packages) > 0 {
		found[len(found)-1].Hint = "where the commands run, on Debian: apt-get install " + strings.Join(packages, " ")
	}
	return append([]finding{{Status: statusOK, Text: fmt.Sprintf("%d of %d can be used", usable, len(d.report.Programs))}}, found...)
}
