package cli

import (
	"os"
	"testing"
)

// TestDoctorLogin: doctor uses a sign-in, and says how to get one.
func TestDoctorLogin(t *testing.T) {
	s := newAuthorizationServer(t)
	p := newPerson(t, `{"mcpServers": {"box": {"url": "`+s.URL+`/mcp"}}}`)
	p.run(exitConfig, `server "box": signed out: run mcsh login box`, "doctor", "--sandbox", "off")
	t.Setenv(browses, "1")
	p.env = append(p.env, "BROWSER="+os.Args[0])
	p.run(0, "signed in to box", "login", "box")
	p.run(0, `ok       servers   box: `, "doctor", "--sandbox", "off")
	p.run(exitConfig, "run mcsh login box", "doctor", "--sandbox", "off", "--state", p.t.TempDir())
	p.run(exitConfig, "the server wants sign-in: set", "doctor", "--sandbox", "off", "--state", "off")
}
