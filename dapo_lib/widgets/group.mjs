// Group size × pass rate in closed form: how many groups die, what a full batch costs,
// and what the refill buys (candidate setting, closed forms 2, 4, 7 and 8).
import { count, fmt, h, legend, linspace, mount, pct, plot, range, sig, table } from "./kit.mjs";

// P(k right of G), k = 0..G
export function binomial(p, G) {
  let choose = 1;
  return range(G + 1).map((k) => {
    if (k) choose = (choose * (G - k + 1)) / k;
    return choose * p ** k * (1 - p) ** (G - k);
  });
}

export const deadShare = (p, G) => p ** G + (1 - p) ** G;

// c_G(p): E[GRPO gradient] = c_G(p) ∇p, population standard deviation
export function signal(p, G) {
  const total = binomial(p, G).reduce((sum, w, k) => sum + w * Math.sqrt(k * (G - k)), 0);
  return total / (G * p * (1 - p));
}

// Expected ledger of a batch of N groups of G responses of `tokens` tokens when only the
// missing groups are drawn again, at most R rounds: a slot is still empty after R rounds
// with chance dead^R.
export function ledger(p, G, N, R, tokens) {
  const dead = deadShare(p, G);
  const drawn = dead < 1 ? (N * (1 - dead ** R)) / (1 - dead) : N * R;
  const kept = N * (1 - dead ** R);
  return {
    dead, drawn, kept, missing: N - kept, full: (1 - dead ** R) ** N,
    all_wrong: drawn * (1 - p) ** G, all_right: drawn * p ** G,
    responses: drawn * G, generated: drawn * G * tokens, used: kept * G * tokens,
    per_kept: dead < 1 ? 1 / (1 - dead) : Infinity,
  };
}

function read(ui) {
  return { G: ui.int("group_size", 2, 32, 8), p: ui.num("pass_rate", 0.01, 0.99, 0.25),
    N: ui.int("n_groups", 1, 1024, 32), R: ui.int("max_rounds", 1, 20, 10), tokens: ui.int("tokens", 1, 20480, 12) };
}

function build(ui) {
  ui.bars = h("div", { class: "dw-panel" });
  ui.curve = h("div", { class: "dw-panel" });
  ui.ledger = h("div", { class: "dw-block" });
  return [
    h("div", { class: "dw-controls" },
      ui.slider("group_size", { min: 2, max: 32, label: ui.t("group_size") }),
      ui.slider("pass_rate", { min: 0.01, max: 0.99, step: 0.01, label: ui.t("pass_rate"), show: (v) => fmt(v) }),
      ui.slider("n_groups", { min: 1, max: 512, label: ui.t("n_groups") }),
      ui.slider("max_rounds", { min: 1, max: 20, label: ui.t("max_rounds") })),
    h("div", { class: "dw-panels" }, ui.bars, ui.curve),
    legend([[ui.t("kept"), "c1", "dot"], [ui.t("dropped"), "c2", "dot"], [ui.t("others"), "c0", "dash"]]),
    ui.ledger,
  ];
}

function drawBars(ui, o) {
  const w = binomial(o.p, o.G);
  const top = Math.max(...w);
  const p = plot(ui.bars, { x: [-0.6, o.G + 0.6], y: [0, top * 1.15], height: 220,
    xlabel: ui.t("n_right"), ylabel: ui.t("share"), label: ui.t("plot_bars"), yfmt: (v) => pct(v),
    xticks: range(o.G + 1).filter((k) => k % Math.ceil(o.G / 8) === 0) });
  w.forEach((v, k) => p.bar(k - 0.4, k + 0.4, 0, v, k === 0 || k === o.G ? "f2" : "f1"));
}

function drawCurve(ui, o) {
  const p = plot(ui.curve, { x: [0, 1], y: [0, 1], height: 220, xlabel: ui.t("pass_rate"),
    ylabel: ui.t("dead_share"), label: ui.t("plot_curve"), yfmt: (v) => pct(v) });
  const xs = linspace(0, 1, 61);
  for (const G of [4, 8, 16]) p.line(xs.map((x) => [x, deadShare(x, G)]), "c0 thin dash");
  p.line(xs.map((x) => [x, deadShare(x, o.G)]), "c2");
  p.dot(o.p, deadShare(o.p, o.G), "f2", 6);
}

function drawLedger(ui, o) {
  const [once, refill] = [ledger(o.p, o.G, o.N, 1, o.tokens), ledger(o.p, o.G, o.N, o.R, o.tokens)];
  const c = signal(o.p, o.G);
  const big = (x) => (x > 0 && x < 0.01 ? "< 0.01" : x < 1000 ? sig(x) : count(x));
  const rows = ["drawn", "all_wrong", "all_right", "kept", "missing", "responses", "generated", "used"];
  ui.ledger.replaceChildren(table(
    [ui.t("ledger"), ui.t("without"), ui.t("with_refill")],
    [
      ...rows.map((key) => [ui.t(key), big(once[key]), big(refill[key])]),
      [ui.t("signal_update"), fmt(c), fmt((c * refill.kept) / (1 - refill.dead) / o.N)],
      [ui.t("signal_response"), fmt(c), fmt(c)],
    ], { caption: ui.t("ledger") }));
  return refill;
}

function draw(ui) {
  const o = read(ui);
  drawBars(ui, o);
  drawCurve(ui, o);
  const l = drawLedger(ui, o);
  const starved = l.full < 0.5;
  return { bad: starved, text: ui.t(starved ? "starved" : "summary", {
    dead: pct(l.dead, 1), draws: sig(l.per_kept, 3), drawn: count(l.drawn), N: count(o.N),
    R: o.R, missing: sig(l.missing, 2), full: pct(l.full, l.full > 0.995 ? 1 : 0),
  }) };
}

export default { render: (view) => mount(view, { build, draw }) };
