package uitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/mcsh-dev/mcsh/internal/parttest"
)

// patience is how long a test waits for what happens soon, also on a slow machine that does much else.
const patience = 2 * time.Minute

// A Page is a tab with cookies and storage of its own, in a browser that the tests of a package share.
type Page struct {
	t      testing.TB
	ctx    context.Context
	origin string // of the console; other origins must not be asked
	axe    string // path of axe-core

	mu      sync.Mutex
	wrong   []string // guarded by mu
	allowed []string // parts of messages that are no mistake, guarded by mu
}

// A chromium is a running browser.
type chromium struct {
	ctx context.Context
	end func()
}

// browser starts the browser of a package with its first page. [Main] ends it.
var browser = sync.OnceValues(func() (*chromium, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1440, 900), chromedp.Flag("force-color-profile", "srgb"))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocated)
	if err := chromedp.Do(ctx); err != nil { // it starts the browser, which lives as long as the context
		return nil, err
	}
	os.Setenv(browserVariable, "yes")
	return &chromium{ctx, func() { closeTab(); stop() }}, nil
})

// Open opens an address in a new tab, which ends with the test.
func Open(t testing.TB, address string) *Page {
	t.Helper()
	all, err := browser()
	if errors.Is(err, exec.ErrNotFound) {
		parttest.Missing(t, "chromium is not installed; .ci/run parts installs it")
	}
	if err != nil {
		t.Fatal(err)
	}
	axe := filepath.Join(parttest.Packages(t, "axe-core"), "axe-core", "axe.min.js") // a test without it is skipped before it begins something
	ctx, closeTab := chromedp.NewContext(all.ctx, chromedp.WithNewBrowserContext())
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Page{t: t, ctx: ctx, axe: axe, origin: at.Scheme + "://" + at.Host}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900)); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, p.watch); err != nil {
		t.Fatal(err)
	}
	go p.hear()
	t.Cleanup(func() {
		closeTab()
		for _, text := range p.Wrong() {
			t.Errorf("the page has done wrong: %s", text)
		}
	})
	Call(p, network.Enable, network.EnableParams{})
	Call(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // other tabs have none to lose
	p.Go(address)
	return p
}

// hear notes what the page writes to its console and must not, until the browser ends.
func (p *Page) hear() {
	for m, err := range chromedp.Console(p.ctx) {
		if err != nil {
			return
		}
		switch m.Type {
		case chromedp.ConsoleError, chromedp.ConsoleWarning, chromedp.ConsoleException:
			p.note("%s: %s (%s)", m.Type, m.Text, m.URL)
		}
	}
}

// watch notes requests to other origins.
func (p *Page) watch(event any) {
	e, ok := event.(*network.EventRequestWillBeSent)
	if !ok {
		return
	}
	at := e.Request.URL
	if !strings.HasPrefix(at, p.origin+"/") && !strings.HasPrefix(at, "data:") && !strings.HasPrefix(at, "blob:") {
		p.note("it has asked another origin: %s", at)
	}
}

func (p *Page) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// Allow says that messages with a text are no mistake of the page: that of an answer 404, say, for which a test asks.
func (p *Page) Allow(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, text)
}

// Wrong returns what the page has done wrong until now.
func (p *Page) Wrong() (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, text := range p.wrong {
		for _, part := range p.allowed {
			if strings.Contains(text, part) {
				continue next
			}
		}
		list = append(list, text)
	}
	return list
}

// An Action is what chromedp does in a page.
type Action = chromedp.Action[chromedp.Void]

// Do runs actions in the page. One that has not ended in time fails the test, with the text of the page.
func (p *Page) Do(actions ...Action) {
	p.t.Helper()
	Get(p, chromedp.Steps(actions...))
}

// Get runs an action with a result.
func Get[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeoutCause(p.ctx, patience, errors.New("it was not so in time"))
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		p.t.Fatalf("%v (%v); wrong: %q; the page:\n%s", err, context.Cause(ctx), p.Wrong(), p.text())
	}
	return result
}

// Call sends a command of the protocol of the browser.
func Call[P, R any](p *Page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// Go opens an address in the page.
func (p *Page) Go(address string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(address), chromedp.WaitVisible("main"))
}

// See waits until the visible text of an element holds a text.
func (p *Page) See(selector, text string) {
	p.t.Helper()
	p.Until(fmt.Sprintf(`(document.querySelector(%s)?.innerText || "").includes(%s)`, quote(selector), quote(text)))
}

// Until waits until a JavaScript expression is true, also in a page that another one replaces meanwhile.
func (p *Page) Until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		done, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && done {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("it was not so in time: %s (%v); wrong: %q; the page:\n%s", expression, err, p.Wrong(), p.text())
		case <-time.After(pause):
		}
	}
}

// pause is the time between two looks.
const pause = 30 * time.Millisecond

// text returns the text of the page, for messages.
func (p *Page) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	return text
}

// Value returns the value of a JavaScript expression, or of the promise that it is.
func Value[T any](p *Page, expression string) T {
	p.t.Helper()
	return Get(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func quote(text string) string {
	data, _ := json.Marshal(text) // a string
	return string(data)
}

// Axe runs axe-core in the page, and fails the test with what it finds.
func (p *Page) Axe() {
	p.t.Helper()
	source, err := os.ReadFile(p.axe)
	if err != nil {
		p.t.Fatal(err)
	}
	Value[any](p, string(source)+"; true")
	found := Value[[]string](p, `axe.run({resultTypes: ["violations"]}).then((r) => r.violations.map((v) => v.id + " (" + v.impact + "): " + v.help + ": " +
		v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join("; ")))`)
	for _, text := range found {
		p.t.Errorf("axe-core: %s", text)
	}
}

// A View is how somebody looks at a page.
type View struct {
	Width, Height int64
	Dark          bool
	Whole         bool // the picture shows the page to its end
}

// Set changes how the page is looked at.
func (p *Page) Set(v View) {
	p.t.Helper()
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	p.Do(chromedp.EmulateViewport(v.Width, v.Height))
	Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// Screenshot writes a picture (PNG) of the page.
func (p *Page) Screenshot(path string, v View) {
	p.t.Helper()
	p.Set(v)
	picture := Call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &v.Whole}).Data
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
