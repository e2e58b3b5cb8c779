package docker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/mcsh-dev/mcsh/internal/lazy"
)

// A Status is what an engine says of itself, and of what is ours on it.
type Status struct {
	Host    string `json:"host"`
	Name    string `json:"name"`    // "Docker 20.10.24", "Podman Engine 4.3.1"
	API     string `json:"api"`     // the version that both ends speak
	Runtime string `json:"runtime"` // what starts containers, such as "runc 1.1.5"; empty if the engine does not say
	Cgroup  string `json:"cgroup"`  // "1" or "2"

	Rootless bool `json:"rootless"`

	Image   string `json:"image"`              // the image that was asked for
	ImageID string `json:"image_id,omitempty"` // empty: the engine does not have it

	Containers []Container `json:"containers"` // those of ours

	cpus int // of its machine
}

// A Container is one of ours.
type Container struct {
	ID      string    `json:"id"`
	Image   string    `json:"image"`
	State   string    `json:"state"` // "created", "running", ...
	Created time.Time `json:"created"`

	Role     string `json:"role"`     // what it is for
	Instance string `json:"instance"` // the gateway that has made it
}

// runtimes are what starts the containers of an engine, and number a version among other words.
var (
	runtimes = []string{"runc", "crun"}
	number   = lazy.Regexp(`\d+\.\d\S*`)
)

// Status asks the engine.
func (e *Engine) Status(ctx context.Context, image string) (Status, error) {
	s := Status{Host: e.Host(), API: e.APIVersion(), Image: image, Containers: []Container{}}
	version, err := e.api.ServerVersion(ctx)
	if err != nil {
		return s, fault("asking for the engine's version", err)
	}
	s.Name = "Docker " + version.Version
	for _, c := range version.Components {
		name := strings.ToLower(c.Name)
		if strings.Contains(name, "podman") {
			s.Name = c.Name + " " + c.Version
		}
		for _, runtime := range runtimes {
			if strings.Contains(name, runtime) {
				s.Runtime = runtime + " " + number().FindString(c.Version)
			}
		}
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return s, fault("asking for the engine's settings", err)
	}
	s.Cgroup, s.cpus = info.CgroupVersion, info.NCPU
	for _, option := range info.SecurityOptions {
		s.Rootless = s.Rootless || strings.Contains(option, "rootless")
	}
	if s.ImageID, err = e.ImageID(ctx, image); err != nil && !errors.Is(err, ErrNoImage) {
		return s, err
	}
	s.Containers, err = e.ours(ctx)
	return s, err
}

// ours lists the containers of ours, of this process or not.
func (e *Engine) ours(ctx context.Context) ([]Container, error) {
	list, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelRole))})
	if err != nil {
		return nil, fault("listing the containers", err)
	}
	found := []Container{}
	for _, c := range list {
		found = append(found, Container{
			ID: c.ID, Image: c.Image, State: c.State, Created: time.Unix(c.Created, 0).UTC(),
			Role: c.Labels[labelRole], Instance: c.Labels[labelInstance],
		})
	}
	return found, nil
}

// fixedRunc are the first releases of runc, by minor version, in which a container cannot get out by racing the mounts
// of its start (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881). 1.1 and before got none.
var fixedRunc = map[[2]int]release{
	{1, 2}: {8, 0},
	{1, 3}: {3, 0},
	{1, 4}: {0, 3},
}

// A release is the rest of a version: "1.4.0-rc.3" is {0, 3}, and 0 stands for no candidate.
type release struct{ patch, candidate int }

var runcVersion = lazy.Regexp(`^runc (\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-rc\.?(\d{1,6}))?`)

// OldRunc reports whether a [Status.Runtime] is a runc with known ways out of a container. Distributions may have
// fixed theirs without another number. Other runtimes are not known to have them.
func OldRunc(runtime string) bool {
	m := runcVersion().FindStringSubmatch(runtime)
	if m == nil {
		return false
	}
	var n [4]int
	for i, digits := range m[1:] {
		n[i], _ = strconv.Atoi(digits) // at most six digits, or no candidate
	}
	fixed, ok := fixedRunc[[2]int{n[0], n[1]}]
	switch {
	case !ok:
		return n[0] < 1 || n[0] == 1 && n[1] < 2
	case n[2] != fixed.patch:
		return n[2] < fixed.patch
	}
	return m[4] != "" && (fixed.candidate == 0 || n[3] < fixed.candidate)
}
