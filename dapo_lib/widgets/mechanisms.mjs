// Toggle the mechanisms; the curves are real runs with bands over seeds. A combination
// that was never run shows the nearest one that was, and says so.
import { h, legend, mount, pct, plot, sig } from "./kit.mjs";

// the arm whose set of mechanisms differs least from `on`; the first one at a tie
export function nearestArm(arms, on) {
  let best = null;
  for (const arm of arms) {
    const wrong = [...on.filter((m) => !arm.on.includes(m)), ...arm.on.filter((m) => !on.includes(m))];
    if (!best || wrong.length < best.wrong.length) best = { arm, wrong };
  }
  return best;
}

const finite = (values) => values.filter((v) => Number.isFinite(v));

// lowest and highest value over all arms of a metric, with its bands
export function extent(runs, metric) {
  const all = finite(runs.arms.flatMap((arm) => {
    const m = runs.data[arm.name]?.[metric] ?? {};
    return [...(m.mean ?? []), ...(m.low ?? []), ...(m.high ?? [])];
  }));
  if (!all.length) return [0, 1];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const pad = (high - low || 1) * 0.04;
  return [low - pad, high + pad];
}

const last = (values) => finite(values ?? []).at(-1);

function build(ui) {
  const { runs } = ui;
  const entries = (list) => list.map((x) => [x.key, ui.say(x.label)]);
  ui.panel = h("div", { class: "dw-panel" });
  ui.legend = h("div");
  ui.note = h("p", { class: "dw-note" });
  return [
    h("div", { class: "dw-row" }, ui.checks("on", ui.t("mechanisms"), entries(runs.mechanisms))),
    h("div", { class: "dw-row" },
      ui.choice("metric", ui.t("metric"), entries(runs.metrics)),
      ui.choice("x_axis", ui.t("x_axis"), entries(runs.x_axes))),
    h("div", { class: "dw-controls" },
      ui.select("compare", ui.t("compare"), runs.arms.map((arm) => [arm.name, ui.say(arm.label)]))),
    ui.panel, ui.legend, ui.note,
  ];
}

function series(runs, arm, metric, axis) {
  const entry = runs.data[arm.name] ?? {};
  const x = entry.x?.[axis] ?? [];
  const zip = (values) => (values ?? []).map((y, i) => [x[i], y]).filter(([v]) => Number.isFinite(v));
  const m = entry[metric] ?? {};
  return { mean: zip(m.mean), low: zip(m.low), high: zip(m.high), end: last(m.mean), x };
}

function draw(ui) {
  const { runs } = ui;
  const keys = runs.mechanisms.map((m) => m.key);
  const { arm, wrong } = nearestArm(runs.arms, ui.list("on").filter((m) => keys.includes(m)));
  const metric = ui.pick("metric", runs.metrics.map((m) => m.key));
  const axis = ui.pick("x_axis", runs.x_axes.map((a) => a.key));
  const other = runs.arms.find((a) => a.name === model(ui)) ?? runs.arms[0];
  const label = runs.metrics.find((m) => m.key === metric);
  const show = label.percent ? (v) => pct(v) : (v) => sig(v);
  const all = runs.arms.map((a) => [a, series(runs, a, metric, axis)]);
  const far = Math.max(...all.flatMap(([, s]) => finite(s.x)));
  const p = plot(ui.panel, { x: [0, far], y: extent(runs, metric), height: 270, yfmt: show,
    xlabel: ui.say(runs.x_axes.find((a) => a.key === axis).label), ylabel: ui.say(label.label), label: ui.say(label.label) });
  for (const [a, s] of all) if (a !== arm && a !== other) p.line(s.mean, "c0 thin faint");
  const shown = arm === other ? [[other, "1"]] : [[other, "1"], [arm, "2"]];
  for (const [a, c] of shown) {
    const s = series(runs, a, metric, axis);
    p.band(s.low, s.high, `f${c}`);
    p.line(s.mean, `c${c}${c === "1" ? " dash" : ""}`);
    const end = s.mean.at(-1);
    if (end) p.dot(...end, `f${c}`, 4);
  }
  ui.legend.replaceChildren(legend(shown.map(([a, c]) => [ui.say(a.label), `c${c}`, c === "1" ? "dash" : ""])));
  ui.note.textContent = ui.t("note", { seeds: sig(runs.seeds) });
  const names = wrong.map((m) => ui.say(runs.mechanisms.find((x) => x.key === m)?.label)).join(ui.t("comma"));
  const s = series(runs, arm, metric, axis);
  const o = series(runs, other, metric, axis);
  const say = (v) => (v === undefined ? "–" : show(v));
  const text = ui.join(
    wrong.length && ui.t("snapped", { arm: ui.say(arm.label), wrong: names }),
    ui.t("summary", { arm: ui.say(arm.label), end: say(s.end), other: ui.say(other.label), was: say(o.end), metric: ui.say(label.label) }));
  return { text, bad: wrong.length > 0 };
}

const model = (ui) => ui.pick("compare", ui.runs.arms.map((a) => a.name));

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
