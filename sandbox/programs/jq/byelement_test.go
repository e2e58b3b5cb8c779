//go:build !race

package jq

import (
	"slices"
	"strings"
	"testing"
)

// TestByElement: reading arrays element by element changes nothing of what a program puts out.
func TestByElement(t *testing.T) {
	for _, filter := range programsByElement {
		for _, text := range append(slices.Clone(seeds), strings.Join(seeds[:8], "\n")) {
			for _, o := range layouts(filter) {
				byElement(t, o, text)
			}
		}
	}
}
