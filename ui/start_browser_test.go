//go:build !race

package ui_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// shoot writes a picture into the folder $UITEST_SHOTS, for people who want to look at it.
func shoot(p *uitest.Page, name string, v uitest.View) {
	if dir := os.Getenv("UITEST_SHOTS"); dir != "" {
		p.Screenshot(filepath.Join(dir, name), v)
	}
}

// document writes a picture of docs/console.md, with UPDATE=1.
func document(p *uitest.Page, name string, dark bool) {
	if os.Getenv("UPDATE") != "" {
		p.Screenshot(filepath.Join("..", "docs", "console", name), uitest.View{Width: 1180, Height: 660, Dark: dark})
	}
}

// TestStartPage: the page shows runs and calls while they come, without being loaded again.
func TestStartPage(t *testing.T) {
	g := uitest.Serve(t)
	p := uitest.Open(t, g.URL)
	p.See("#start-runs", "No run yet")
	p.Axe()
	shoot(p, "start-empty.png", uitest.View{Width: 1440, Height: 900})
	uitest.Value[bool](p, "window.same = true")
	for _, pipeline := range []string{ // a call that fails, too
		`[{"type":"tool","server":"demo","name":"list_orders"},{"type":"command","command":"jq","args":[".orders | length"]}]`,
		`[{"type":"tool","server":"demo","name":"list_orders"}]`,
		`[{"type":"tool","server":"demo","name":"get_customer","args":{"id":"nobody"}}]`,
	} {
		g.Call(t, "", "execute_pipeline", `{"pipeline":`+pipeline+`}`)
	}
	p.Until(`document.querySelectorAll("#start-runs tbody tr").length === 3 && window.same`)
	p.See("#start-figures", "3\ncalls in 15 minutes")
	p.Axe()
	shoot(p, "start-light.png", uitest.View{Width: 1440, Height: 900})
	document(p, "overview-light.png", false)
	document(p, "overview-dark.png", true)
	shoot(p, "start-dark.png", uitest.View{Width: 1440, Height: 900, Dark: true})
	shoot(p, "start-narrow.png", uitest.View{Width: 360, Height: 740})
}
