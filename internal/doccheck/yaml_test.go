//go:build unix

package doccheck

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// A manifest is what the test reads of a Deployment.
type manifest struct {
	Kind string `yaml:"kind"`
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Args []string `yaml:"args"`
				} `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

// TestYAML: the YAML in documents is well formed, and a Deployment gives its pods more time than drain and grace take.
func TestYAML(t *testing.T) {
	root := filepath.Join("..", "..")
	deployments := 0
	for _, name := range documents(t, root) {
		for n, block := range yamlBlocks(read(t, name)) {
			decoder := yaml.NewDecoder(strings.NewReader(block))
			for {
				var node yaml.Node
				err := decoder.Decode(&node)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Errorf("%s, block %d of YAML: %v", name, n+1, err)
					break
				}
				var m manifest
				if node.Decode(&m) != nil || m.Kind != "Deployment" {
					continue // it has another form
				}
				deployments++
				if took := endTime(t, m); took >= time.Duration(m.Spec.Template.Spec.Grace)*time.Second {
					t.Errorf("%s: a pod ends within %v and gets %d s", name, took, m.Spec.Template.Spec.Grace)
				}
			}
		}
	}
	if deployments == 0 {
		t.Error("no document shows a Deployment")
	}
}

// endTime returns how long the drain and the grace of a Deployment take.
func endTime(t *testing.T, m manifest) (sum time.Duration) {
	t.Helper()
	for _, c := range m.Spec.Template.Spec.Containers {
		for _, flag := range []string{"--drain", "--grace"} {
			at := slices.Index(c.Args, flag)
			if at < 0 || at+1 == len(c.Args) {
				t.Fatalf("a Deployment gives no %s: %q", flag, c.Args)
			}
			d, err := time.ParseDuration(c.Args[at+1])
			if err != nil {
				t.Fatal(err)
			}
			sum += d
		}
	}
	return sum
}

// yamlBlocks returns the blocks of a document that are marked yaml.
func yamlBlocks(document string) (blocks []string) {
	var open *strings.Builder
	for line := range strings.Lines(document) {
		mark, info := fenceOf(strings.TrimSuffix(line, "\n"))
		switch {
		case open != nil && mark != "":
			blocks, open = append(blocks, open.String()), nil
		case open != nil:
			open.WriteString(line)
		case mark != "" && info == "yaml":
			open = &strings.Builder{}
		}
	}
	return blocks
}
