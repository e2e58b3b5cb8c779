package ui_test

import (
	"os"
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
