// Package browser lets a person answer in a browser: it opens an address there, and receives the address that the browser is
// redirected to. It knows nothing of OAuth.
package browser

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// ErrNone is the error of a machine on which no browser can be opened.
var ErrNone = errors.New("there is no browser")

// openers are the programs of each platform that open an address in the user's browser, the first that is there counts.
var openers = map[string][][]string{
	"darwin":  {{"open"}},
	"windows": {{"rundll32", "url.dll,FileProtocolHandler"}},
	"linux":   {{"xdg-open"}, {"gio", "open"}, {"wslview"}},
	"freebsd": {{"xdg-open"}},
}

// screens are the variables of platforms whose openers need a screen. Without one, xdg-open takes the terminal for a text
// browser.
var screens = map[string][]string{
	"linux":   {"DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"},
	"freebsd": {"DISPLAY", "WAYLAND_DISPLAY"},
}

// An Opener opens addresses in the user's browser. The zero value has none.
type Opener struct{ command []string }

// Find returns the opener of a platform: $BROWSER if it is set, or else the first of the platform. The error wraps [ErrNone].
func Find(platform string, env map[string]string) (Opener, error) {
	candidates := openers[platform]
	if names := screens[platform]; names != nil && !anySet(env, names) {
		candidates = nil
	}
	if named := env["BROWSER"]; named != "" {
		candidates = nil
		for one := range strings.SplitSeq(named, ":") { // as xdg-open reads it
			if words := strings.Fields(one); len(words) > 0 {
				candidates = append(candidates, words)
			}
		}
	}
	for _, words := range candidates {
		if path, err := exec.LookPath(words[0]); err == nil {
			return Opener{append([]string{path}, words[1:]...)}, nil
		}
	}
	return Opener{}, ErrNone
}

func anySet(env map[string]string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return env[name] != "" })
}

// Open starts the opener with an address, which begins with http:// or https://. The browser outlives this process. failed is
// called if the opener ends with an error, at any time.
func (o Opener) Open(address string, failed func(error)) error {
	if len(o.command) == 0 {
		return ErrNone
	}
	if !strings.HasPrefix(address, "https://") && !strings.HasPrefix(address, "http://") {
		return errors.New("this is not an address for a browser")
	}
	cmd := exec.Command(o.command[0], o.arguments(address)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C of the terminal is not for the browser
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { // some openers end at once, others with the browser
		if err := cmd.Wait(); err != nil {
			failed(fmt.Errorf("%s: %w", o.command[0], err))
		}
	}()
	return nil
}

// arguments puts the address where the command has %s, or at its end.
func (o Opener) arguments(address string) []string {
	words, put := []string{}, false
	for _, word := range o.command[1:] {
		put = put || strings.Contains(word, "%s")
		words = append(words, strings.ReplaceAll(word, "%s", address))
	}
	if !put {
		words = append(words, address)
	}
	return words
}
