// Train again with the reader's clip bounds (chapter 3). Here: the controls, the state
// of the run and its curves. The training is Python's; without a kernel Run stays off.
import { fmt, h, legend, mount, pct, plot } from "./kit.mjs";

// somebody answered the last ping
export const alive = (ping, pong) => ping > 0 && ping === pong;

// the numbers of one run, or null where a state holds anything else
export function curve(run) {
  const lists = ["x", "mean", "low", "high"].map((key) => run?.[key]);
  if (!lists.every((list) => Array.isArray(list))) return null;
  const [x, mean, low, high] = lists;
  const n = Math.min(...lists.map((list) => list.length));
  const pair = (ys) => ys.slice(0, n).map((y, i) => [x[i], y]);
  return { mean: pair(mean), low: pair(low), high: pair(high) };
}

function build(ui) {
  const count = (name) => ui.put(name, ui.int(name, 0, 1e9, 0) + 1);
  ui.run = ui.button(ui.t("run"), () => count("wanted"), { "data-name": "run" });
  ui.stop = ui.button(ui.t("stop"), () => count("halted"), { "data-name": "stop" });
  ui.progress = h("progress", { "aria-label": ui.t("progress"), max: 1, value: 0, style: "flex:1;min-width:8rem" });
  ui.panel = h("div", { class: "dw-panel" });
  const width = { step: 0.01, show: (v) => fmt(v) };
  return [
    h("div", { class: "dw-controls" },
      ui.slider("eps_low", { min: 0.05, max: 0.95, label: ui.t("eps_low"), ...width }),
      ui.slider("eps_high", { min: 0.05, max: 1, label: ui.t("eps_high"), ...width })),
    h("div", { style: "display:flex;gap:.6rem;align-items:center;flex-wrap:wrap" },
      ui.run, ui.stop, ui.progress),
    h("div", { class: "dw-panels" }, ui.panel),
    legend([[ui.t("last"), "c1"], [ui.t("earlier"), "c0", "dash"]]),
  ];
}

function drawRuns(ui, runs, total) {
  const p = plot(ui.panel, { x: [0, total], y: [0, 1], height: 240, xlabel: ui.t("x"),
    ylabel: ui.t("y"), label: ui.t("plot"), yfmt: (v) => pct(v) });
  runs.slice(0, -1).forEach((run) => p.line(run.mean, "c0 thin dash"));
  const last = runs.at(-1);
  if (!last) return;
  p.band(last.low, last.high, "f1");
  p.line(last.mean, "c1");
}

function draw(ui) {
  const total = ui.int("total", 1, 1e6, 160);
  const done = ui.int("done", 0, total, 0);
  const state = ui.pick("status", ["idle", "running", "stopped", "done", "failed"]);
  const listens = alive(ui.int("ping", 0, 1e9, 0), ui.int("pong", 0, 1e9, 0));
  const running = listens && state === "running";
  ui.run.disabled = !listens || running;
  ui.stop.disabled = !running;
  for (const button of [ui.run, ui.stop]) button.style.opacity = button.disabled ? 0.45 : 1;
  ui.progress.value = done / total;
  const runs = ui.list("runs").map(curve).filter(Boolean);
  drawRuns(ui, runs, total);
  const values = { low: fmt(ui.num("eps_low", 0, 1, 0.2)), high: fmt(ui.num("eps_high", 0, 2, 0.28)),
    done, total, message: ui.text("message", 300) };
  const last = runs.at(-1);
  const end = last?.mean.length ?? 0;
  if (state === "done" && end) {
    const share = (pair) => pct(pair[1], 1);
    Object.assign(values, { first: share(last.mean[0]), end: share(last.mean[end - 1]),
      a: share(last.low[end - 1]), b: share(last.high[end - 1]) });
  }
  if (!listens) return ui.t("needs_kernel");
  return { bad: state === "failed", text: ui.t(state, values) };
}

// a token that only a kernel can send back
function ask(model) {
  model.set("ping", 1 + Math.floor(Math.random() * 1e9));
  model.save_changes();
}

export default {
  render(view) {
    const close = mount(view, { build, draw });
    ask(view.model);
    return close;
  },
};
