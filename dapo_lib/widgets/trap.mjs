// Pick a fault and see the curve bend: five faults computed here, live, and any others
// that come as data. The right curve and the broken one share their input.
import { clamp, fmt, h, legend, linspace, mount, plot, range, sig } from "./kit.mjs";

// ── each fault: the right value and the broken one, for one input ──
export const minRule = (r, a, low, high) => Math.min(r * a, clamp(r, 1 - low, 1 + high) * a);
export const maxRule = (r, a, low, high) =>
  a < 0 ? Math.max(r * a, clamp(r, 1 - low, 1 + high) * a) : minRule(r, a, low, high);

// mean over one real token (log-ratio 0) and one padding token, in float32 as on a GPU
export const maskBeforeExp = () => 1;
export const maskAfterExp = (padding) => Math.fround(Math.exp(0)) * 1 + Math.fround(Math.exp(padding)) * 0;

// one long response of loss 0, `short` short ones of loss 1, in `parts` micro-batches
export function tokenMean(lengths, loss) {
  const tokens = lengths.reduce((a, n) => a + n, 0);
  return tokens ? lengths.reduce((a, n, i) => a + n * loss[i], 0) / tokens : 0;
}
export function meanOfMeans(lengths, loss, parts) {
  const n = lengths.length;
  const means = range(parts).map((part) => {
    const mine = range(n).filter((i) => Math.floor((i * parts) / n) === part);
    return tokenMean(mine.map((i) => lengths[i]), mine.map((i) => loss[i]));
  });
  return means.reduce((a, b) => a + b, 0) / parts;
}

// advantages of an all-wrong group of four, one answer carrying a penalty
export function shapedAdvantage(penalty) {
  const rewards = [-1, -1, -1, -1 + penalty];
  const mean = rewards.reduce((a, b) => a + b, 0) / 4;
  const std = Math.sqrt(rewards.reduce((a, r) => a + (r - mean) ** 2, 0) / 3);
  return std > 1e-8 ? (rewards[3] - mean) / (std + 1e-6) : 0;
}

export const penaltyUnclamped = (n, lMax, lCache) => Math.min(-(n - (lMax - lCache)) / lCache, 0) + 0;
export const penaltyClamped = (n, lMax, lCache) => Math.max(-1, penaltyUnclamped(n, lMax, lCache));

// ── how each is shown: a dose to drag, an axis, two curves ──
export const BUILT_IN = {
  max_negative: {
    dose: [0.05, 0.6, 0.05, 0.2], x: [0, 2],
    curves: (d, xs) => [xs.map((x) => minRule(x, -1, d, 0.28)), xs.map((x) => maxRule(x, -1, d, 0.28))],
  },
  mask_after_exp: {
    dose: [0, 200, 1, 100], x: [0, 200],
    curves: (d, xs) => [xs.map(maskBeforeExp), xs.map((x) => (x <= d ? maskAfterExp(x) : null))],
  },
  mean_of_means: {
    dose: [1, 64, 1, 32], x: [1, 8], xs: [1, 2, 4, 8],
    curves(d, xs) {
      const [lengths, loss] = [[4, 4, 4, 4, 4, 4, 4, d], [1, 1, 1, 1, 1, 1, 1, 0]];
      return [xs.map(() => tokenMean(lengths, loss)), xs.map((x) => meanOfMeans(lengths, loss, x))];
    },
  },
  filter_shaped: {
    dose: [1, 10, 1, 4], x: [10, 20],
    curves: (d, xs) => [xs.map(() => 0), xs.map((x) => shapedAdvantage(penaltyClamped(x, 20, d)))],
  },
  no_lower_clamp: {
    dose: [1, 20, 1, 4], x: [0, 40],
    curves: (d, xs) => [xs.map((x) => penaltyClamped(x, 20, d)), xs.map((x) => penaltyUnclamped(x, 20, d))],
  },
};

const finite = (values) => values.filter((v) => Number.isFinite(v));

function given(ui) {
  return ui.list("traps").filter((t) => t && typeof t === "object" && t.key && t.curves);
}

function build(ui) {
  const all = [...Object.keys(BUILT_IN).map((key) => [key, ui.t(`${key}_title`)]),
    ...given(ui).map((t) => [t.key, ui.say(t.title)])];
  ui.keys = all.map(([key]) => key);
  ui.sliders = Object.keys(BUILT_IN).map((key) => {
    const [min, max, step] = BUILT_IN[key].dose;
    return ui.slider(`dose_${key}`, { min, max, step, label: ui.t(`${key}_dose`), wide: true, show: (v) => sig(v, 4) });
  });
  ui.panel = h("div", { class: "dw-panel" });
  ui.symptom = h("p", {});
  ui.fix = h("p", { class: "dw-note" });
  return [
    h("div", { class: "dw-controls" }, ui.select("trap", ui.t("pick"), all)),
    ui.symptom,
    h("div", { class: "dw-controls dw-block" }, ui.sliders),
    ui.panel,
    legend([[ui.t("right"), "c1"], [ui.t("broken"), "cb", "dash"]]),
    ui.fix,
  ];
}

function shown(ui, key) {
  const trap = BUILT_IN[key];
  if (!trap) {
    const t = given(ui).find((g) => g.key === key);
    const c = t.curves;
    return { xs: c.x, right: c.right, wrong: c.wrong, xlabel: ui.say(c.x_label), ylabel: ui.say(c.y_label),
      symptom: ui.say(t.symptom), fix: ui.say(t.fix), values: [t.right, t.wrong] };
  }
  const [low, high, , start] = trap.dose;
  const dose = ui.num(`dose_${key}`, low, high, start);
  const xs = trap.xs ?? linspace(...trap.x, 201);
  const [right, wrong] = trap.curves(dose, xs);
  const worst = xs.reduce((best, _, i) =>
    (!Number.isFinite(wrong[i]) && wrong[i] !== null) ? i
      : Math.abs(wrong[i] - right[i]) > Math.abs(wrong[best] - right[best]) ? i : best, 0);
  return { xs, right, wrong, xlabel: ui.t(`${key}_x`), ylabel: ui.t(`${key}_y`), at: xs[worst], dotted: Boolean(trap.xs),
    symptom: ui.t(`${key}_symptom`), fix: ui.t(`${key}_fix`), values: [right[worst], wrong[worst]] };
}

function draw(ui) {
  const key = ui.pick("trap", ui.keys);
  Object.keys(BUILT_IN).forEach((k, i) => (ui.sliders[i].hidden = k !== key));
  const c = shown(ui, key);
  const all = finite([...c.right, ...c.wrong]);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const pad = (high - low || 1) * 0.1;
  const p = plot(ui.panel, { x: [c.xs[0], c.xs.at(-1)], y: [low - pad, high + pad], height: 250, xticks: c.dotted ? c.xs : null,
    xlabel: c.xlabel, ylabel: c.ylabel, label: ui.t("plot") });
  p.line(c.xs.map((x, i) => [x, c.right[i]]), "c1");
  p.line(c.xs.map((x, i) => [x, c.wrong[i]]), "cb dash");
  if (c.dotted) c.xs.forEach((x, i) => [p.dot(x, c.right[i], "f1", 4.5), p.dot(x, c.wrong[i], "fb", 4.5)]);
  const broken = c.wrong.findIndex((v) => v !== null && !Number.isFinite(v));
  if (broken > 0) {
    p.dot(c.xs[broken - 1], c.wrong[broken - 1], "fb", 6);
    p.note(c.xs[broken - 1], c.wrong[broken - 1], ui.t("breaks"), "fb", "start", -14, 4);
  }
  ui.symptom.textContent = c.symptom;
  ui.fix.textContent = c.fix;
  const value = (v) => (typeof v === "number" ? fmt(v, 3) : `${v ?? "–"}`);
  const [right, wrong] = c.values;
  const text = c.at === undefined ? ui.t("summary_data", { right: value(right), wrong: value(wrong) })
    : ui.t("summary", { x: sig(c.at, 3), axis: c.xlabel, right: value(right), wrong: value(wrong) });
  return { text, bad: value(right) !== value(wrong) };
}

export default { render: (view) => mount(view, { build, draw }) };
