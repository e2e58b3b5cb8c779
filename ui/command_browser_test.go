//go:build !race

package ui_test

import (
	"bufio"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mcsh-dev/mcsh/ui/uitest"
)

// command starts mcsh console and returns the address that it prints.
func command(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(uitest.Binary(t), append([]string{"console", "--no-open"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "MCSH_CONFIG=")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // its status says nothing to the test
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "http://") {
			return lines.Text()
		}
	}
	t.Fatal("mcsh console has printed no address")
	return ""
}

// TestConsoleCommand: mcsh console leads one browser to the gateways of its user, and nobody else.
func TestConsoleCommand(t *testing.T) {
	g := uitest.Serve(t)
	address := command(t, "--state", g.State)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := uitest.Open(t, address)
	p.Allow("50") // answers 502 and 503 of a gateway that has ended
	p.Allow("404")
	p.Until(`/^\/[A-Z2-7]+\/g\//.test(location.pathname) && !location.search`)
	p.Do(chromedp.Click(`nav a[href="system"]`))
	p.See("#system-state", "Sandbox")
	p.Until(`(window.first ||= document.querySelector("#system-state")) && !window.first.isConnected`) // its events come
	inside := uitest.Value[string](p, "location.href")
	for _, other := range []string{address, inside, "http://" + at.Host + "/"} {
		res, err := http.Get(other)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s without the cookie: %s", other, res.Status)
		}
	}
	second := uitest.ServeAt(t, "127.0.0.1:0", g.State)
	list, _, _ := strings.Cut(inside, "g/")
	p.Go(list)
	p.Until(`document.querySelectorAll(".choice").length === 2`)
	p.Axe()
	second.End()
	g.End()
	p.Go(inside)
	p.See("main", "This gateway has ended")
	p.See("main", "No gateway of yours is running")
}

// TestConsoleStartsGateway: without a gateway the command starts one, which other users of the machine cannot reach.
func TestConsoleStartsGateway(t *testing.T) {
	p := uitest.Open(t, command(t, "--state", t.TempDir()))
	p.Until(`/^\/[A-Z2-7]+\/g\//.test(location.pathname)`)
	p.Go(uitest.Value[string](p, `new URL("system", document.baseURI).href`))
	p.See("#system-state", "Sandbox")
	p.See(".gateway", "stdio")
}
