// What all pages do: follow the events of the gateway, notes, dialogs, keys, the theme. The rest is htmx.
const $ = (selector, inside = document) => inside.querySelector(selector);
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
const on = (event, act) => document.addEventListener(event, act);

// --- Events. An element with data-topic="runs tick" is asked for again (hx-trigger="live") when a topic of it has changed.

const instance = $("meta[name=instance]").content;
let stream, followed = "", again;

const topics = () => [...new Set(all("[data-topic]").flatMap((e) => e.dataset.topic.split(/\s+/)))].filter(Boolean).sort();

const changes = {}; // by topic: when it has changed for the last time

function refresh(changed = topics()) {
  for (const t of changed) changes[t] = performance.now();
  ask();
}

// ask asks again for the elements that are older than a change. An element is as old as the request that has brought it: a change
// during the request may be missing in its answer. An element with a request in progress waits for its end, and a new one until htmx
// knows it.
function ask() {
  if ($("#sure[open]")) return; // what the question is about must stay
  for (const e of all("[data-topic]:not(.htmx-request, :has(.htmx-request), .htmx-added, .htmx-added *)")) {
    if (!e.dataset.topic.split(/\s+/).some((t) => changes[t] > (e.asked ?? 0))) continue;
    e.asked = performance.now();
    htmx.trigger(e, "live");
  }
}

on("htmx:beforeSend", (e) => (e.detail.xhr.begun = performance.now()));
on("htmx:afterRequest", ({ detail: { xhr, requestConfig } }) => {
  for (const e of all("[data-topic]")) e.asked ??= xhr.begun;
  if (requestConfig.verb !== "get" && xhr.status >= 400) refresh(); // what somebody wanted to change has changed before
  else ask();
});

function banner(text, reload) {
  const b = $("#banner");
  b.hidden = !text;
  b.textContent = text || "";
  if (!reload) return;
  const button = document.createElement("button");
  button.textContent = "Reload";
  button.onclick = () => location.reload();
  b.append(button);
}

function follow() {
  clearTimeout(again);
  stream?.close();
  followed = topics().join(" ");
  const query = new URLSearchParams(topics().map((t) => ["topic", t]));
  stream = new EventSource("events?" + query);
  stream.addEventListener("hello", (e) => {
    if (JSON.parse(e.data) !== instance) return restarted();
    banner();
    refresh(); // something may have changed before the stream was open
  });
  stream.addEventListener("changed", (e) => refresh(JSON.parse(e.data)));
  stream.onerror = () => {
    banner("The gateway does not answer. Trying again …");
    if (stream.readyState === EventSource.CLOSED) again = setTimeout(retry, 2000);
  };
}

// After a refusal the page may have to be left: the sign-in has ended, or the gateway has.
async function retry() {
  const answer = await fetch("events", { method: "HEAD" }).catch(() => null);
  if (answer?.status === 401) restarted();
  else follow();
}

// The gateway has restarted: a page without anything to lose is loaded again.
function restarted() {
  stream.close();
  if ($("[data-unsaved]")) banner("The gateway has restarted, or your sign-in has ended. Your text is still here; copy it before you reload.", true);
  else location.reload();
}

on("input", (e) => e.target.closest("form.call")?.setAttribute("data-unsaved", ""));

// A page that nobody sees has no stream: browsers have few connections to one address.
on("visibilitychange", () => {
  if (document.hidden) {
    clearTimeout(again);
    stream?.close();
  } else if ($("#banner")) follow();
});
on("htmx:afterSettle", () => (topics().join(" ") !== followed ? follow() : ask()));
addEventListener("pagehide", () => stream?.close());

// --- Notes and dialogs.

export function note(text, kind = "") {
  const n = document.createElement("div");
  n.className = "note " + kind;
  n.textContent = text;
  $("#notes").prepend(n);
  setTimeout(() => n.remove(), 6000);
}

on("notice", (e) => note(e.detail.value));
on("htmx:sendError", () => note("The gateway does not answer.", "bad"));

on("htmx:beforeSwap", (e) => {
  if (!$("#sure[open]")) return;
  e.detail.shouldSwap = false;
  e.detail.target.asked = 0; // the answer is lost
});

on("htmx:confirm", (e) => {
  if (!e.detail.question) return;
  e.preventDefault();
  const d = $("#sure");
  $("#sure-text").textContent = e.detail.question;
  d.onclose = () => (d.returnValue === "yes" ? e.detail.issueRequest(true) : ask());
  d.returnValue = "no";
  d.showModal();
});

// --- The focus and what is scrolled stay where they are when a part is swapped: the new part has the same controls, without ids.

const controls = "a[href], button, input, select, textarea, summary, mcsh-editor, [tabindex='0']";
const sameAs = (e) => [e.tagName, e.id, e.name, e.getAttribute("href"), e.getAttribute("hx-get"), e.getAttribute("hx-post"), e.getAttribute("aria-label"), e.name ? "" : e.textContent.trim()].join("\n");
const scrolls = ".scroll, pre, .tree";
let held = []; // of parts that are being swapped

on("htmx:beforeSwap", ({ detail: { target, shouldSwap } }) => {
  if (!shouldSwap) return;
  const e = document.activeElement, inside = target.contains(e) && e !== document.body;
  const place = [...new Set([target.id, target.parentElement?.closest("[id]")?.id])].filter(Boolean);
  if (inside || all(scrolls, target).some((s) => s.scrollTop || s.scrollLeft)) {
    const like = inside ? all(controls, target).filter((other) => sameAs(other) === sameAs(e)) : [];
    held.push({ place, inside, same: inside && sameAs(e), nth: like.indexOf(e), at: target.id ? all(scrolls, target).map((s) => [s.scrollLeft, s.scrollTop]) : [] });
  }
});
on("htmx:afterSettle", () => {
  for (const h of held.splice(0)) {
    const part = h.place.map((id) => document.getElementById(id)).find(Boolean) || $("#main");
    all(scrolls, part).forEach((s, i) => h.at[i] && s.scrollTo(...h.at[i]));
    if (!h.inside || document.activeElement !== document.body) continue;
    const like = all(controls, part).filter((other) => sameAs(other) === h.same && !other.disabled);
    const to = like[h.nth] || like[0] || part;
    if (to === part && !part.hasAttribute("tabindex")) part.tabIndex = -1; // what had the focus is not there any more
    to.focus({ preventScroll: true });
  }
});

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("mcsh-theme", root.dataset.theme);
  document.dispatchEvent(new Event("theme"));
}

function menu(open) {
  document.body.classList.toggle("menu-open", open);
  $("[data-menu]").setAttribute("aria-expanded", open);
}

async function copy(from) {
  const text = from.dataset.copy || $(from.dataset.copyFrom).textContent;
  try {
    await navigator.clipboard.writeText(text); // it is not there in a page without TLS of another machine
    note("Copied.");
  } catch {
    note("The browser does not copy here.", "bad");
  }
}

on("click", (e) => {
  const hit = (selector) => e.target.closest(selector);
  let found;
  if ((found = hit("[data-opens]"))) document.getElementById(found.dataset.opens).showModal();
  else if (hit("[data-theme-switch]")) theme();
  else if ((found = hit("[data-dismiss]"))) found.parentElement.remove();
  else if ((found = hit("[data-clear]"))) document.getElementById(found.dataset.clear).replaceChildren();
  else if ((found = hit("[data-copy], [data-copy-from]"))) copy(found);
  else if ((found = hit("[data-menu]"))) menu(!document.body.classList.contains("menu-open"));
  else if (hit(".skip")) (e.preventDefault(), $("#main").focus(), $("#main").scrollIntoView());
  else if (e.target.matches("dialog")) e.target.close(); // beside its box
});

// --- Times, for the place and the language of the browser.

const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function ago(then) {
  const seconds = Math.floor((Date.now() - then) / 1000);
  const [size, unit] = units.find(([n]) => seconds >= n) || [1, "s"];
  return seconds < 1 ? "now" : `${Math.floor(seconds / size)} ${unit} ago`;
}

const clock = { hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 };

function times() {
  for (const t of all("time")) {
    const then = new Date(t.dateTime), text = "ago" in t.dataset ? ago(then) : "clock" in t.dataset ? then.toLocaleTimeString([], clock) : then.toLocaleString();
    if (t.textContent !== text) t.textContent = text;
    if ("ago" in t.dataset) t.title = then.toLocaleString();
  }
}

on("htmx:afterSettle", times);
setInterval(times, 5000);
times();

// --- Keys: g and a letter leads to a page.

let before = "";
on("keydown", (e) => {
  if (e.key === "Escape" && document.body.classList.contains("menu-open")) (menu(false), $("[data-menu]").focus());
  const writes = e.target.closest?.("input, textarea, select, [contenteditable], mcsh-editor, dialog");
  if (writes || e.ctrlKey || e.metaKey || e.altKey) return;
  const key = before + e.key;
  before = e.key === "g" && !before ? "g" : "";
  if (key.length === 2) return $(`[data-go="${CSS.escape(key[1])}"]`)?.click();
  if (key === "/") (e.preventDefault(), $("[data-search]")?.focus());
  if (key === "?") $("#keys").showModal();
  if (key === "t") theme();
});

if ($("#banner")) follow(); // also a page without topics says that the gateway has restarted
$("[data-follow]")?.click(); // the way on after a sign-in
