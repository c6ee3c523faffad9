// Take a leak out of the features and watch the accuracy: one dot a seed, the mean and
// its interval, beside chance and the rule that reads the leak alone.
import { fmt, h, legend, mount, plot, sig } from "./kit.mjs";

const key = (names) => [...names].sort().join("+");

// the trained set with exactly these leaks removed, or null
export const findSet = (sets, removed) =>
  sets.find((set) => key(set.removed) === key(removed)) ?? null;

// the set that differs least in what is removed; the first one at a tie
export function nearestSet(sets, removed) {
  const differs = (set) =>
    set.removed.filter((n) => !removed.includes(n)).length + removed.filter((n) => !set.removed.includes(n)).length;
  return sets.reduce((best, set) => (differs(set) < differs(best) ? set : best));
}

// dots that would overlap step aside; returns an offset in units of one dot
export function swarm(values, gap) {
  const placed = [];
  return values.map((v) => {
    let k = 0;
    const at = () => (k % 2 ? (k + 1) / 2 : -k / 2);
    while (placed.some(([w, off]) => off === at() && Math.abs(w - v) < gap)) k += 1;
    placed.push([v, at()]);
    return at();
  });
}

const letter = (i) => String.fromCharCode(65 + i);

// "−AB" under the dots of the set without leaks A and B: as short as a phone needs
const mark = (runs, set, all) => {
  const gone = runs.leaks.map((l, i) => (set.removed.includes(l.key) ? letter(i) : "")).join("");
  return gone ? `−${gone}` : all;
};

function build(ui) {
  const { runs } = ui;
  ui.panel = h("div", { class: "dw-panel" });
  return [
    h("div", { class: "dw-row" },
      ui.checks("removed", ui.t("remove"), runs.leaks.map((l, i) => [l.key, `${letter(i)} · ${ui.say(l.label)}`]))),
    ui.panel,
    legend([[ui.t("seed"), "c1", "dot"], [ui.t("mean"), "c2"], [ui.t("chance"), "c0", "dash"], [ui.t("leak_only"), "cb", "dash"]]),
  ];
}

function draw(ui) {
  const { runs } = ui;
  const known = runs.leaks.map((l) => l.key);
  const removed = ui.list("removed").filter((n) => known.includes(n));
  const set = findSet(runs.sets, removed) ?? nearestSet(runs.sets, removed);
  const exact = key(set.removed) === key(removed);
  const all = runs.sets.flatMap((s) => s.values).concat(runs.chance, runs.leak_only);
  const low = Math.max(0, Math.min(...all) - 0.05);
  const p = plot(ui.panel, { x: [-0.7, runs.sets.length - 0.3], y: [low, Math.min(1, Math.max(...all) + 0.05)],
    height: 270, xticks: runs.sets.map((_, i) => i), xfmt: (i) => mark(runs, runs.sets[i], ui.t("all")), ylabel: ui.t("accuracy"), label: ui.t("plot"), yfmt: (v) => fmt(v, 1) });
  p.hline(runs.chance, "c0");
  p.hline(runs.leak_only, "cb");
  runs.sets.forEach((s, at) => {
    const here = s === set;
    const offsets = swarm(s.values, 0.012);
    const step = Math.min(0.09, 6 / (p.inner / runs.sets.length));
    s.values.forEach((v, i) => p.dot(at + offsets[i] * step, v, here ? "f1" : "f0 faint", here ? 4.5 : 3.5));
    if (Number.isFinite(s.low)) p.line([[at, s.low], [at, s.high]], here ? "c2" : "c0 faint");
    p.line([[at - 0.22, s.mean], [at + 0.22, s.mean]], here ? "c2" : "c0 faint");
    if (here) p.note(at, Math.max(...s.values), fmt(s.mean, 3), "ink", "middle", -10);
  });
  const names = set.removed.map((n) => ui.say(runs.leaks.find((l) => l.key === n)?.label)).join(ui.t("comma"));
  const text = ui.t(set.removed.length ? "summary" : "summary_none", {
    names, mean: fmt(set.mean, 3), low: fmt(set.low ?? NaN, 3), high: fmt(set.high ?? NaN, 3),
    n: sig(set.values.length), chance: fmt(runs.chance, 3), leak: fmt(runs.leak_only, 3),
  });
  return exact ? text : { text: ui.join(ui.t("snapped"), text), bad: true };
}

export default {
  render: (view) =>
    mount(view, {
      build(ui) {
        ui.runs = ui.data("runs");
        if (!ui.runs) throw new Error("runs: no data");
        return build(ui);
      },
      draw,
    }),
};
