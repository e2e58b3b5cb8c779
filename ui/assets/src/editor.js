// <mcsh-editor name="pipeline" label="Pipeline" check="playground/check" complete="playground/complete">TEXT</mcsh-editor>
//
// An editor of JSON, which is a field of its form. It lives in a shadow root, where its styles are objects and no <style> that
// the policy of the page forbids. It has the property value, and these events, which bubble: "edited" after each change, and
// "checked" with the answer of the server to a check in detail. Ctrl-Enter presses the button [data-mod-enter] of its form.
//
// check is asked with the field text, and answers {"problems": [{"at": "/0/args", "message", "hint", "severity", "fix": {"label",
// "text"}}]}. "at" is a JSON pointer, and a fix replaces what is there; with "whole": true it replaces all. complete is asked with
// text, before (the text in front of the cursor) and path (the JSON pointer of the cursor), and answers {"options": [{"label",
// "detail", "info", "type", "insert"}]}; "insert" is JSON, or else the label is inserted as a string.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json, jsonParseLinter } from "@codemirror/lang-json";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting, HighlightStyle, syntaxTree } from "@codemirror/language";
import { forceLinting, linter, lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { locate, pointerAt, stringAt } from "./json.js";

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--code-key)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: [tags.bool, tags.null], color: "var(--code-word)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--panel)", fontSize: "12.5px", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--hover) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent-soft) !important", outline: "1px solid var(--accent)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "8px", boxShadow: "var(--shadow-high)" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "260px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "inherit", opacity: "0.8", fontStyle: "normal" },
  ".cm-completionInfo": { maxWidth: "340px", padding: "8px 10px", fontFamily: "var(--sans)", whiteSpace: "pre-wrap" },
  ".cm-diagnostic": { padding: "8px 10px", fontFamily: "var(--sans)", fontSize: "13px", maxWidth: "420px", whiteSpace: "pre-wrap", borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
  ".cm-diagnosticAction": { backgroundColor: "var(--accent)", color: "var(--on-accent)", borderRadius: "5px", padding: "3px 9px", marginLeft: "0", marginTop: "6px", display: "block" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
  ".cm-textfield, .cm-button": { backgroundImage: "none", backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--line-strong)" },
  ".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", border: "1px solid var(--line)", color: "var(--muted)" },
});

class Editor extends HTMLElement {
  static formAssociated = true;
  #internals = this.attachInternals();
  #root = this.attachShadow({ mode: "open" });
  #asking = {}; // one request of a kind at a time
  #writable = new Compartment();

  connectedCallback() {
    if (this.view) return;
    const initial = this.textContent;
    this.view = new EditorView({ parent: this.#root, root: this.#root, state: EditorState.create({ doc: initial, extensions: this.#extensions(initial) }) });
    this.#internals.setFormValue(this.value);
  }

  get value() { return this.view ? this.view.state.doc.toString() : this.textContent; }
  set value(text) { this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } }); }
  focus() { this.view.focus(); }
  check() { forceLinting(this.view); }

  #extensions(initial) {
    return [
      lineNumbers(), highlightActiveLineGutter(), lintGutter(), foldGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), closeBrackets(),
      highlightActiveLine(), highlightSelectionMatches(), json(), syntaxHighlighting(colours), look, EditorView.lineWrapping,
      autocompletion({ override: [(c) => this.#complete(c)], icons: false }),
      linter((view) => this.#lint(view), { delay: 400 }),
      keymap.of([{ key: "Mod-Enter", run: () => this.#submit() }, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap,
        ...completionKeymap, ...lintKeymap]),
      this.#writable.of(EditorState.readOnly.of(this.hasAttribute("readonly"))),
      EditorView.contentAttributes.of({ "aria-label": this.getAttribute("label") || "JSON" }),
      EditorView.updateListener.of((u) => {
        if (!u.docChanged) return;
        this.#internals.setFormValue(this.value);
        this.toggleAttribute("data-unsaved", this.value !== initial);
        this.dispatchEvent(new CustomEvent("edited", { bubbles: true }));
      }),
    ];
  }

  #submit() {
    const button = this.#internals.form?.querySelector("[data-mod-enter]");
    button?.click();
    return Boolean(button);
  }

  // #ask asks the server, and gives up an earlier question of that kind.
  async #ask(kind, fields) {
    this.#asking[kind]?.abort();
    const signal = (this.#asking[kind] = new AbortController()).signal;
    const headers = JSON.parse(document.body.getAttribute("hx-headers"));
    try {
      const answer = await fetch(this.getAttribute(kind), { method: "POST", headers, body: new URLSearchParams(fields), signal });
      return answer.ok ? await answer.json() : null;
    } catch {
      return null; // the page says that the gateway does not answer
    }
  }

  async #lint(view) {
    const wrong = jsonParseLinter()(view);
    if (wrong.length || !view.state.doc.length || !this.hasAttribute("check")) return wrong;
    const answer = await this.#ask("check", { text: this.value });
    if (!answer) return [];
    this.dispatchEvent(new CustomEvent("checked", { bubbles: true, detail: answer }));
    return (answer.problems || []).map((p) => this.#diagnostic(view.state, p));
  }

  #diagnostic(state, p) {
    const at = locate(syntaxTree(state), state.doc, p.at || "");
    const apply = (view, from, to) => view.dispatch({ changes: p.fix.whole ? { from: 0, to: view.state.doc.length, insert: p.fix.text } : { from, to, insert: p.fix.text } });
    return {
      ...at, severity: p.severity || "error", message: p.hint ? p.message + "\n" + p.hint : p.message,
      actions: p.fix ? [{ name: p.fix.label, apply }] : [],
    };
  }

  async #complete(c) {
    if (!this.hasAttribute("complete")) return null;
    const inside = stringAt(c.state, c.pos), word = c.matchBefore(/[\w.-]+/);
    if (!inside && !word && !c.explicit && !/[[{:,]\s*$/.test(c.state.sliceDoc(Math.max(0, c.pos - 20), c.pos))) return null;
    const answer = await this.#ask("complete", { text: this.value, before: c.state.sliceDoc(0, c.pos), path: pointerAt(c.state, c.pos) });
    if (!answer?.options?.length) return null;
    const from = inside ? inside.from : word ? word.from : c.pos;
    const insert = (option) => (view, completion, start, end) => {
      if (inside && view.state.sliceDoc(end, end + 1) === '"') end++;
      const text = option.insert ?? JSON.stringify(option.label);
      view.dispatch({ changes: { from: inside ? start - 1 : start, to: end, insert: text }, selection: { anchor: (inside ? start - 1 : start) + text.length } });
    };
    return { from, validFor: /^[\w ./:-]*$/, options: answer.options.map((o) => ({ label: o.label, detail: o.detail, info: o.info, type: o.type, apply: insert(o) })) };
  }

  complete() { startCompletion(this.view); }
}

customElements.define("mcsh-editor", Editor);
