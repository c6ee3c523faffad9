// Rewards of one group -> advantages (Eq 9), with the choices on which systems differ.
import { clamp, fmt, h, mount, plot, range } from "./kit.mjs";

const mean = (x) => x.reduce((a, b) => a + b, 0) / Math.max(1, x.length);

export function deviation(x, ddof) {
  const m = mean(x);
  const sum = x.reduce((a, v) => a + (v - m) ** 2, 0);
  return Math.sqrt(sum / Math.max(1, x.length - ddof));
}

// groups: a list of lists of rewards -> advantages of the same shape
export function advantages(groups, { ddof = 1, eps = 1e-6, scale = "group", baseline = "mean" } = {}) {
  const batch = deviation(groups.flat(), ddof);
  return groups.map((rewards) => {
    const n = rewards.length;
    if (Math.max(...rewards) - Math.min(...rewards) <= 1e-8) return rewards.map(() => 0);
    const m = mean(rewards);
    const rest = baseline === "leave_one_out" && n > 1 ? n / (n - 1) : 1;
    const by = { group: deviation(rewards, ddof) + eps, batch: batch + eps, none: 1 }[scale];
    return rewards.map((r) => ((r - m) * rest) / by);
  });
}

// Eq 11 reads how many are right, before any shaping
export const hasSignal = (correct) => {
  const k = correct.filter(Boolean).length;
  return 0 < k && k < correct.length;
};

export const rewardsOf = (correct, penalties) =>
  correct.map((c, i) => (c ? 1 : -1) + (penalties[i] ?? 0));

const OTHER = [1, 1, 1, -1]; // the rest of the batch, for the batch deviation
const LEVELS = [0, -0.5, -1];

function read(ui) {
  const size = ui.int("group_size", 1, 16, 8);
  const shaping = ui.flag("shaping");
  const correct = range(size).map((i) => (ui.list("correct")[i] ? 1 : 0));
  const raw = range(size).map((i) => {
    const p = ui.list("penalty")[i];
    return Number.isFinite(p) ? clamp(p, -1, 0) : 0;
  });
  return { size, shaping, correct, penalty: shaping ? raw : raw.map(() => 0), raw };
}

function build(ui) {
  const flip = (i) => {
    const o = read(ui);
    ui.put("correct", o.correct.map((c, j) => (j === i ? 1 - c : c)));
  };
  const longer = (i) => {
    const o = read(ui);
    const next = LEVELS[(LEVELS.findIndex((l) => l <= o.raw[i]) + 1) % LEVELS.length];
    ui.put("penalty", o.raw.map((p, j) => (j === i ? next : p)));
  };
  ui.answers = range(16).map((i) => ui.button("", () => flip(i), { class: "dw-cell" }));
  ui.lengths = range(16).map((i) => ui.button("", () => longer(i), { class: "dw-cell" }));
  ui.lengthRow = h("div", {}, h("div", { class: "dw-note" }, ui.t("penalties")), h("div", { class: "dw-options" }, ui.lengths));
  ui.panel = h("div", { class: "dw-panel dw-block" });
  return [
    h("div", { class: "dw-controls" },
      ui.slider("group_size", { min: 1, max: 16, label: ui.t("group_size") })),
    h("div", { class: "dw-row" },
      ui.choice("baseline", ui.t("baseline"), [["mean", ui.t("mean")], ["leave_one_out", ui.t("leave_one_out")]]),
      ui.choice("scale", ui.t("scale"), [["group", ui.t("group")], ["batch", ui.t("batch")], ["none", ui.t("none")]]),
      ui.choice("ddof", ui.t("ddof"), [[1, "n − 1"], [0, "n"]]),
      ui.check("shaping", ui.t("shaping_on"), ui.t("shaping"))),
    h("div", { class: "dw-note" }, ui.t("answers")),
    h("div", { class: "dw-options" }, ui.answers),
    ui.lengthRow,
    ui.panel,
  ];
}

function draw(ui) {
  const o = read(ui);
  ui.lengthRow.hidden = !o.shaping;
  for (const i of range(16)) {
    ui.answers[i].hidden = ui.lengths[i].hidden = i >= o.size;
    if (i >= o.size) continue;
    ui.answers[i].textContent = o.correct[i] ? "✓ +1" : "✗ −1";
    ui.answers[i].setAttribute("aria-pressed", o.correct[i] === 1);
    ui.answers[i].setAttribute("aria-label", ui.t(o.correct[i] ? "is_right" : "is_wrong", { i: i + 1 }));
    ui.lengths[i].textContent = fmt(o.penalty[i], 1);
    ui.lengths[i].setAttribute("aria-label", ui.t("is_long", { i: i + 1, p: fmt(o.penalty[i], 1) }));
  }
  const options = { ddof: ui.pick("ddof", [1, 0]), eps: ui.num("eps", 0, 1, 1e-6),
    scale: ui.pick("scale", ["group", "batch", "none"]), baseline: ui.pick("baseline", ["mean", "leave_one_out"]) };
  const rewards = rewardsOf(o.correct, o.penalty);
  const [a] = advantages([rewards, OTHER], options);
  const top = Math.max(1.5, Math.ceil(2 * Math.max(...a.map(Math.abs)) + 0.4) / 2);
  const p = plot(ui.panel, { x: [0.5, o.size + 0.5], y: [-top, top], height: 220, xticks: [],
    ylabel: ui.t("advantage"), label: ui.t("plot") });
  a.forEach((v, i) => {
    p.bar(i + 0.62, i + 1.38, 0, v, o.correct[i] ? "f1" : "f2");
    p.note(i + 1, v, fmt(v, p.inner / o.size > 42 ? 2 : 1), "ink", "middle", v < 0 ? 15 : -6);
  });
  const k = o.correct.filter(Boolean).length;
  const alive = hasSignal(o.correct);
  const noise = !alive && a.some((v) => v !== 0);
  const pick = (flag) => a.filter((_, i) => o.correct[i] === flag);
  const text = noise ? ui.t("noise", { most: fmt(Math.max(...a.map(Math.abs))) })
    : !alive ? ui.t(o.size === 1 ? "single" : "dead", { k, G: o.size })
    : ui.t("summary", { k, G: o.size, up: fmt(mean(pick(1))), down: fmt(mean(pick(0))) });
  return { text, bad: noise };
}

export default { render: (view) => mount(view, { build, draw }) };
