// <mcsh-plot label="Calls" unit="/s" height="160" bars>{"x": [seconds since 1970, …], "series": [{"label": "calls", "values": [1, null, …]}]}</mcsh-plot>
//
// A plot over time. Its data is its text, which a fragment of the page may replace; the plot then stays and moves on.
import uPlot from "uplot";

const style = getComputedStyle.bind(null, document.documentElement);
const colours = ["--accent", "--bad", "--good", "--warn", "--busy"];
const token = (name) => style().getPropertyValue(name).trim();

class Plot extends HTMLElement {
  #plot;

  connectedCallback() {
    this.draw = () => this.#draw();
    this.resized = new ResizeObserver(() => this.#plot?.setSize({ width: this.clientWidth, height: this.#height() }));
    this.resized.observe(this);
    document.addEventListener("theme", this.draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.draw);
    this.draw();
  }

  disconnectedCallback() {
    this.resized.disconnect();
    document.removeEventListener("theme", this.draw);
    matchMedia("(prefers-color-scheme: dark)").removeEventListener("change", this.draw);
    this.#plot?.destroy();
  }

  #height() { return Number(this.getAttribute("height")) || 160; }

  #draw() {
    this.data ??= JSON.parse(this.textContent);
    this.#plot?.destroy();
    this.textContent = "";
    const axis = { stroke: token("--muted"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    const bars = this.hasAttribute("bars");
    this.setAttribute("role", "img");
    this.setAttribute("aria-label", this.getAttribute("label") + ": " + this.data.series.map((s) => s.label + " " + (s.values.at(-1) ?? 0)).join(", "));
    this.#plot = new uPlot({
      width: this.clientWidth || 300, height: this.#height(), padding: [8, 8, 0, 0], cursor: { points: { show: !bars, size: 6 } }, legend: { live: true },
      axes: [{ ...axis, size: 26, space: 90, values: (_, list) => list.map(clock) }, { ...axis, size: 44 }], scales: { y: { range: (_, low, high) => [Math.min(0, low), Math.max(high, 1)] } },
      series: [{ label: "", value: (_, v) => v == null ? "" : clock(v) }, ...this.data.series.map((s, i) => ({
        label: s.label, stroke: token(colours[i % colours.length]), width: 1.5, points: { show: false }, spanGaps: false,
        fill: bars ? token(colours[i % colours.length]) : i ? undefined : token("--accent-soft"),
        paths: bars ? uPlot.paths.bars({ size: [0.7, 16] }) : undefined, value: (_, v) => v == null ? "–" : v + (this.getAttribute("unit") || ""),
      }))],
    }, [this.data.x, ...this.data.series.map((s) => s.values.map((v) => (bars && !v ? null : v)))], this);
  }
}

customElements.define("mcsh-plot", Plot);
