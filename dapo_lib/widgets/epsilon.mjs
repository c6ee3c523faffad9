// ε_low × ε_high: where the clipped surrogate of a token stops pushing, and what that
// leaves to a rare and to a common token (Eq 8, 10). With a grid of real runs: the run
// nearest to the sliders, never one in between.
import { clamp, fmt, legend, linspace, mount, plot, range, sig, table, h, widthOf } from "./kit.mjs";

export const surrogate = (r, a, low, high) =>
  Math.min(r * a, clamp(r, 1 - low, 1 + high) * a);

// is the unclipped branch the minimum, so that a gradient flows?
export const flows = (r, a, low, high) => (a > 0 ? r <= 1 + high : r >= 1 - low);

// d objective / d log π = r·A where the unclipped branch is the minimum, else 0
export const gradient = (r, a, low, high) => (flows(r, a, low, high) ? r * a : 0);

// what one round of updates may make of a token's probability before the clip acts
export function ceiling(p, high) {
  const raw = p * (1 + high);
  return { raw, p: Math.min(1, raw), gain: Math.min(1, raw) - p, binds: raw < 1 };
}

// fewest refreshes of the old policy that take a token from p to q
export const refreshes = (p, q, high) =>
  high > 0 ? Math.ceil(Math.log(q / p) / Math.log1p(high) - 1e-12) : Infinity;

// the grid's run nearest to (low, high) among those that exist
export function nearest(grid, low, high) {
  let best = null;
  grid.eps_low.forEach((l, i) =>
    grid.eps_high.forEach((u, j) => {
      if (!grid.metrics.some((m) => m.values[i]?.[j])) return;
      const distance = Math.hypot(l - low, u - high);
      if (!best || distance < best.distance - 1e-12) {
        best = { i, j, low: l, high: u, distance };
      }
    }),
  );
  return best;
}

function panel(ui, node, a, o) {
  const p = plot(node.firstChild, {
    x: [0, 2], y: a > 0 ? [0, 2] : [-2, 0], height: 190,
    xlabel: null, ylabel: ui.t("objective"), title: ui.t(a > 0 ? "positive" : "negative"),
    label: ui.t(a > 0 ? "plot_positive" : "plot_negative"),
  });
  const bound = a > 0 ? 1 + o.high : 1 - o.low;
  const xs = [...linspace(0, 2, 81), 1 - o.low, 1 + o.high].sort((u, v) => u - v);
  p.vline(bound, "c0");
  p.line(xs.map((x) => [x, x * a]), "c0 thin dash");
  p.line(xs.map((x) => [x, surrogate(x, a, o.low, o.high)]), "c1");
  p.dot(o.r, surrogate(o.r, a, o.low, o.high), "f1", 6);
  const right = a > 0 ? bound < 1.5 : bound < 0.5;
  p.note(bound, a > 0 ? 0 : -2, ui.t(a > 0 ? "upper" : "lower", { b: fmt(bound) }), "ink",
    right ? "start" : "end", -8, right ? 6 : -6);
  const q = plot(node.lastChild, {
    x: [0, 2], y: a > 0 ? [0, 2] : [-2, 0], height: 138, yticks: a > 0 ? [0, 1, 2] : [-2, -1, 0],
    xlabel: ui.t("ratio_axis"), ylabel: ui.t("gradient"), label: ui.t("gradient"),
  });
  const edge = [[bound, bound * a], [bound, 0]];
  const flowing = a > 0 ? [[0, 0], ...edge, [2, 0]] : [[0, 0], ...edge.reverse(), [2, -2]];
  q.band(flowing.map(([x]) => [x, 0]), flowing, "f2");
  q.line(flowing, "c2");
  q.dot(o.r, gradient(o.r, a, o.low, o.high), "f2", 6);
}

function tokens(ui, o) {
  const rows = [["rare", o.p], ["common", 0.9]].map(([key, p]) => {
    const c = ceiling(p, o.high);
    const bar = h("span", { class: "dw-bar", style: `width:${clamp(c.gain * 900, 2, 100)}px` });
    return [ui.t(key), fmt(p, p < 0.1 ? 3 : 2),
      { text: c.binds ? sig(c.p, 3) : ui.t("unbound", { raw: sig(c.raw, 3) }) },
      { text: `+${sig(c.gain, 3)}` },
      h("span", { class: key === "rare" ? "c2" : "c1", "aria-hidden": "true" }, bar)];
  });
  return table([ui.t("token"), "p", ui.t("ceiling"), ui.t("room"), ""], rows, { caption: ui.t("token") });
}

// the grey curves are drawn once a width, only the chosen run moves with the sliders
function drawGrid(ui, nodes, grid, o) {
  const run = nearest(grid, o.low, o.high);
  if (!run) throw new Error("grid: no run in it");
  const zip = (values) => values.map((v, i) => [grid.x[i], v]);
  grid.metrics.forEach((metric, k) => {
    const node = nodes[k];
    if (node.drawn?.at !== widthOf(node)) {
      const all = metric.values.flat().filter(Boolean);
      const flat = all.flat().filter((v) => Number.isFinite(v));
      const [low, top] = [Math.min(...flat), Math.max(...flat)];
      const pad = (top - low || 1) * 0.05;
      const p = plot(node, {
        x: [grid.x[0], grid.x.at(-1)], y: [low - pad, top + pad], height: 210,
        xlabel: ui.say(grid.x_label), ylabel: ui.say(metric.label), label: ui.say(metric.label),
      });
      p.lines(all.map(zip), "c0 thin faint");
      node.drawn = { p, at: widthOf(node) };
    }
    node.drawn.line?.remove();
    const here = metric.values[run.i][run.j];
    node.drawn.line = here && node.drawn.p.line(zip(here), "c2");
  });
  return run;
}

function build(ui) {
  const { grid } = ui;
  const eps = { min: 0, max: 1, step: 0.01, show: (v) => fmt(v) };
  ui.panels = [1, -1].map(() => h("div", { class: "dw-panel" }, h("div"), h("div")));
  ui.tokens = h("div", { class: "dw-block" });
  ui.plots = grid ? grid.metrics.map(() => h("div", { class: "dw-panel" })) : [];
  ui.snap = h("p", { class: "dw-note" });
  return [
    h("div", { class: "dw-controls" },
      ui.slider("eps_low", { ...eps, label: ui.t("eps_low") }),
      ui.slider("eps_high", { ...eps, label: ui.t("eps_high") }),
      ui.slider("ratio", { min: 0, max: 2, step: 0.01, label: ui.t("ratio"), show: eps.show }),
      ui.slider("p_rare", { min: 0.001, max: 0.1, step: 0.001, label: ui.t("p_rare"), show: (v) => fmt(v, 3) })),
    h("div", { class: "dw-panels" }, ui.panels),
    legend([[ui.t("with_clip"), "c1"], [ui.t("without_clip"), "c0", "dash"], [ui.t("gradient"), "c2"]]),
    ui.tokens,
    grid && h("p", { class: "dw-cap dw-block" }, ui.t("grid_title", { n: runs(grid) })),
    grid && h("div", { class: "dw-panels three" }, ui.plots),
    grid && ui.snap,
  ];
}

const runs = (grid) =>
  range(grid.eps_low.length).flatMap((i) =>
    range(grid.eps_high.length).filter((j) => grid.metrics.some((m) => m.values[i]?.[j])),
  ).length;

function draw(ui) {
  const o = {
    low: ui.num("eps_low", 0, 1, 0.2), high: ui.num("eps_high", 0, 1, 0.28),
    r: ui.num("ratio", 0, 2, 1.4), p: ui.num("p_rare", 0.001, 0.1, 0.01),
  };
  panel(ui, ui.panels[0], 1, o);
  panel(ui, ui.panels[1], -1, o);
  ui.tokens.replaceChildren(tokens(ui, o));
  if (ui.grid) {
    const run = drawGrid(ui, ui.plots, ui.grid, o);
    ui.snap.replaceChildren(...h("p", {}, ui.t(run.distance < 1e-9 ? "exact" : "snapped",
      { low: fmt(run.low), high: fmt(run.high) })).childNodes);
  }
  const n = refreshes(o.p, 0.5, o.high);
  return ui.t("summary", {
    r: fmt(o.r),
    up: ui.t(flows(o.r, 1, o.low, o.high) ? "pushes_up" : "stopped"),
    down: ui.t(flows(o.r, -1, o.low, o.high) ? "pushes_down" : "stopped"),
    p: fmt(o.p, 3), q: sig(ceiling(o.p, o.high).p, 3), n: sig(n),
    limit: fmt(1 / (1 + o.high), 3),
  });
}

export default {
  render: (view) =>
    mount(view, {
      build(ui) {
        ui.grid = ui.data("grid");
        return build(ui);
      },
      draw,
    }),
};
