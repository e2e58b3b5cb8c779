package ui_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// shots returns the directory for pictures, or "".
func shots(name string) string {
	if dir := os.Getenv("UITEST_SHOTS"); dir != "" {
		return filepath.Join(dir, name)
	}
	return ""
}

// shoot writes a picture where somebody wants pictures.
func shoot(p *uitest.Page, name string, v uitest.View) {
	if path := shots(name); path != "" {
		p.Screenshot(path, v)
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
	for _, pipeline := range []string{
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
	shoot(p, "start-dark.png", uitest.View{Width: 1440, Height: 900, Dark: true})
	shoot(p, "start-narrow.png", uitest.View{Width: 360, Height: 740})
}
