// L_max × L_cache × overlong filtering (Eq 13, section 3.4), and the two readings of
// the paper's 16,384.
import { clamp, count, fmt, h, legend, linspace, mount, plot, table } from "./kit.mjs";

// Eq 13, clamped; with a cache of 0 it is 0 up to l_max and -1 past it
export function penalty(length, lMax, lCache) {
  const over = length - (lMax - lCache);
  if (lCache === 0) return over > 0 ? -1 : 0;
  const p = clamp(over / lCache, 0, 1);
  return p === 0 ? 0 : -p;
}

// the first length that is punished
export const slopeStart = (lMax, lCache) => lMax - lCache;

// Rows of one group under the two mechanisms. `cut` = no EOS was produced.
export function grade(rows, { lMax, lCache, filtering, baseline }) {
  const graded = rows.map((r) => {
    const shaped = (r.correct ? 1 : -1) + penalty(r.length, lMax, lCache);
    return { ...r, shaped, trained: !(filtering && r.cut) };
  });
  const counted = graded.filter((r) => r.trained || baseline === "include");
  const n = counted.length;
  const mean = counted.reduce((a, r) => a + r.shaped, 0) / Math.max(1, n);
  const square = counted.reduce((a, r) => a + (r.shaped - mean) ** 2, 0);
  const std = Math.sqrt(square / Math.max(1, n - 1));
  const values = counted.map((r) => r.shaped);
  const flat = n < 2 || Math.max(...values) - Math.min(...values) <= 1e-8;
  return graded.map((r) => ({
    ...r, advantage: !r.trained || flat ? 0 : (r.shaped - mean) / (std + 1e-6),
  }));
}

// name -> [hard cap of the generator, L_max of Eq 13, L_cache]
const PRESETS = { paper: [20480, 20480, 4096], literal: [20480, 16384, 4096], book: [24, 24, 4] };

const sample = (cap) => [
  { length: Math.round(cap * 0.3), correct: true, cut: false },
  { length: Math.round(cap * 0.7), correct: true, cut: false },
  { length: Math.round(cap * 0.9), correct: false, cut: false },
  { length: cap, correct: false, cut: true },
];

function read(ui) {
  const cap = ui.int("cap", 8, 40960, 20480);
  const lMax = ui.int("l_max", 1, Math.round(cap * 1.2), cap);
  return { cap, lMax, lCache: ui.int("l_cache", 0, lMax, Math.min(lMax, Math.round(cap / 5))),
    mark: ui.int("length", 0, Math.round(cap * 1.2), cap), filtering: ui.flag("filtering"),
    baseline: ui.pick("baseline", ["include", "exclude"]) };
}

function build(ui) {
  const step = () => (read(ui).cap > 200 ? 128 : 1);
  const most = () => Math.floor((read(ui).cap * 1.2) / step()) * step();
  const preset = (key) => ui.button(ui.t(key), () => {
    const [cap, lMax, lCache] = PRESETS[key];
    ui.model.set({ cap, l_max: lMax, l_cache: lCache, length: Math.round(lMax - lCache / 2) });
    ui.model.save_changes();
  }, { "data-preset": key });
  ui.presets = Object.keys(PRESETS).map(preset);
  ui.panel = h("div", { class: "dw-panel" });
  ui.table = h("div", { class: "dw-block" });
  return [
    h("div", { class: "dw-options dw-presets" }, ui.presets),
    h("div", { class: "dw-controls" },
      ui.slider("l_max", { min: step, max: most, step, label: ui.t("l_max"), show: count }),
      ui.slider("l_cache", { min: 0, max: () => read(ui).lMax, step, label: ui.t("l_cache"), show: count }),
      ui.slider("length", { min: 0, max: most, step, label: ui.t("length"), show: count })),
    h("div", { class: "dw-row" },
      ui.check("filtering", ui.t("filtering_on"), ui.t("filtering")),
      ui.choice("baseline", ui.t("baseline"), [["include", ui.t("include")], ["exclude", ui.t("exclude")]])),
    ui.panel,
    legend([[ui.t("this_setting"), "c1"], [ui.t("other_reading"), "c0", "dash"], [ui.t("hard_cap"), "cb", "dash"]]),
    ui.table,
  ];
}

function draw(ui) {
  const o = read(ui);
  for (const button of ui.presets) {
    const [cap, lMax, lCache] = PRESETS[button.dataset.preset];
    button.setAttribute("aria-pressed", cap === o.cap && lMax === o.lMax && lCache === o.lCache);
  }
  const top = o.cap * 1.2;
  const p = plot(ui.panel, { x: [0, top], y: [-1.1, 0.1], height: 220, yticks: [-1, -0.5, 0],
    xlabel: ui.t("axis"), ylabel: ui.t("penalty"), label: ui.t("plot"), xfmt: count });
  const curve = (lMax, lCache) =>
    [...linspace(0, top, 2), lMax - lCache, lMax, lMax + 1e-6 * top].sort((a, b) => a - b)
      .map((x) => [x, penalty(x, lMax, lCache)]);
  const paper = o.cap === 20480;
  if (paper) p.line(curve(o.lMax === 16384 ? 20480 : 16384, 4096), "c0 thin dash");
  p.vline(o.cap, "cb");
  p.line(curve(o.lMax, o.lCache), "c1");
  p.dot(o.mark, penalty(o.mark, o.lMax, o.lCache), "f1", 6);
  const rows = grade(sample(o.cap), o);
  ui.table.replaceChildren(table(
    [ui.t("answer"), ui.t("reward"), ui.t("penalty_short"), ui.t("shaped"), ui.t("mask"), ui.t("advantage")],
    rows.map((r) => [
      ui.t(r.cut ? "row_cut" : r.correct ? "row_right" : "row_wrong", { n: count(r.length) }),
      r.correct ? "+1" : "−1", fmt(penalty(r.length, o.lMax, o.lCache)), fmt(r.shaped),
      { text: ui.t(r.trained ? "trained" : "masked"), cls: r.trained ? "" : "wrong" },
      r.trained ? fmt(r.advantage) : "–",
    ]), { caption: ui.t("answer") }));
  const at = penalty(o.mark, o.lMax, o.lCache);
  const early = o.lMax < o.cap;
  return { bad: early, text: ui.join(ui.t("summary", {
    start: count(slopeStart(o.lMax, o.lCache)), end: count(o.lMax), n: count(o.mark), p: fmt(at),
  }), early && ui.t("early", { gap: count(o.cap - o.lMax), cap: count(o.cap) })) };
}

export default { render: (view) => mount(view, { build, draw }) };
