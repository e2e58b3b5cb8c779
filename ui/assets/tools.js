// What the pages of tools need beside htmx: pictures as blobs of known types, the end of a call, a pause, open messages.
const kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// A picture is a blob, so that nothing in it can be a page of this origin. Its type is one of the table, whatever it says.
async function picture(figure) {
  figure.dataset.shown = "";
  try {
    const from = figure.dataset.picture;
    const bytes = from ? await (await fetch(from)).arrayBuffer() : Uint8Array.from(atob(figure.dataset.pictureData), (c) => c.charCodeAt(0));
    if (!kinds.includes(figure.dataset.kind)) return;
    const img = new Image();
    img.src = URL.createObjectURL(new Blob([bytes], { type: figure.dataset.kind }));
    img.alt = "The picture of the result";
    img.onload = () => URL.revokeObjectURL(img.src);
    img.onerror = () => (img.remove(), figure.append("It is no picture that this browser can show."));
    figure.prepend(img);
  } catch {
    figure.append("The picture cannot be loaded.");
  }
}

const pictures = () => document.querySelectorAll("figure[data-picture]:not([data-shown]), figure[data-picture-data]:not([data-shown])").forEach(picture);
document.addEventListener("htmx:afterSettle", pictures);
pictures();

// Messages that are open stay open when the list is asked for again; a paused list is not asked for.
let paused = false;
const open = new Set();
document.addEventListener("click", (e) => {
  const abort = e.target.closest("[data-abort]");
  if (abort) htmx.trigger(abort.form, "htmx:abort");
  const pause = e.target.closest("[data-pause]");
  if (!pause) return;
  paused = !paused;
  pause.setAttribute("aria-pressed", paused);
});
document.addEventListener("toggle", (e) => e.target.id && (e.target.open ? open.add(e.target.id) : open.delete(e.target.id)), true);
document.addEventListener("htmx:beforeRequest", (e) => paused && e.target.id === "messages" && e.preventDefault());
document.addEventListener("htmx:afterSwap", () => open.forEach((id) => document.getElementById(id)?.matches(".messages details") && (document.getElementById(id).open = true)));
