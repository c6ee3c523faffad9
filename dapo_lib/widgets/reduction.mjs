// Short and long responses under five reductions (Eq 5, 12): the weight of one token,
// the value of the loss, and what a split into micro-batches changes.
import { fmt, h, legend, mount, pct, plot, range, s, sig, table } from "./kit.mjs";

export const REDUCTIONS = ["token_mean", "group_token_mean", "micro_token_mean", "seq_mean", "seq_sum_const"];

const total = (x) => x.reduce((a, b) => a + b, 0);

// weight of each token of each response; groups and micro name the part a row is in
export function weights(lengths, groups, micro, reduction, lMax) {
  const rows = lengths.filter((n) => n > 0).length;
  const parts = (names) => {
    const size = new Map();
    lengths.forEach((n, i) => size.set(names[i], (size.get(names[i]) ?? 0) + n));
    const alive = [...size.values()].filter((n) => n > 0).length;
    return names.map((name) => 1 / (Math.max(1, size.get(name)) * Math.max(1, alive)));
  };
  if (reduction === "token_mean") return lengths.map(() => 1 / Math.max(1, total(lengths)));
  if (reduction === "group_token_mean") return parts(groups);
  if (reduction === "micro_token_mean") return parts(micro);
  if (reduction === "seq_mean") return lengths.map((n) => 1 / (Math.max(1, n) * Math.max(1, rows)));
  return lengths.map(() => 1 / (lMax * Math.max(1, rows)));
}

// the loss when every token of row i loses `loss[i]`
export const value = (lengths, loss, weight) => total(lengths.map((n, i) => n * loss[i] * weight[i]));

// rows in the order they are split, and the micro-batch of each
export function split(n, order, parts) {
  const half = n / 2;
  const rows = order === "mixed" ? range(n).map((i) => (i % 2) * half + Math.floor(i / 2)) : range(n);
  const micro = [];
  rows.forEach((row, at) => (micro[row] = Math.floor((at * parts) / n)));
  return { rows, micro };
}

// eight responses, two groups of four; the long ones fill up from the end
export function batch(o) {
  const long = range(8).map((i) => i >= 8 - o.nLong);
  const lengths = long.map((is) => (is ? o.long : o.short));
  return { long, lengths, groups: range(8).map((i) => Math.floor(i / 4)), loss: long.map((is) => (is ? 0 : 1)) };
}

function read(ui) {
  return { short: ui.int("short", 1, 100, 10), long: ui.int("long", 1, 200, 80),
    nLong: ui.int("n_long", 0, 8, 3), parts: ui.pick("micro_batches", [1, 2, 4, 8]),
    order: ui.pick("order", ["grouped", "mixed"]), lMax: ui.int("l_max", 1, 1000, 200) };
}

function build(ui) {
  ui.picture = h("div", { class: "dw-panel" });
  ui.table = h("div", { class: "dw-block" });
  return [
    h("div", { class: "dw-controls" },
      ui.slider("n_long", { min: 0, max: 8, label: ui.t("n_long") }),
      ui.slider("short", { min: 1, max: 100, label: ui.t("short") }),
      ui.slider("long", { min: 1, max: 200, label: ui.t("long") })),
    h("div", { class: "dw-row" },
      ui.choice("micro_batches", ui.t("micro_batches"), [1, 2, 4, 8].map((n) => [n, `${n}`])),
      ui.choice("order", ui.t("order"), [["grouped", ui.t("grouped")], ["mixed", ui.t("mixed")]])),
    ui.picture,
    legend([[ui.t("short_row"), "c1", "dot"], [ui.t("long_row"), "c2", "dot"], [ui.t("cut"), "c0", "dash"]]),
    ui.table,
  ];
}

function picture(ui, b, cut) {
  const most = Math.max(...b.lengths);
  const p = plot(ui.picture, { x: [0, most * 1.02], y: [-8, 0], height: 188, left: 62, yticks: [],
    xlabel: ui.t("tokens"), label: ui.t("plot") });
  cut.rows.forEach((row, at) => {
    p.bar(0, b.lengths[row], -at - 0.82, -at - 0.18, b.long[row] ? "f2" : "f1");
    p.note(0, -at - 0.5, `${ui.t(b.groups[row] ? "prompt_b" : "prompt_a")}`, "", "end", 4, -8);
    if (at && cut.micro[row] !== cut.micro[cut.rows[at - 1]]) p.hline(-at, "c0");
  });
}

function shareBar(a, b) {
  const whole = a + b || 1;
  return s("svg", { class: "dw-share", viewBox: "0 0 100 12", height: 12, preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "f1", x: 0, y: 0, width: (100 * a) / whole, height: 12 }),
    s("rect", { class: "f2", x: (100 * a) / whole, y: 0, width: (100 * b) / whole, height: 12 }));
}

function draw(ui) {
  const o = read(ui);
  const b = batch(o);
  const cut = split(8, o.order, o.parts);
  picture(ui, b, cut);
  const even = 1 / total(b.lengths);
  const whole = b.lengths.map(() => 0);
  const changed = [];
  const rows = REDUCTIONS.map((name) => {
    const w = weights(b.lengths, b.groups, cut.micro, name, o.lMax);
    const before = value(b.lengths, b.loss, weights(b.lengths, b.groups, whole, name, o.lMax));
    const now = value(b.lengths, b.loss, w);
    if (Math.abs(now - before) > 1e-12) changed.push([name, before, now]);
    const sum = (is) => total(b.lengths.map((n, i) => (b.long[i] === is ? n * w[i] : 0)));
    const span = (is) => {
      const all = w.filter((_, i) => b.long[i] === is).map((v) => v / even);
      if (!all.length) return "–";
      const [low, top] = [Math.min(...all), Math.max(...all)];
      return top - low < 1e-9 ? `×${sig(low, 3)}` : `×${sig(low, 2)}–${sig(top, 2)}`;
    };
    return [h("span", {}, h("code", {}, name)), span(false), span(true),
      { text: shareBar(sum(false), sum(true)), cls: "dw-roomy", left: true }, fmt(now, 3)];
  });
  ui.table.replaceChildren(table(
    [ui.t("reduction"), ui.t("short_weight"), ui.t("long_weight"), { text: ui.t("share"), cls: "dw-roomy", left: true }, ui.t("value")],
    rows, { caption: ui.t("reduction") }));
  const seq = weights(b.lengths, b.groups, whole, "seq_mean", o.lMax);
  const ratio = o.nLong && o.nLong < 8 ? seq[0] / seq[7] : 1;
  const text = ui.join(ui.t("summary", { ratio: sig(ratio, 3) }), changed.length
    ? ui.t("moved", { from: fmt(changed[0][1], 3), to: fmt(changed[0][2], 3), n: o.parts })
    : ui.t(o.parts === 1 ? "unsplit" : "unmoved", { n: o.parts }));
  return { text, bad: changed.length > 0 };
}

export default { render: (view) => mount(view, { build, draw }) };
