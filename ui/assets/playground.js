// What the pages with an editor of pipelines do beside it: the text survives a reload, and a button applies a fix.
const editor = document.querySelector("#editor");
const key = "mcsh-" + (editor.dataset.keep || "playground");

if (editor.hasAttribute("data-given")) {
  sessionStorage.setItem(key, editor.value);
  if (!editor.dataset.keep) history.replaceState(history.state, "", document.baseURI + "playground");
} else if (!editor.dataset.keep && sessionStorage.getItem(key) !== null) {
  editor.value = sessionStorage.getItem(key);
}

document.addEventListener("edited", () => sessionStorage.setItem(key, editor.value));

document.addEventListener("click", (e) => {
  const fix = e.target.closest("[data-fix]");
  if (fix) {
    editor.value = fix.dataset.fix;
    editor.focus();
  }
});
