//go:build !race

package ui_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/mcsh-dev/mcsh/ui"
	"github.com/mcsh-dev/mcsh/ui/uitest"
)

const partsPage = `<!doctype html><html lang="en"><title>parts</title><link rel="stylesheet" href="style.css"><link rel="stylesheet" href="plot.css">
<script type="module" src="editor.js"></script><script type="module" src="plot.js"></script>
<body hx-headers='{"X-Console-Token": "secret"}'><main><h1>Parts</h1><form><mcsh-editor name="pipeline" label="Pipeline" check="check" complete="complete">[{"type": "taol"}]</mcsh-editor>
<button type="button" data-mod-enter>Run</button></form>
<mcsh-plot label="Calls">{"x": [1700000000, 1700000060, 1700000120], "series": [{"label": "calls", "values": [1, 5, 3]}]}</mcsh-plot></main>
<script type="module" src="test.js"></script>`

// partsServer serves the editor and the plot under the policy of all pages, and answers the editor.
func partsServer(t *testing.T) string {
	files := http.FileServerFS(os.DirFS("assets"))
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	}
	mux.HandleFunc("POST /check", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("text"), "taol") && r.Header.Get("X-Console-Token") == "secret" {
			answer(w, `{"problems": [{"at": "/0/type", "message": "there is no kind taol", "hint": "did you mean tool?", "fix": {"label": "Write tool", "text": "\"tool\""}}]}`)
			return
		}
		answer(w, `{}`)
	})
	mux.HandleFunc("POST /complete", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("path") == "/0/server" && strings.HasSuffix(r.FormValue("before"), `"server": "`) {
			answer(w, `{"options": [{"label": "demo", "detail": "a shop"}, {"label": "git", "insert": "\"git\""}]}`)
			return
		}
		answer(w, `{"options": []}`)
	})
	mux.HandleFunc("GET /test.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		io.WriteString(w, `document.querySelector("[data-mod-enter]").onclick = () => { window.ran = true };`)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, partsPage) })
	mux.HandleFunc("GET /favicon.ico", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", files)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", ui.Policy)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// TestEditor: a mistake is underlined and its fix applied, a completion is inserted, and the text is a field of its form.
func TestEditor(t *testing.T) {
	p := uitest.Open(t, partsServer(t))
	const inside = `document.querySelector("mcsh-editor").shadowRoot`
	p.Until(inside + `.querySelector(".cm-lintRange-error")?.textContent === '"taol"'`)
	p.Axe()
	uitest.Value[bool](p, `document.querySelector("mcsh-editor").focus(), true`)
	p.Do(chromedp.KeyEvent("M", chromedp.KeyModifiers(chromedp.ModifierCtrl, chromedp.ModifierShift))) // the list of mistakes
	p.Until(inside + `.querySelector(".cm-diagnosticAction")?.textContent === "Write tool"`)
	uitest.Value[bool](p, inside+`.querySelector(".cm-diagnosticAction").click(), true`)
	p.Until(`new FormData(document.querySelector("form")).get("pipeline") === '[{"type": "tool"}]'`)
	p.Until(`document.querySelector("mcsh-editor").hasAttribute("data-unsaved") && !` + inside + `.querySelector(".cm-lintRange-error")`)
	uitest.Value[bool](p, `(() => { const e = document.querySelector("mcsh-editor"); e.value = '[{"type": "tool", "server": ""}]';
		e.view.dispatch({selection: {anchor: e.value.length - 3}}); e.focus(); e.complete(); return true })()`)
	p.Until(inside + `.querySelector(".cm-tooltip-autocomplete li")?.textContent.includes("demo")`)
	p.Until(inside + `.querySelector(".cm-tooltip-autocomplete li[aria-selected]")`)
	p.Do(chromedp.Sleep(200 * time.Millisecond))                         // the editor takes no Enter within 75 ms after the list has come
	uitest.Call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{ // without the character, which a page that takes the key does not get
		Type: input.DispatchKeyEventTypeRawKeyDown, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13,
	})
	p.Until(`document.querySelector("mcsh-editor").value === '[{"type": "tool", "server": "demo"}]'`)
	p.Do(chromedp.KeyEvent("\r", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	p.Until("window.ran")
	p.Until(`document.querySelector("mcsh-plot canvas").width > 0`)
}
