//go:build !race

package ui_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

func TestMain(m *testing.M) { os.Exit(uitest.Main(m)) }

// TestSystemPage: the page shows the gateway, and follows it.
func TestSystemPage(t *testing.T) {
	g := uitest.Serve(t)
	p := uitest.Open(t, g.URL+"system")
	p.See("#system-state", "Sandbox")
	p.Until(`(window.first ||= document.querySelector("#system-state")) && !window.first.isConnected`) // it was swapped
	p.Axe()
	shoot(p, "system-light.png", uitest.View{Width: 1440, Height: 900})
	shoot(p, "system-dark.png", uitest.View{Width: 1440, Height: 900, Dark: true})
	shoot(p, "system-narrow.png", uitest.View{Width: 360, Height: 740})
}

// TestRestart: a page says that its gateway does not answer, and loads again when that has restarted.
func TestRestart(t *testing.T) {
	g := uitest.Serve(t)
	p := uitest.Open(t, g.URL+"system")
	p.Allow("ERR_")  // requests to a gateway that has ended
	p.Allow("htmx:") // its words about them
	p.Until(`(window.first ||= document.querySelector("#system-state")) && !window.first.isConnected`)
	g.End()
	p.See("#banner", "does not answer")
	uitest.ServeAt(t, strings.TrimSuffix(strings.TrimPrefix(g.URL, "http://"), "/"), g.State)
	p.Until(`!window.first && document.querySelector("#system-state")`)
}
